"""Tables on a terminal, in the form that its width has room for; nothing is cut off."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from rich import box
from rich.cells import cell_len
from rich.console import Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from patchq.ui.console import can_show, make_console
from patchq.ui.output import printable
from patchq.ui.shapes import LETTERS, SHAPES, STYLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rich.console import RenderableType

GAP = 2
"""Columns between two cells."""
FOLDERS = re.compile(r"\b(?:[\w.-]+/)+(?=[\w.-])")
"""The directories of a path, which a line that is cut off has no room for."""
RULED = "ruled by a person: "
"""How the reason begins that is a person's own words."""
SCREENS = 2
"""Heights of the terminal that reasons may take before they are shown in a line each."""
LONG = 32
"""Columns from which a cell is prose that may be wrapped, and what such prose needs to be read."""


def print_rows(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under headings.

    On one line each where that fits; else with the long cells wrapped in their columns; where those would be too narrow,
    with what does not fit on lines of its own beneath.
    """
    console = make_console(sys.stdout)
    cells = [[Text(printable(cell), STYLES.get(cell, "")) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(headings, *rows, strict=True)]
    long = {n for n, width in enumerate(widths) if n and width > LONG}
    short = sum(w + GAP for n, w in enumerate(widths) if n not in long)
    room = (console.width - short) // len(long) - GAP if long else console.width - short + GAP
    if sum(widths) + GAP * (len(widths) - 1) <= console.width:
        console.print(_table(headings, cells, widths, set()))
    elif long and room >= LONG:
        console.print(_table(headings, cells, widths, long))
    else:
        console.print(_stacked(headings, cells, widths, console.width))
    console.print()


def print_steps(corner: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A matrix of words: in words where they fit, else as shapes under headings that step down, with what they mean."""
    console = make_console(sys.stdout)
    table = [[name, *words] for name, words in rows]
    widths = [max(map(_width, column)) for column in zip([corner, *columns], *table, strict=True)]
    if sum(widths) + GAP * len(columns) <= console.width:
        print_rows([corner, *columns], table)
        return
    drawn = can_show("".join([*SHAPES.values(), "│"]), sys.stdout)
    marks, bar = (SHAPES, "│") if drawn else (LETTERS, "|")
    first = widths[0] + GAP
    for number, column in enumerate(columns):
        over = f"{bar} " * number
        start = corner if number == len(columns) - 1 else ""
        console.print(Text.assemble((f"{start:{first}}", "bold"), (over, "dim"), (column, "bold")))
    for name, words in rows:
        line = Text(printable(name) + " " * (first - _width(name)))
        for word in words:
            line.append(f"{marks.get(word, '-')} ", STYLES.get(word, ""))
        line.rstrip()
        console.print(line)
    seen = [word for word in marks if any(word in words for _, words in rows)]
    console.print()
    legend = Text()
    for word in seen:
        if legend.cell_len + _width(word) + 2 > console.width:
            console.print(legend)
            legend = Text()
        legend.append_text(Text.assemble((marks[word], STYLES.get(word, "")), f" {word}   "))
    legend.rstrip()
    console.print(legend)
    console.print()


def print_notes(notes: Sequence[tuple[str, Sequence[tuple[str, str, str]]]], more: str) -> None:
    """What there is to say of several things: under each name, for where, a word, and under that the reason.

    Args:
        notes: names, and for each where, the word and the reason, whose parts are divided by `; `.
        more: the way to all of it, for where it is several and more than two screens: then a line is shown of each.
    """
    console = make_console(sys.stdout)
    whole = Group(*(part for name, lines in notes for part in _note(name, lines)))
    if len(notes) == 1 or len(console.render_lines(whole)) <= SCREENS * console.height:
        console.print(whole)
        return
    for name, lines in notes:
        console.print(Text(printable(name), "bold"))
        widths = [max(map(_width, column)) for column in zip(*(line[:2] for line in lines), strict=True)]
        for where, word, reason in lines:
            head = aligned([Text(f"  {printable(where)}"), _styled(word)], [widths[0] + 2, widths[1]])
            head.append(
                " " * (sum(widths) + 2 + 2 * GAP - head.cell_len) + FOLDERS.sub("", printable(reason))
            )
            console.print(head, no_wrap=True, overflow="ellipsis", crop=False)
    console.print(f"\n{more}")


def note_lines(where: str, word: str, reason: str) -> list[RenderableType]:
    """A place and a word, and each part of the reason under them."""
    parts = [reason] if reason.startswith(RULED) else reason.split("; ")
    head = Text.assemble("  ", f"{printable(where)} " if where else "", _styled(word))
    return [head, *(Padding(Text(printable(part), overflow="fold"), (0, 0, 0, 4)) for part in parts if part)]


def _note(name: str, lines: Sequence[tuple[str, str, str]]) -> Iterator[RenderableType]:
    yield Text(printable(name), "bold")
    for line in lines:
        yield from note_lines(*line)


def _styled(word: str) -> Text:
    return Text(printable(word), STYLES.get(word, ""))


def _table(
    headings: Sequence[str], cells: Iterable[Sequence[Text]], widths: Sequence[int], wrapped: set[int]
) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False, show_edge=False, header_style="bold"
    )
    for number, heading in enumerate(headings):
        if number in wrapped:
            table.add_column(Text(heading), overflow="fold")
        else:
            table.add_column(Text(heading), no_wrap=True, min_width=widths[number])
    for row in cells:
        table.add_row(*row)
    return table


def _stacked(
    headings: Sequence[str], cells: Sequence[Sequence[Text]], widths: Sequence[int], width: int
) -> RenderableType:
    """The cells that fit beside the first on its line; the others beneath it, with their headings."""
    beside, used = [0], widths[0]
    for number in range(1, len(widths)):
        if widths[number] <= LONG and used + GAP + widths[number] <= width:
            beside.append(number)
            used += GAP + widths[number]
    below = [n for n in range(len(widths)) if n not in beside]
    bare = len(below) == 1 and widths[below[0]] > LONG
    shown: list[RenderableType] = []
    head = [Text(headings[n], "bold") for n in beside]
    shown.append(aligned(head, [widths[n] for n in beside]))
    for row in cells:
        shown.append(aligned([row[n] for n in beside], [widths[n] for n in beside]))
        told = [
            row[n] if bare else Text.assemble((f"{headings[n]} ", "dim"), row[n])
            for n in below
            if row[n].plain
        ]
        if told:
            shown.append(Padding(Text(", ").join(told), (0, 0, 0, GAP)))
    return Group(*shown)


def aligned(cells: Sequence[Text], widths: Sequence[int]) -> Text:
    """Cells beside each other on one line, each as wide as is said."""
    line = Text(overflow="fold")
    for cell, width in zip(cells, widths, strict=True):
        line.append_text(cell)
        line.append(" " * (width - cell.cell_len + GAP))
    line.rstrip()
    return line


def _width(cell: str) -> int:
    return max((cell_len(printable(line)) for line in cell.split("\n")), default=0)
