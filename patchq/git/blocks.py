"""The single edits that hunks are made of, and where in a file they stand: the text that verdicts are judged by.

A block is one run of removed and added lines. Its scope is the definitions around it, read from indentation, so that
the same lines in another function are not taken for it.
"""

from __future__ import annotations

import difflib
import functools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.git.lines import split_lines
from patchq.git.pick import occurrences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchq.git.diff import Hunk

CONTEXT = 3
_DEFINITION = re.compile(rb"\s*(?:async\s+)?((?:def|class)\s+\w+)")
_TELLING = re.compile(rb"\w\w")


@dataclass(frozen=True)
class Block:
    """One run of lines that a patch takes out, puts in, or replaces.

    Attributes:
        hunk: which hunk of its file it is in, from 1.
        line: where that hunk stands in the patch file, from 1.
        at: index of the first replaced line in the file before the patch.
        old: the lines taken out.
        new: the lines put in.
        lead: up to three unchanged lines before it.
        trail: up to three unchanged lines after it.
        scope: the definitions around it, outermost first.
    """

    hunk: int
    line: int
    at: int
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    lead: tuple[bytes, ...]
    trail: tuple[bytes, ...]
    scope: tuple[bytes, ...]

    @property
    def weight(self) -> int:
        """How many lines of it say something; at least one."""
        return max(len(telling(self.new)) + len(telling(self.old)), 1)


def telling(lines: Iterable[bytes]) -> list[bytes]:
    """The lines that say something, without their indentation; brackets and blank lines do not."""
    return [line.strip() for line in lines if _TELLING.search(line)]


def blocks_of(before: Sequence[bytes], hunks: Sequence[Hunk]) -> tuple[Block, ...]:
    """The blocks of a file's hunks.

    Args:
        before: the file's lines before the patch; every hunk's preimage stands in them.
        hunks: the hunks, in order.
    """
    blocks = []
    after: list[bytes] = []
    floor = 0
    for number, hunk in enumerate(hunks, start=1):
        expected = max(hunk.old_start - 1, 0) if hunk.old else hunk.old_start
        places = occurrences(before, hunk.old, floor) if hunk.old else [expected]
        start = min(places, key=lambda place, want=expected: abs(place - want)) if places else expected  # type: ignore[misc]
        after += before[floor:start]
        matcher = difflib.SequenceMatcher(None, hunk.old, hunk.new, autojunk=False)
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                continue
            old, new = hunk.old[i1:i2], hunk.new[j1:j2]
            text = [*after, *hunk.new] if new else before
            first = len(after) + j1 if new else start + i1
            blocks.append(
                Block(
                    number,
                    hunk.line,
                    start + i1,
                    old,
                    new,
                    tuple(before[max(start + i1 - CONTEXT, 0) : start + i1]),
                    tuple(before[start + i2 : start + i2 + CONTEXT]),
                    scope(text, first, first + len(new or old)),
                )
            )
        after += hunk.new
        floor = start + len(hunk.old)
    return tuple(blocks)


def with_blocks(before: Sequence[bytes], blocks: Iterable[Block]) -> bytes:
    """The file before the patch with some of its blocks made."""
    out: list[bytes] = []
    done = 0
    for block in blocks:
        out += before[done : block.at]
        out += block.new
        done = block.at + len(block.old)
    return b"".join([*out, *before[done:]])


def scope(lines: Sequence[bytes], first: int, end: int) -> tuple[bytes, ...]:
    """The names of the definitions around the lines from `first` up to `end`, outermost first.

    A definition is a `def` or `class`, or whatever stands unindented above; braces and labels do not count.
    """
    inside = [line for line in lines[first:end] if line.strip()]
    if not inside:
        return ()
    depth = min(_indent(line) for line in inside)
    found: list[bytes] = []
    for line in reversed(lines[:first]):
        if not line.strip() or _indent(line) >= depth:
            continue
        name = name_of(line)
        if name or _indent(line):
            depth = _indent(line)
        if name:
            found.append(name)
        if depth == 0:
            break
    return tuple(reversed(found))


def name_of(line: bytes) -> bytes:
    """What a line defines, such as `def first`; empty where it starts no definition."""
    match = _DEFINITION.match(line)
    if match:
        return b" ".join(match[1].split())
    if line[:1].isalpha() or line[:1] == b"_":
        return line.partition(b"(")[0].strip()
    return b""


@dataclass(frozen=True)
class Text:
    """A file's lines, with and without their indentation."""

    lines: tuple[bytes, ...]

    @staticmethod
    def of(data: bytes) -> Text:
        """The lines of a file."""
        return Text(tuple(split_lines(data)))

    @functools.cached_property
    def bare(self) -> tuple[bytes, ...]:
        """The lines without their indentation."""
        return tuple(line.strip() for line in self.lines)

    @functools.cached_property
    def names(self) -> frozenset[bytes]:
        """Everything that the lines define."""
        return frozenset(name for line in self.lines if (name := name_of(line)))

    @functools.cached_property
    def tells(self) -> frozenset[bytes]:
        """The different lines that say something."""
        return frozenset(line for line in self.bare if _TELLING.search(line))

    def places(self, wanted: Sequence[bytes]) -> list[int]:
        """The indexes at which lines stand in this order and unbroken, indentation aside."""
        return occurrences(self.bare, [line.strip() for line in wanted], 0) if wanted else []

    def scopes(self, wanted: Sequence[bytes]) -> list[tuple[bytes, ...]]:
        """The scope of each place at which lines stand."""
        return [scope(self.lines, at, at + len(wanted)) for at in self.places(wanted)]


def _indent(line: bytes) -> int:
    """How far a line is indented; a tab counts as eight."""
    return len(line.expandtabs(8)) - len(line.expandtabs(8).lstrip())
