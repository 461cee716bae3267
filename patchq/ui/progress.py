"""Progress on stderr: bars for a person, one plain line a step for a log."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from patchq.progress import Progress, Unit


def make_progress() -> Progress:
    """Bars where stderr is a terminal, lines elsewhere."""
    return Bars() if sys.stderr.isatty() else Lines()


class Lines:
    """One line when a step begins; nothing moves."""

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
        size = f" ({total:,} {unit}{f', {done:,} there' if done else ''})" if total else ""
        print(f"{what}{size}", file=sys.stderr, flush=True)
        yield lambda _: None


class Bars:
    """A bar a step, with the time that is left."""

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
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        amount = DownloadColumn() if unit == "bytes" else MofNCompleteColumn()
        clock = TimeRemainingColumn() if total else TimeElapsedColumn()
        columns = [
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            amount,
            clock,
        ]
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(what, total=total, completed=done)
            yield lambda count: progress.advance(task, count)
