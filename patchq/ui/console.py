"""The terminal, as Rich sees it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from rich.console import Console

if TYPE_CHECKING:
    from collections.abc import Mapping


def make_console(file: TextIO) -> Console:
    """A console on stdout or stderr; without colours where a person wants none.

    The width is COLUMNS, else the terminal's, else 80.
    """
    return Console(file=file, no_color=_colourless(os.environ) or None, highlight=False, emoji=False)


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
