"""The commit of a user's clone that branches are put on, and what evidence about a base says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.engine.locate import base_commit_of
from patchq.errors import InputError, RefusedError
from patchq.git.commits import read_commit, resolve
from patchq.git.trees import diff_trees
from patchq.vllm.layout import may_matter_to_tests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.engine.lane import Lane
    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects


@dataclass(frozen=True)
class Onto:
    """What branches are put on.

    Attributes:
        name: how it was named, or found.
        commit: the commit.
        tree: its tree.
        match: `tree` where it is the lane's base; `files` where it has, besides all of that, only files that cannot
            matter to tests; else `other`, so that evidence about the base says nothing of it.
        extra: how many files it has besides.
    """

    name: str
    commit: str
    tree: str
    match: Literal["tree", "files", "other"]
    extra: int = 0


def find_onto(checkout: Checkout, objects: Objects, lane: Lane, ref: str | None) -> Onto:
    """The commit to put branches on: the one named, else the lane's base as the clone has it.

    A release archive lacks files that its repository has, so that a tag's tree is another than the base's; it is the
    base where every file of the base is in it as it is.

    Raises:
        InputError: there is no such commit.
        RefusedError: none is named, and the clone does not have the base.
    """
    if ref is not None:
        commit = resolve(checkout.git_dir, ref)
        if commit is None:
            raise InputError(
                f"{checkout.top} has no commit {ref!r}.", "Name a branch, tag or commit: --onto REF."
            )
        return _look(objects, lane, ref, commit)
    base = lane.stack.base_tree
    paths = sorted(lane.stack.changes)
    for name, commit in _candidates(checkout, objects, lane):
        tree = read_commit(objects, commit).tree
        if all(objects.lookup(tree, path) == objects.lookup(base, path) for path in paths):
            return _look(objects, lane, name, commit)
    raise RefusedError(
        f"{checkout.top} does not have {lane.base}: no tag or branch of that name, and nothing under HEAD, has its files.",
        f"Fetch it (git fetch REMOTE tag {lane.base}), or name what to go on: --onto REF.",
    )


def _candidates(checkout: Checkout, objects: Objects, lane: Lane) -> Iterator[tuple[str, str]]:
    for kind in ("tags", "heads"):
        commit = resolve(checkout.git_dir, f"refs/{kind}/{lane.base}")
        if commit is not None:
            yield lane.base, commit
    head = resolve(checkout.git_dir, "HEAD")
    below = base_commit_of(objects, head, lane.stack) if head else None
    if below is not None:
        yield below[:12], below


def _look(objects: Objects, lane: Lane, name: str, commit: str) -> Onto:
    tree = read_commit(objects, commit).tree
    changes = diff_trees(objects, lane.stack.base_tree, tree)
    if not changes:
        return Onto(name, commit, tree, "tree")
    if all(c.old is None and not may_matter_to_tests(c.path) for c in changes):
        return Onto(name, commit, tree, "files", len(changes))
    return Onto(name, commit, tree, "other")
