"""Recording a stack of commits as a lane: bodies and lock, written one way only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchq.cache import write_atomically
from patchq.engine.stack import Stack, build_stack
from patchq.errors import RefusedError
from patchq.git.mail import diff_trees, format_mail
from patchq.git.objects import Commit, Objects, read_commit
from patchq.series.lock import LockedPatch, format_lock
from patchq.series.moves import read_moves
from patchq.series.series import LOCK_NAME, Body, Series

if TYPE_CHECKING:
    from pathlib import Path

MAX_COMMITS = 1000


@dataclass(frozen=True)
class Recorded:
    """What was recorded.

    Attributes:
        series: the series with its new lock.
        stack: the lane as it now builds.
        written: the patches whose bodies changed.
    """

    series: Series
    stack: Stack
    written: tuple[str, ...]


def bodies_from_commits(
    series: Series, base: str, objects: Objects, git_dir: Path, head: str, base_tree: str
) -> list[Body]:
    """The bodies of the commits between a base and `head`, each for the patch whose title it has.

    Args:
        series: the patches; a commit's first line is looked up among their titles.
        base: the base's name.
        objects: the objects of the repository that has the commits, with the store's.
        git_dir: that repository.
        head: the top commit.
        base_tree: the base's tree; the first commit from `head` down whose touched files are the base's ends the stack.

    Raises:
        RefusedError: a commit belongs to no patch, a patch has no commit (and did not leave this base's lane in a
            rebase) or two, or the order is not the series'.
    """
    ids = {patch.title: patch.id for patch in series.on(base).patches}
    found: dict[str, Body] = {}
    order = []
    for commit, parent in _stack_commits(objects, head, base_tree, base):
        patch = ids.get(commit.title)
        if patch is None:
            raise RefusedError(
                f"the commit {commit.title!r} has the title of no patch in series/.",
                "Give it a directory with a patch.yaml of that title, or reword the commit.",
            )
        if patch in found:
            raise RefusedError(
                f"two commits have the title of {patch}.", "Squash them: one patch is one commit."
            )
        where = f"series/{patch}/{base}.patch"
        diff = diff_trees(git_dir, parent.tree, commit.tree)
        found[patch] = Body(patch, where, format_mail(commit.author, commit.message, diff, where))
        order.append(patch)
    moves = {p.id: read_moves(series.root, p.id).to(base) for p in series.patches}
    wanted = [i for i, move in moves.items() if i in found or move is None or move.carried]
    missing = [i for i in wanted if i not in found]
    if missing:
        raise RefusedError(
            f"no commit has the title of {', '.join(missing)}.",
            "Commit each patch, titled as in its patch.yaml.",
        )
    if order[::-1] != wanted:
        raise RefusedError(
            f"the commits stand in another order than the series ({', '.join(order[::-1])}).",
            "Reorder them (git rebase -i).",
        )
    return [found[i] for i in wanted]


def _stack_commits(objects: Objects, head: str, base_tree: str, base: str) -> list[tuple[Commit, Commit]]:
    """The commits above the base, top first, each with its parent."""
    found: list[tuple[Commit, Commit]] = []
    commit = read_commit(objects, head)
    for _ in range(MAX_COMMITS):
        if commit.tree == base_tree:
            return found
        if len(commit.parents) != 1:
            break
        try:
            parent = read_commit(objects, commit.parents[0])
        except KeyError:
            break
        found.append((commit, parent))
        commit = parent
    raise RefusedError(
        f"the tree of {base} is not under HEAD.",
        "Commit the patches on a checkout made with patchq apply --create.",
    )


def record_lane(series: Series, base: str, objects: Objects, base_tree: str, bodies: list[Body]) -> Recorded:
    """Write a lane: bodies that changed, then the lock. Nothing is written before the whole lane builds.

    Raises:
        RefusedError: the bodies do not build on the base.
    """
    stack = build_stack(objects, base_tree, bodies)
    written = []
    for body in bodies:
        path = series.body_path(body.id, base)
        if not path.exists() or path.read_bytes() != body.data:
            write_atomically(path, body.data)
            written.append(body.id)
    steps = tuple(LockedPatch(b.id, b.sha256, s.tree) for b, s in zip(bodies, stack.steps, strict=True))
    lock = series.lock.with_lane(base, steps)
    text = format_lock(lock).encode()
    path = series.root / LOCK_NAME
    if path.read_bytes() != text:
        write_atomically(path, text)
    return Recorded(replace(series, lock=lock), stack, tuple(written))
