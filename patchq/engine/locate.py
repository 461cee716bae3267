"""Where a checkout stands: which base it is on, and which patches of the lane it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from patchq.engine.stack import Stack, build_stack
from patchq.errors import PatchqError, RefusedError
from patchq.git.commits import Commit, read_commit
from patchq.git.objects import Entry, Objects
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from patchq.engine.lane import Lane
    from patchq.git.checkout import Head
    from patchq.series.series import Body

MAX_WALK = 2000
"""Commits of a checkout's history that are looked at to find the base under the patches."""

Print = dict[str, Entry | None]
"""What stands at each path that a lane touches."""


class Position(NamedTuple):
    """Where a checkout stands on a base.

    Attributes:
        match: `tree` where the whole tree is the base's plus patches, `blobs` where only the lane's files are.
        ids: the patches that are applied, in lane order.
        base_commit: the checkout's commit under the patches; None where history does not show it.
        extras: titles of commits above `base_commit` that are not the lane's.
    """

    match: Literal["tree", "blobs"]
    ids: tuple[str, ...]
    base_commit: str | None
    extras: tuple[str, ...]


class Standing(NamedTuple):
    """A checkout as it was found.

    Attributes:
        head: its HEAD.
        lane: the lane that it stands on.
        position: where on it.
    """

    head: Head
    lane: Lane
    position: Position


def locate(objects: Objects, head: str, lane: Stack, bodies: Sequence[Body]) -> Position:
    """Find out which patches of a lane a commit has.

    Args:
        objects: the checkout's objects, with the store's.
        head: the commit.
        lane: the whole lane on its base.
        bodies: the lane's bodies.

    Raises:
        RefusedError: it is not this base with patches of this lane; the files that tell are named.
    """
    tree = read_commit(objects, head).tree
    found_exactly = _by_trees(objects, head, lane)
    if found_exactly is not None:
        return found_exactly
    paths = sorted(lane.changes)
    seen = _print(objects, tree, paths)
    base = _print(objects, lane.base_tree, paths)
    titles = {step.title: step.id for step in lane.steps}
    found: list[str] = []
    extras: list[str] = []
    base_commit = None
    for commit_id, commit in _history(objects, head):
        if _print(objects, commit.tree, paths) == base:
            base_commit = commit_id
            break
        if commit.title in titles:
            found.append(titles[commit.title])
        else:
            extras.append(commit.title)
    prefix = _prefix(lane, base, seen)
    if prefix is not None:
        ids = prefix
        expected: str | None = lane.steps[len(ids) - 1].tree if ids else lane.base_tree
    else:
        ids = tuple(i for i in lane.ids if i in found) if base_commit else ()
        expected = _stack_tree(objects, lane, bodies, ids, seen)
        if expected is None:
            raise _other_files(lane, base, seen)
    if base_commit is None:
        extras = ["commits that hold the patches under other titles"] if ids else []
    return Position("tree" if tree == expected else "blobs", ids, base_commit, tuple(extras))


def base_commit_of(objects: Objects, head: str, lane: Stack) -> str | None:
    """The first commit from `head` down whose files are the base's, as far as the lane touches them; None where none is."""
    paths = sorted(lane.changes)
    base = _print(objects, lane.base_tree, paths)
    return next(
        (c for c, commit in _history(objects, head) if _print(objects, commit.tree, paths) == base), None
    )


def _by_trees(objects: Objects, head: str, lane: Stack) -> Position | None:
    """Where a commit stands if it and those under it, down to the base, are a beginning of the lane by tree and title."""
    trees = [lane.base_tree, *(step.tree for step in lane.steps)]
    at: int | None = None
    for commit_id, commit in _history(objects, head):
        if at is None:
            if commit.tree not in trees:
                return None
            at = start = len(trees) - 1 - trees[::-1].index(commit.tree)
        if commit.tree != trees[at]:
            return None
        if at == 0:
            return Position("tree", lane.ids[:start], commit_id, ())
        if commit.title != lane.steps[at - 1].title:
            return None
        at -= 1
    return None


def _print(objects: Objects, tree: str, paths: Sequence[str]) -> Print:
    return {path: objects.lookup(tree, path) for path in paths}


def _history(objects: Objects, head: str) -> Iterator[tuple[str, Commit]]:
    """The commits from `head` along first parents, as far as they can be read (a shallow clone ends early)."""
    at = head
    for _ in range(MAX_WALK):
        try:
            commit = read_commit(objects, at)
        except KeyError:
            return
        yield at, commit
        if not commit.parents:
            return
        at = commit.parents[0]


def _prefix(lane: Stack, base: Print, seen: Print) -> tuple[str, ...] | None:
    """The longest beginning of the lane after which the files are as seen, or None."""
    state: Print = dict(base)
    found: tuple[str, ...] | None = () if state == seen else None
    for number, step in enumerate(lane.steps, start=1):
        state.update(step.changes)
        if state == seen:
            found = lane.ids[:number]
    return found


def _stack_tree(
    objects: Objects, lane: Stack, bodies: Sequence[Body], ids: Sequence[str], seen: Print
) -> str | None:
    """The tree of the base with just these patches, or None where its files are not as seen."""
    try:
        tree = build_stack(objects, lane.base_tree, [b for b in bodies if b.id in ids]).tree if ids else None
    except PatchqError:
        return None
    return tree if tree and _print(objects, tree, sorted(lane.changes)) == seen else None


def _other_files(lane: Stack, base: Print, seen: Mapping[str, Entry | None]) -> RefusedError:
    known: dict[str, set[Entry | None]] = {path: {entry} for path, entry in base.items()}
    for step in lane.steps:
        for path, entry in step.changes.items():
            known[path].add(entry)
    strange = [p for p, e in seen.items() if e not in known[p]] or [
        p for p, e in seen.items() if e != base[p]
    ]
    return RefusedError(
        f"{listed(strange)} is neither as in the base nor as the patches leave it.",
        "Check out the base (or drop your changes to these files), or name another base with --base.",
        files=tuple(strange),
    )
