"""A page on a terminal."""

from __future__ import annotations

import sys
from itertools import groupby
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from patchq.ui.console import make_console
from patchq.ui.output import printable
from patchq.ui.table import note_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from patchq.ui.output import Part, Reason

PROSE = 116
"""Columns at most that a page takes, so that its lines can be read."""


def print_parts(title: str, parts: Sequence[Part]) -> None:
    """A title, then headings with what stands under them, wrapped.

    Line breaks within a paragraph are those of whoever wrote it for another width: they are taken out.
    """
    console = make_console(sys.stdout)
    console.width = min(console.width, PROSE)
    console.print(Text(printable(title), style="bold"))
    for heading, lines in parts:
        console.print()
        console.print(Text(printable(heading), style="bold cyan"))
        reasons = [line for line in lines if isinstance(line, tuple)]
        for line in folded(reasons) if len(reasons) == len(lines) else lines:
            if isinstance(line, tuple):
                console.print(*note_lines(*line), sep="\n")
                continue
            for paragraph in line.split("\n\n"):
                text = " ".join(printable(paragraph).split())
                indent = 2 + len(paragraph) - len(paragraph.lstrip(" "))
                if text.startswith("- "):
                    console.print(f"{' ' * indent}-", end=" ")
                    wrapped = Text(text[2:]).wrap(console, console.width - indent - 2)
                    console.print(Text(f"\n{' ' * (indent + 2)}").join(wrapped))
                else:
                    console.print(Padding(Text(text, overflow="fold"), (0, 0, 0, indent)))


def folded(reasons: Sequence[Reason]) -> Iterator[Reason]:
    """The same with each run of places of which the same is said as one."""
    for said, run in groupby(reasons, key=lambda reason: reason[1:]):
        places = [where for where, *_ in run]
        yield places[0] if len(places) == 1 else f"{places[0]} to {places[-1]}", *said
