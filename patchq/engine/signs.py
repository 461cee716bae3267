"""Textual signs: what of a patch a tree has already, edit by edit.

A sign counts only against the tree that the patch was made on: lines that stood there before are no sign of landing.
Signs alone settle nothing where there is behaviour to look at (see `patchq.engine.verdict`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.engine.home import FileAtHome, Home
from patchq.git.blocks import Block, Text, scope, telling
from patchq.git.objects import EXECUTABLE, REGULAR

if TYPE_CHECKING:
    from patchq.engine.targets import Targets
    from patchq.git.objects import Entry, Objects

How = Literal[
    "reverse applies",
    "added lines present, removed lines absent",
    "same content",
    "most lines present",
    "gone",
]
MOST = 0.8
"""The share of an added file's lines that must be there for the file to count as landed."""


@dataclass(frozen=True)
class Sign:
    """One edit of a patch that a tree has already.

    Attributes:
        file: the file's path in that tree.
        hunk: which hunk of the patch's file, from 1; 0 where the whole file is meant.
        how: what shows it.
        weight: how many telling lines the edit has.
    """

    file: str
    hunk: int
    how: How
    weight: int


@dataclass(frozen=True)
class Signs:
    """All that speaks for a patch being in a tree.

    Attributes:
        found: the edits that are there.
        blocks: those of them that are blocks, by the file's path at home.
        files: the paths at home that are there as a whole.
        weight: telling lines of all edits that count.
        production: telling lines of those that are there.
    """

    found: tuple[Sign, ...]
    blocks: dict[str, frozenset[Block]]
    files: frozenset[str]
    weight: int
    production: int

    @property
    def share(self) -> float:
        """How much of what counts is there, from 0 to 1."""
        return self.production / self.weight if self.weight else 0.0


def read_signs(objects: Objects, tree: str, home: Home, targets: Targets) -> Signs:
    """Look for a patch's edits in a tree.

    A patch's own tests count only where it has nothing else: upstream may have landed the feature with others.
    """
    found: list[Sign] = []
    blocks: dict[str, frozenset[Block]] = {}
    files: set[str] = set()
    weight = production = 0
    for file in home.files:
        counts = home.tests_only or not file.is_test
        if file.blocks is None:
            size, sign = _whole(objects, tree, file, targets)
            if sign:
                files.add(file.path)
            signs = [sign] if sign else []
        else:
            size = sum(block.weight for block in file.blocks)
            there = {b: s for b in file.blocks if (s := _block(tree, file, b, targets))}
            signs = list(there.values())
            if there:
                blocks[file.path] = frozenset(there)
        found += signs
        if counts:
            weight += size
            production += sum(sign.weight for sign in signs)
    return Signs(tuple(found), blocks, frozenset(files), weight, production)


def _whole(objects: Objects, tree: str, file: FileAtHome, targets: Targets) -> tuple[int, Sign | None]:
    """A file that is added, deleted, binary, or changed in its mode alone."""
    here = targets.one(tree, file)
    entry = objects.lookup(tree, here)
    size = 1
    if file.after is None:
        gone = entry is None and not targets.pieces(tree, file)
        return size, Sign(here, 0, "gone", size) if gone else None
    if file.before is None and not file.binary:
        size = max(len(telling(Text.of(objects.blob(file.after.oid)).lines)), 1)
    if entry == file.after:
        return size, Sign(here, 0, "same content", size)
    if file.before is None and entry is None:
        copies = targets.copies(file.after)
        return size, Sign(copies[0], 0, "same content", size) if copies else None
    if file.before is None and not file.binary and entry is not None and _most(objects, file.after, entry):
        return size, Sign(here, 0, "most lines present", size)
    return size, None


def _most(objects: Objects, ours: Entry, theirs: Entry) -> bool:
    if theirs.mode not in {REGULAR, EXECUTABLE}:
        return False
    wanted = Text.of(objects.blob(ours.oid)).tells
    have = Text.of(objects.blob(theirs.oid)).tells
    return len(wanted & have) >= MOST * len(wanted) if wanted else False


def _block(tree: str, file: FileAtHome, block: Block, targets: Targets) -> Sign | None:
    for path in targets.places(tree, file):
        text = targets.text(tree, path)
        if text is None:
            continue
        before = file.text
        if _stands(text, before, block):
            return Sign(path, block.hunk, "reverse applies", block.weight)
        if _present(text, before, block):
            return Sign(path, block.hunk, "added lines present, removed lines absent", block.weight)
    return None


def _stands(text: Text, before: Text, block: Block) -> bool:
    """Whether the block's result stands between its own neighbours in its own definition, more often than at home."""
    if not (block.new or (block.lead and block.trail)):
        return False
    wanted = (*block.lead, *block.new, *block.trail)

    def count(where: Text) -> int:
        found = where.places(wanted)
        if not block.new:
            return len(found)
        starts = [at + len(block.lead) for at in found]
        return sum(scope(where.lines, at, at + len(block.new))[-1:] == block.scope[-1:] for at in starts)

    return count(text) > count(before)


def _present(text: Text, before: Text, block: Block) -> bool:
    """Whether its added lines came since, in the same definition, and its removed ones went."""
    if telling(block.old) and len(text.places(block.old)) >= max(len(before.places(block.old)), 1):
        return False
    if not telling(block.new):
        return False

    def count(where: Text) -> int:
        return sum(found[-1:] == block.scope[-1:] for found in where.scopes(block.new))

    return count(text) > count(before)
