"""Results on stdout: one JSON document, a table for a person, or plain lines for a pipe."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from patchq.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

STYLES = {
    "clean": "green",
    "applied": "green",
    "ok": "green",
    "offset": "yellow",
    "conflict": "red",
    "missing": "red",
    "merged": "yellow",
    "landed": "cyan",
    "reworked": "cyan",
    "partial": "magenta",
    "reverted": "yellow",
    "carried": "green",
    "left": "cyan",
    "differs": "red",
    "extra": "red",
    "uncommitted": "yellow",
    "pinned": "cyan",
    "current": "cyan",
}
"""Colours of words that are verdicts; each word says the same without its colour."""


def print_json(document: dict[str, Any]) -> None:
    """The one document of `--json`; escaped where stdout could not carry a name in it."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(document, indent=2)
    _write(text + "\n")


def print_line(text: str) -> None:
    """A plain line, whatever it contains."""
    _write(_printable(text) + "\n")


def print_text(text: str) -> None:
    """Whole text, line by line."""
    _write(_printable(text))


def drop_stdout() -> None:
    """Let what is still to be written go nowhere, so that Python does not try it once more and fail as it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        drop_stdout()


def _printable(text: str) -> str:
    encoding = sys.stdout.encoding or "utf-8"
    return shown(text).encode(encoding, "backslashreplace").decode(encoding)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where a person watches; tab-separated lines, without headings, where stdout is a pipe."""
    if not sys.stdout.isatty():
        for row in rows:
            print_line("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for heading in headings:
        table.add_column(heading, overflow="fold" if heading in {"title", "file"} else "ellipsis")
    for row in rows:
        table.add_row(*(Text(_printable(cell), style=STYLES.get(cell, "")) for cell in row))
    Console(no_color=True if os.environ.get("NO_COLOR") else None).print(table)


def print_page(title: str, parts: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A page: a title, then headings with lines under them, wrapped to the terminal; plain where stdout is a pipe."""
    if not sys.stdout.isatty():
        print_line(title)
        for heading, lines in parts:
            print_line(f"\n{heading}:")
            for line in lines:
                for one in line.split("\n"):
                    print_line(f"  {one}".rstrip())
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(no_color=True if os.environ.get("NO_COLOR") else None)
    console.print(Text(_printable(title), style="bold"))
    for heading, lines in parts:
        console.print()
        console.print(Text(heading, style="bold cyan"))
        for line in lines:
            indent = len(line) - len(line.lstrip(" "))
            style = STYLES.get(
                line.split(":")[1].strip() if heading == "verdicts" and ":" in line else "", ""
            )
            console.print(Padding(Text(_printable(line.strip()), style=style), (0, 0, 0, 2 + indent)))
