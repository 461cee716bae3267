"""Proving that a checkout is the base plus given patches, file by file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.engine.lane import substack
from patchq.engine.locate import base_commit_of
from patchq.git.checkout import hash_files
from patchq.git.commits import read_commit
from patchq.git.trees import Change, diff_trees

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchq.engine.lane import Lane
    from patchq.git.checkout import Checkout, Head
    from patchq.git.objects import Objects


@dataclass(frozen=True)
class Findings:
    """What a look at a checkout found.

    Attributes:
        match: `tree` where every tracked file counts, `blobs` where the files that the lane touches do.
        tree: HEAD's tree id.
        expected: the tree id of the base with the patches.
        checked: how many files the lane touches.
        wrong: each file that is not as it must be, and how: `differs`, `missing`, `extra` or `uncommitted`.
    """

    match: Literal["tree", "blobs"]
    tree: str
    expected: str
    checked: int
    wrong: tuple[tuple[str, str], ...]


def best_lane(objects: Objects, head: Head, lanes: Iterable[Lane]) -> Lane:
    """The lane whose touched files a checkout's HEAD has most of, as the whole lane leaves them.

    Args:
        objects: the checkout's objects, with the store's.
        head: where the checkout stands.
        lanes: at least one; those behind one that it has the whole of are not asked for.
    """
    tree = read_commit(objects, head.commit).tree

    def likeness(lane: Lane) -> float:
        changes = lane.stack.changes
        same = sum(objects.lookup(tree, path) == entry for path, entry in changes.items())
        return same / max(len(changes), 1)

    best, most = None, -1.0
    for lane in lanes:
        like = likeness(lane)
        if like > most:
            best, most = lane, like
        if most == 1:
            break
    if best is None:
        raise ValueError("no lane")
    return best


def verify_checkout(
    checkout: Checkout, head: Head, objects: Objects, lane: Lane, ids: Sequence[str]
) -> Findings:
    """Compare a checkout, whose HEAD was read, with the base plus exactly these patches.

    Where its history shows the base's very tree, every tracked file counts; else the files that the lane touches.
    Those are read anew and hashed; for the others git's own record of file times is trusted.
    """
    tree = read_commit(objects, head.commit).tree
    stack = substack(objects, lane, tuple(ids))
    paths = set(lane.stack.changes)
    base = base_commit_of(objects, head.commit, lane.stack)
    whole = tree == stack.tree or (
        base is not None and read_commit(objects, base).tree == lane.stack.base_tree
    )
    wrong: dict[str, str] = {}
    for change in diff_trees(objects, stack.tree, tree):
        if whole or change.path in paths:
            wrong[change.path] = _problem(change)
    for path in (*head.dirty, *head.unmerged):
        if whole or path in paths:
            wrong.setdefault(path, "uncommitted" if (checkout.top / path).exists() else "missing")
    expected = {p: objects.lookup(stack.tree, p) for p in paths if p not in wrong}
    for path, oid in hash_files(checkout, expected).items():
        entry = expected[path]
        if oid is None and entry is not None:
            wrong[path] = "missing"
        elif oid is not None and (entry is None or oid != entry.oid):
            wrong[path] = "extra" if entry is None else "differs"
    return Findings("tree" if whole else "blobs", tree, stack.tree, len(paths), tuple(sorted(wrong.items())))


def _problem(change: Change) -> str:
    return "missing" if change.new is None else "extra" if change.old is None else "differs"
