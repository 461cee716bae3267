"""Progress on stderr: bars and live lines for a person, plain lines for a log."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from patchq.progress import Line, Progress, Unit


LONG = 10
"""Seconds from which a step's end is told in a log too."""


def make_progress() -> Progress:
    """Bars where stderr is a terminal that can move its cursor, lines elsewhere."""
    return Bars() if sys.stderr.isatty() and os.environ.get("TERM") not in {"dumb", "unknown"} else Lines()


class Lines:
    """One line when a step begins, and one when a piece of work begins or is over; nothing moves."""

    @contextlib.contextmanager
    def task(
        self,
        what: str,
        *,
        total: int | None,
        done: int = 0,
        unit: Unit,
    ) -> Iterator[Callable[[int], None]]:
        """See `patchq.progress.Progress.task`."""
        about = "about " if unit == "seconds" else ""
        size = f" ({about}{total:,} {unit}{f', {done:,} there' if done else ''})" if total else ""
        _say(f"{what}{size}")
        began = time.monotonic()
        yield lambda _: None
        took = time.monotonic() - began
        if took >= LONG:
            _say(f"{what}: done in {took:.0f} s")

    @contextlib.contextmanager
    def lines(
        self, what: str, lines: Sequence[Line], left: Callable[[], str]
    ) -> Iterator[Callable[[int, Line], None]]:
        """See `patchq.progress.Progress.lines`."""
        now = list(lines)
        lock = threading.Lock()

        def told(line: Line) -> str:
            over = f"[{sum(one.final for one in now)}/{len(now)}] " if line.final else ""
            return over + ": ".join(filter(None, [f"{line.name} {line.kind}", line.state, line.detail]))

        def show(number: int, line: Line) -> None:
            with lock:
                was, now[number] = now[number], line
                if line.final:
                    ahead = "" if all(one.final for one in now) else left()
                    _say(told(line) + (f" ({ahead})" if ahead else ""))
                elif line.running and not was.running and not was.detail.endswith("done"):
                    _say(told(line))

        _say(", ".join(filter(None, [what, left()])))
        for line in now:
            if line.final:
                _say(told(line))
        yield show


class Bars:
    """A bar a step, with the time that is left; and a line that changes for each of several pieces of work."""

    @contextlib.contextmanager
    def task(
        self,
        what: str,
        *,
        total: int | None,
        done: int = 0,
        unit: Unit,
    ) -> Iterator[Callable[[int], None]]:
        """See `patchq.progress.Progress.task`."""
        from patchq.ui.bar import open_bar

        with open_bar(what, total, done, unit) as step:
            yield step

    @contextlib.contextmanager
    def lines(
        self, what: str, lines: Sequence[Line], left: Callable[[], str]
    ) -> Iterator[Callable[[int, Line], None]]:
        """See `patchq.progress.Progress.lines`.

        They go away in the end where a table of them follows on the same terminal. They stay where none does, and where
        the work is broken off.
        """
        from patchq.ui.live import Board

        board = Board(what, lines, left)
        with board.live(transient=sys.stdout.isatty()):
            yield board.show


def _say(line: str) -> None:
    encoding = sys.stderr.encoding or "utf-8"
    printable = line.encode(encoding, "backslashreplace").decode(encoding)
    print(printable, file=sys.stderr, flush=True)
