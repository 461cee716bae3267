"""Lines that change while work goes on, on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.live import Live
from rich.text import Text

from patchq.ui.console import make_console
from patchq.ui.output import printable
from patchq.ui.shapes import STYLES
from patchq.ui.table import aligned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, RenderableType

    from patchq.progress import Line

ROOM = 3
"""Lines of the terminal that are left to the heading, to what is not shown, and to the cursor."""
LONGEST = "making the tree"
"""The longest state of a line that is not over: so wide is the column of states, that nothing jumps."""


class Board:
    """Pieces of work, a line each.

    Args:
        what: the heading.
        lines: how each stands.
        left: how long it is still going to take, in words.
    """

    def __init__(self, what: str, lines: Sequence[Line], left: Callable[[], str]) -> None:
        self._what = what
        self._lines = list(lines)
        self._left = left
        self._began = time.monotonic()

    def show(self, number: int, line: Line) -> None:
        """How a piece of work stands now."""
        self._lines[number] = line

    @contextlib.contextmanager
    def live(self, *, transient: bool) -> Iterator[None]:
        """Show it on stderr. What is there when the work is broken off stays, whatever `transient` says."""
        console = make_console(sys.stderr)
        live = Live(get_renderable=lambda: self.picture(console), console=console, refresh_per_second=5)
        with live:
            try:
                yield
            except BaseException:
                self._lines = [
                    replace(one, state="interrupted", running=()) if one.running else one
                    for one in self._lines
                ]
                raise
            live.transient = transient

    def picture(self, console: Console) -> RenderableType:
        """What to show now, no higher than the terminal: what is being done first, and what comes before and after it."""
        lines, now = list(self._lines), time.monotonic()
        shown = _fitting(lines, console.height - ROOM)
        columns = zip(*((one.name, one.kind, max(one.state, LONGEST, key=len)) for one in lines), strict=True)
        widths = [max(map(cell_len, column)) for column in columns]
        pictures = []
        for number in shown:
            line = lines[number]
            parts = [f"{part} {now - since:.0f} s" for part, since in line.running]
            detail = "; ".join(filter(None, [", ".join(parts), line.detail]))
            cells = [Text(line.name), Text(line.kind), Text(line.state, STYLES.get(line.state, ""))]
            picture = aligned([*cells, Text(printable(detail))], [*widths, 0])
            picture.no_wrap, picture.overflow = True, "ellipsis"
            pictures.append(picture)
        over = sum(line.final for line in lines)
        ahead = self._left() if over < len(lines) else ""
        heading = [f"{over} of {len(lines)} done", _clock(now - self._began), ahead, self._what]
        text = Text(", ".join(filter(None, heading)), style="bold", overflow="ellipsis", no_wrap=True)
        hidden = Counter(lines[n].state for n in set(range(len(lines))) - set(shown))
        rest = ", ".join(f"{count} {state}" for state, count in hidden.items())
        return Group(text, *pictures, *([Text(f"and {rest}", style="dim", no_wrap=True)] if rest else []))


def _fitting(lines: Sequence[Line], room: int) -> list[int]:
    """The numbers of the lines that there is room for: those at work, then their neighbours, in order."""
    if len(lines) <= room:
        return list(range(len(lines)))
    active = [n for n, line in enumerate(lines) if line.running or line.state == "making the tree"]
    first = active[0] if active else next((n for n, line in enumerate(lines) if not line.final), 0)
    nearest = sorted(range(len(lines)), key=lambda n: (n not in active, abs(n - first), n))
    return sorted(nearest[: max(1, room)])


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"
