"""The terminal, as Rich sees it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def make_console(file: TextIO) -> Console:
    """A console on stdout or stderr; without colours where a person wants none.

    The width is COLUMNS, else the terminal's, else 80.
    """
    return Console(file=file, no_color=_colourless(os.environ) or None, highlight=False, emoji=False)


def clean(text: str) -> str:
    """Text that moves no cursor and changes no colour, whatever others wrote into it; unfit characters as escapes."""
    encoding = sys.stdout.encoding or "utf-8"
    return (
        CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).encode(encoding, "backslashreplace").decode(encoding)
    )


def can_show(text: str, file: TextIO) -> bool:
    """Whether a stream's encoding has all of these characters."""
    try:
        text.encode(file.encoding or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _colourless(environment: Mapping[str, str]) -> bool:
    """See no-color.org: any value but an empty one."""
    return bool(environment.get("NO_COLOR"))
