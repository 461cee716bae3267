"""Whose is a change that was made on top of a stack: followed down to the patch that owns its lines, and put in there.

Every line of a file is followed through the stack, so that a change on top can be made in each tree from its owner up.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.errors import RefusedError
from patchq.git.lines import split_lines
from patchq.git.objects import EXECUTABLE, REGULAR, Entry
from patchq.git.trees import Change, diff_trees
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects

Opcode = tuple[str, int, int, int, int]


@dataclass(frozen=True)
class Unclear:
    """A change that no one patch owns: where it is, and the patches that it could belong to."""

    where: str
    candidates: tuple[str, ...]


def place(
    objects: Objects, ids: Sequence[str], trees: Sequence[str], after: str, into: str | None
) -> list[str]:
    """The trees of a stack with a change of its top made in the patches that own it.

    A file that one patch touches is that patch's. Where several do, a change belongs to the patch that brought the
    lines it replaces, or the lines around it where those are the base's.

    Args:
        objects: where trees are read and made.
        ids: the stack's patches.
        trees: the base's tree, and the tree after each patch.
        after: the tree that the top is to become.
        into: the patch that gets all of it, whoever owns it.

    Returns:
        The new trees, the base's first as it was, the last one `after`.

    Raises:
        RefusedError: a change could belong to more than one patch, or to none; the candidates are named. Or it cannot
            be made in its owner's tree.
    """
    versions = list(trees)
    unclear: list[Unclear] = []
    edits: list[dict[str, Entry | None]] = [{} for _ in trees]
    for change in diff_trees(objects, trees[-1], after):
        found = _File(objects, ids, trees, change)
        unclear += found.place(into, edits)
    if unclear:
        raise _unclear(unclear)
    for number in range(1, len(versions)):
        versions[number] = objects.edit_tree(versions[number], edits[number])
    if versions[-1] != after:
        raise RefusedError(
            "the change cannot be put into its patches.", "Put it into the last one: --into ID."
        )
    return versions


class _File:
    """One changed file, through the stack."""

    def __init__(self, objects: Objects, ids: Sequence[str], trees: Sequence[str], change: Change) -> None:
        self.objects = objects
        self.ids = ids
        self.change = change
        self.entries = [objects.lookup(tree, change.path) for tree in trees]
        pairs = zip(self.entries, self.entries[1:], strict=False)
        self.touching = [n for n, (one, two) in enumerate(pairs, start=1) if one != two]

    def place(self, into: str | None, edits: list[dict[str, Entry | None]]) -> list[Unclear]:
        """Make the change in `edits`, tree by tree; what is unclear is given back instead."""
        only = self.ids.index(into) + 1 if into is not None else self._only_owner()
        if not self._is_text():
            if only is None:
                return [Unclear(self.change.path, self._names(self.touching or range(1, len(self.ids) + 1)))]
            self._whole(only, edits)
            return []
        return self._lines(only, edits)

    def _only_owner(self) -> int | None:
        if len(self.touching) == 1:
            return self.touching[0]
        return 1 if len(self.ids) == 1 else None

    def _is_text(self) -> bool:
        old, new = self.change.old, self.change.new
        return (
            old is not None
            and new is not None
            and old.mode == new.mode
            and old.mode in {REGULAR, EXECUTABLE}
            and not any(b"\0" in self.objects.blob(e.oid) for e in (old, new))
        )

    def _whole(self, owner: int, edits: list[dict[str, Entry | None]]) -> None:
        later = next(
            (n for n in range(owner + 1, len(self.entries)) if self.entries[n] != self.entries[owner]), None
        )
        if later is not None:
            raise self._blocked(self.change.path, owner, later)
        for number in range(owner, len(self.entries)):
            edits[number][self.change.path] = self.change.new

    def _lines(self, only: int | None, edits: list[dict[str, Entry | None]]) -> list[Unclear]:
        if only is not None and not self._regular(only):
            adds = next((n for n in range(only + 1, len(self.entries)) if self._regular(n)), len(self.ids))
            raise self._blocked(self.change.path, only, adds)
        start = len(self.entries) - 1
        while start > 0 and self._regular(start - 1):
            start -= 1
        lines = [split_lines(self.objects.blob(e.oid)) if e else [] for e in self.entries]
        follower = _Follower(lines, start)
        wanted = split_lines(self.objects.blob(self.change.new.oid)) if self.change.new else []
        unclear = []
        for code in _opcodes(lines[-1], wanted):
            owners = {only} if only is not None else follower.owners(code)
            at = f"{self.change.path}:{code[1] + 1}"
            if len(owners) != 1:
                unclear.append(
                    Unclear(at, self._names(sorted(owners) or self.touching or range(1, len(self.ids) + 1)))
                )
                continue
            (owner,) = owners
            failed = follower.edit(code, wanted[code[3] : code[4]], owner)
            if failed is not None:
                raise self._blocked(at, owner, failed)
        for number in range(start, len(lines)):
            entry = self.entries[number]
            data = b"".join(follower.text[i] for i in follower.ids[number])
            if entry is not None and data != self.objects.blob(entry.oid):
                edits[number][self.change.path] = Entry(entry.mode, self.objects.put("blob", data))
        return unclear

    def _regular(self, number: int) -> bool:
        entry = self.entries[number]
        return entry is not None and entry.mode in {REGULAR, EXECUTABLE}

    def _names(self, numbers: Sequence[int]) -> tuple[str, ...]:
        return tuple(self.ids[n - 1] for n in numbers)

    def _blocked(self, where: str, owner: int, later: int) -> RefusedError:
        mine, other = self.ids[owner - 1], self.ids[later - 1]
        return RefusedError(
            f"{where}: the change cannot go into {mine}, as {other} changes the same place later.",
            f"Put it into that one: --into {other}.",
            files=(self.change.path,),
        )


class _Follower:
    """The lines of a file in every tree of a stack, each known by a number that it keeps from tree to tree.

    `top` is the last tree's file as it was before any change: the positions of changes count in it.
    """

    def __init__(self, lines: Sequence[Sequence[bytes]], start: int) -> None:
        self.text: list[bytes] = []
        self.owner: list[int] = []
        self.ids: list[list[int]] = [[] for _ in lines]
        self.ids[start] = [self._new(line, start) for line in lines[start]]
        for number in range(start + 1, len(lines)):
            now = list(self.ids[number - 1])
            for _, a, b, c, d in reversed(_opcodes(lines[number - 1], lines[number])):
                now[a:b] = [self._new(line, number) for line in lines[number][c:d]]
            self.ids[number] = now
        self.top = tuple(self.ids[-1])

    def owners(self, code: Opcode) -> set[int]:
        """The patches (by number, the base being 0 and none) whose lines a change of the top replaces, or stands between."""
        top = self.top
        _, a, b, _, _ = code
        replaced = {self.owner[i] for i in top[a:b]} - {0}
        return replaced or {self.owner[i] for i in (*top[max(a - 1, 0) : a], *top[b : b + 1])} - {0}

    def edit(self, code: Opcode, lines: Sequence[bytes], owner: int) -> int | None:
        """Make a change of the top in every tree from its owner up; give the tree in which it cannot be made, if any."""
        top = self.top
        _, a, b, _, _ = code
        gone = list(top[a:b])
        before, after = top[a - 1] if a else None, top[b] if b < len(top) else None
        new = [self._new(line, owner) for line in lines]
        places = []
        for number in range(owner, len(self.ids)):
            at = self._find(self.ids[number], gone, before, after)
            if at is None:
                later = range(number + 1, len(self.ids))
                found = (n for n in later if self._find(self.ids[n], gone, before, after) is not None)
                return next(found, number)
            places.append((number, at))
        for number, at in places:
            self.ids[number][at : at + len(gone)] = new
        return None

    @staticmethod
    def _find(ids: list[int], gone: list[int], before: int | None, after: int | None) -> int | None:
        """Where some lines stand together, or (where they are none) the place between two lines."""
        if gone:
            if gone[0] not in ids:
                return None
            at = ids.index(gone[0])
            return at if ids[at : at + len(gone)] == gone else None
        if before is not None and before in ids:
            return ids.index(before) + 1
        if after is not None and after in ids:
            return ids.index(after)
        return 0 if before is None and after is None and not ids else None

    def _new(self, line: bytes, owner: int) -> int:
        self.text.append(line)
        self.owner.append(owner)
        return len(self.text) - 1


def _opcodes(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode]:
    """The places at which two files differ, as difflib says them; what is alike at both ends is not compared."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    one, two = old[start : len(old) - end], new[start : len(new) - end]
    codes = difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes()
    return [(t, a + start, b + start, c + start, d + start) for t, a, b, c, d in codes if t != "equal"]


def _unclear(found: Sequence[Unclear]) -> RefusedError:
    said = [f"{u.where} could belong to {' or '.join(u.candidates[:4])}" for u in found]
    names = list(dict.fromkeys(c for u in found for c in u.candidates))
    return RefusedError(
        f"{listed(said)}.",
        f"Say which patch gets the changes with --into ID, one of: {listed(names)}; or commit each as `fixup! TITLE`.",
        files=tuple(dict.fromkeys(u.where.rpartition(":")[0] or u.where for u in found)),
    )
