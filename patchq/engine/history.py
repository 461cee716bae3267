"""What upstream's history says of a patch, where there is history: which commit took it in, out, or broke it.

History is followed along first parents: what a merge brought in counts as one commit, as a squash does.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from patchq.git.commits import Commit, read_commit
from patchq.git.diff import parse_diff
from patchq.git.mail import diff_trees
from patchq.git.objects import EMPTY_TREE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from patchq.engine.home import Home
    from patchq.git.diff import FileChange
    from patchq.git.objects import Entry, Objects

MAX_COMMITS = 20_000
"""Commits that are looked at; vLLM's main had fewer up to 0.33.0."""

State = str
"""How a patch stands at a commit: `in`, `out` (it goes on), or `stuck` (it does not)."""


@dataclass(frozen=True)
class Mention:
    """An upstream commit.

    Attributes:
        commit: its id.
        title: its first line.
        same_patch: whether its diff is the patch's own, line numbers and white space aside.
    """

    commit: str
    title: str
    same_patch: bool = False


@dataclass(frozen=True)
class Course:
    """What became of a patch over the commits between its home and a base.

    Attributes:
        looked_at: how many commits touch its files.
        landed: the commit with which all of it was there.
        left: the commit with which that ended.
        broke: the first commit on which it does not go on any more.
    """

    looked_at: int
    landed: Mention | None = None
    left: Mention | None = None
    broke: Mention | None = None

    def as_dict(self) -> dict[str, Any]:
        """The commits that there are, as plain data."""
        found = {"landed": self.landed, "left": self.left, "broke": self.broke}
        return {name: asdict(mention) for name, mention in found.items() if mention is not None}


def first_parents(objects: Objects, commit: str) -> list[tuple[str, Commit]]:
    """A commit and those before it, newest first, as far as they can be read."""
    chain: list[tuple[str, Commit]] = []
    at: str | None = commit
    while at is not None and len(chain) < MAX_COMMITS:
        try:
            read = read_commit(objects, at)
        except KeyError:
            break
        chain.append((at, read))
        at = read.parents[0] if read.parents else None
    return chain


def after_home(
    objects: Objects, chain: Sequence[tuple[str, Commit]], home_commit: str, home: Home
) -> list[tuple[str, Commit]]:
    """The commits after the one that a patch's lane stands on, oldest first; none where history does not show that.

    That one is the newest which the home's base descends from, else (a release archive has no history) the oldest on
    which the patch's files are as in the home's base.
    """
    known = {commit for commit, _ in first_parents(objects, home_commit)}
    at = next((n for n, (commit, _) in enumerate(chain) if commit in known), None)
    if at is None:
        paths = [file.path for file in home.files]
        wanted = _print(objects, home.base_tree, paths)
        matching = [n for n, (_, c) in enumerate(chain) if _print(objects, c.tree, paths) == wanted]
        if not matching:
            return []
        at = matching[-1]
    return list(reversed(chain[:at]))


def touching(
    objects: Objects, commits: Iterable[tuple[str, Commit]], paths: Sequence[str]
) -> list[tuple[str, Commit]]:
    """Those of some commits that change what stands at any of these paths."""
    found = []
    for oid, commit in commits:
        parent = read_commit(objects, commit.parents[0]).tree if commit.parents else EMPTY_TREE
        if _print(objects, commit.tree, paths) != _print(objects, parent, paths):
            found.append((oid, commit))
    return found


def follow(commits: Sequence[tuple[str, Commit]], state: Callable[[str], State], now: State) -> Course:
    """Find the commits that decided over a patch.

    Args:
        commits: those that touch its files since its home, oldest first.
        state: how the patch stands at a commit.
        now: how it stands at the end.
    """
    landed = left = broke = None
    for oid, commit in commits:
        there = state(oid) == "in"
        if there and landed is None:
            landed = Mention(oid, commit.title)
        elif not there and landed is not None and left is None:
            left = Mention(oid, commit.title)
        elif there and left is not None:
            landed, left = Mention(oid, commit.title), None
    if now == "stuck":
        low, high = 0, len(commits)
        while low < high:
            middle = (low + high) // 2
            if state(commits[middle][0]) == "stuck":
                high = middle
            else:
                low = middle + 1
        if low < len(commits):
            broke = Mention(commits[low][0], commits[low][1].title)
    return Course(len(commits), landed, left, broke)


def is_same_patch(objects: Objects, commit: str, home: Home) -> bool:
    """Whether a commit's diff is the patch's, all of it or all but its own tests."""
    read = read_commit(objects, commit)
    parent = read_commit(objects, read.parents[0]).tree if read.parents else EMPTY_TREE
    theirs = parse_diff(diff_trees(objects.git_dir, parent, read.tree, objects.alternates), commit)
    tests = {file.path for file in home.files if file.is_test}
    ours = patch_id(home.patch.changes)
    return ours == patch_id(theirs) or patch_id(
        c for c in home.patch.changes if c.path not in tests
    ) == patch_id(c for c in theirs if c.path not in tests)


def patch_id(changes: Iterable[FileChange]) -> str:
    """What a diff does, without line numbers and white space, as one hash (the idea of `git patch-id`)."""
    digest = hashlib.sha256()
    for change in sorted(changes, key=lambda c: c.path):
        digest.update(repr((change.old_path, change.new_path, change.new_mode)).encode())
        for hunk in change.hunks:
            for side in (hunk.old, hunk.new):
                digest.update(b"\0".join(b"".join(line.split()) for line in side) + b"\1")
        if change.binary is not None:
            digest.update(change.new_oid.encode())
    return digest.hexdigest()


def _print(objects: Objects, tree: str, paths: Sequence[str]) -> list[Entry | None]:
    return [objects.lookup(tree, path) for path in paths]
