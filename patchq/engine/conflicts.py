"""Conflict markers read and filled in: which conflicts a file has, and what a person made of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.git.lines import split_lines
from patchq.git.pick import occurrences
from patchq.series.resolutions import Resolution, Resolutions

if TYPE_CHECKING:
    from collections.abc import Sequence

ANCHOR = 3
"""Lines on either side of a conflict by which it is found again in the resolved file."""
_OPEN, _BASE, _SPLIT, _CLOSE = b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> "


@dataclass(frozen=True)
class Conflict:
    """One conflict of a merged file: what stands on the three sides."""

    ours: tuple[bytes, ...]
    base: tuple[bytes, ...]
    theirs: tuple[bytes, ...]

    def sides(self) -> tuple[str, str, str] | None:
        """Base, upstream and patch as text; None where one is not UTF-8."""
        try:
            base, ours, theirs = (b"".join(side).decode() for side in (self.base, self.ours, self.theirs))
        except UnicodeDecodeError:
            return None
        return base, ours, theirs


Piece = tuple[bytes, ...] | Conflict


def read_pieces(marked: bytes) -> list[Piece]:
    """A file with conflict markers as runs of plain lines and conflicts in turn, beginning and ending with a run."""
    pieces: list[Piece] = []
    plain: list[bytes] = []
    sides: dict[bytes, list[bytes]] | None = None
    at = _OPEN
    for line in split_lines(marked):
        if sides is None:
            if line.startswith(_OPEN):
                pieces.append(tuple(plain))
                plain, at = [], _OPEN
                sides = {_OPEN: [], _BASE: [], _SPLIT: []}
            else:
                plain.append(line)
        elif line.startswith(_BASE) and at == _OPEN:
            at = _BASE
        elif line.rstrip(b"\r\n") == _SPLIT and at == _BASE:
            at = _SPLIT
        elif line.startswith(_CLOSE) and at == _SPLIT:
            pieces.append(Conflict(tuple(sides[_OPEN]), tuple(sides[_BASE]), tuple(sides[_SPLIT])))
            sides = None
        else:
            sides[at].append(line)
    return [*pieces, tuple(plain)]


def marker_line(data: bytes) -> int:
    """The first line, from 1, that is still a conflict marker; 0 where there is none."""
    for number, line in enumerate(split_lines(data), start=1):
        if line.startswith((_OPEN, _BASE, _CLOSE)):
            return number
    return 0


def fill_in(marked: bytes, known: Resolutions) -> tuple[bytes, int]:
    """A file with its known conflicts resolved, and how many conflicts are left in it."""
    left = 0
    out: list[bytes] = []
    lines = split_lines(marked)
    at = 0
    for piece in read_pieces(marked):
        size = len(piece) if isinstance(piece, tuple) else _height(piece)
        found = None
        if isinstance(piece, Conflict):
            sides = piece.sides()
            found = known.find(*sides) if sides else None
            left += found is None
        out += [found.resolved.encode()] if found else lines[at : at + size]
        at += size
    return b"".join(out), left


def learn(file: str, marked: bytes, resolved: bytes) -> list[Resolution]:
    """What a person made of each conflict of a file, as far as its place in the resolved file can be told.

    A conflict is found by the lines next to it; where those were edited too, it is not learnt.
    """
    pieces = read_pieces(marked)
    lines = split_lines(resolved)
    found = []
    floor = 0
    for before, piece, after in zip(pieces, pieces[1:], pieces[2:], strict=False):
        if not isinstance(piece, Conflict) or isinstance(before, Conflict) or isinstance(after, Conflict):
            continue
        start = _end_of(lines, before[-ANCHOR:], floor)
        if start is None:
            continue
        end = _start_of(lines, after[:ANCHOR], start)
        sides = piece.sides()
        if end is None or sides is None:
            continue
        floor = end
        try:
            text = b"".join(lines[start:end]).decode()
        except UnicodeDecodeError:
            continue
        found.append(Resolution(file, *sides, text))
    return found


def _height(conflict: Conflict) -> int:
    return len(conflict.ours) + len(conflict.base) + len(conflict.theirs) + 4


def _end_of(lines: Sequence[bytes], anchor: Sequence[bytes], floor: int) -> int | None:
    """Where what follows an anchor begins; the file's start where there is no anchor."""
    if not anchor:
        return 0 if floor == 0 else None
    places = occurrences(lines, anchor, floor)
    return places[0] + len(anchor) if places else None


def _start_of(lines: Sequence[bytes], anchor: Sequence[bytes], floor: int) -> int | None:
    """Where an anchor begins; the file's end where there is no anchor."""
    if not anchor:
        return len(lines)
    places = occurrences(lines, anchor, floor)
    return places[0] if places else None
