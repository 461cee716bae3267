"""Small ways of saying things that several messages share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 5
_CONTROLS = {
    code: ascii(chr(code))[1:-1]
    for code in (*range(9), *range(11, 32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def listed(names: Sequence[str]) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def shown(text: str) -> str:
    """What others wrote, for a terminal: characters that would steer it or turn its text round are escaped."""
    return text.translate(_CONTROLS)
