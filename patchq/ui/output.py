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
Reason = tuple[str, str, str]
"""Of what (a base, a gate), which verdict, and why; the parts of that are divided by `; `."""
Part = tuple[str, "Sequence[str | Reason]"]
"""A heading, and the paragraphs and reasons under it."""


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
    _write(printable(text) + "\n")


def print_text(text: str) -> None:
    """Whole text, line by line."""
    _write(printable(text))


def printable(text: str) -> str:
    """Text that steers no terminal, whatever others wrote into it; what stdout cannot carry is escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    return shown(text).encode(encoding, "backslashreplace").decode(encoding)


def drop_stdout() -> None:
    """Let what is still to be written go nowhere, so that Python does not try it once more and fail as it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        drop_stdout()


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where a person watches; tab-separated lines, without headings, where stdout is a pipe."""
    if sys.stdout.isatty():
        from patchq.ui.table import print_rows

        print_rows(headings, rows)
        return
    for row in rows:
        print_line("\t".join(cell.replace("\t", " ").replace("\n", " ") for cell in row))


def print_matrix(corner: str, columns: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> None:
    """A table of verdicts; where a person watches through a terminal too narrow for the words, of shapes."""
    if sys.stdout.isatty():
        from patchq.ui.table import print_steps

        print_steps(corner, columns, rows)
        return
    print_table([corner, *columns], [[name, *words] for name, words in rows])


def print_reasons(reasons: Sequence[tuple[str, Sequence[Reason]]], more: str) -> None:
    """What there is to say of verdicts, by what they are about: under each name on a terminal, else a line each.

    Where several bases in a row say the same, a terminal shows it once; `more` is shown where it has no room for all.
    """
    if sys.stdout.isatty():
        from patchq.ui.page import folded
        from patchq.ui.table import print_notes

        print_notes([(name, list(folded(lines))) for name, lines in reasons if lines], more)
        return
    for name, lines in reasons:
        for where, word, why in lines:
            print_line(f"{name} on {where}: {word}: {why}")


def print_page(title: str, parts: Sequence[Part]) -> None:
    """A page: a title, then headings with what stands under them, wrapped to the terminal; plain where stdout is a pipe."""
    if sys.stdout.isatty():
        from patchq.ui.page import print_parts

        print_parts(title, parts)
        return
    print_line(title)
    for heading, lines in parts:
        print_line(f"\n{heading}:")
        for line in lines:
            text = ": ".join(filter(None, line)) if isinstance(line, tuple) else line
            for one in text.split("\n"):
                print_line(f"  {one}".rstrip())
