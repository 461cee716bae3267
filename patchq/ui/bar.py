"""A bar with what is being done, how much of it is done, and the time that is left."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

from patchq.ui.console import make_console
from patchq.ui.output import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.progress import Task

    from patchq.progress import Unit

WIDTH = 16
"""Columns of the bar itself."""


class CountColumn(ProgressColumn):
    """How many are done where it is not known of how many."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """See Rich."""
        return Text(f"{task.completed:,.0f} {self._unit}" if task.completed else "")


class GuessColumn(ProgressColumn):
    """The time that is left where the total is a guess of the time that it takes."""

    def render(self, task: Task) -> Text:
        """See Rich."""
        left = (task.total or 0) - (task.elapsed or 0)
        return Text(
            f"about {left:.0f} s left" if left >= 1 else f"longer than guessed, {task.elapsed or 0:.0f} s"
        )


@contextlib.contextmanager
def open_bar(what: str, total: int | None, done: int, unit: Unit) -> Iterator[Callable[[int], None]]:
    """A bar on stderr that is taken away in the end; its value is called with the units done since the last call."""
    columns: list[ProgressColumn] = [
        TextColumn(
            "{task.description}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
        BarColumn(WIDTH),
    ]
    if unit == "seconds":
        columns.append(GuessColumn() if total else TimeElapsedColumn())
    elif total is None:
        columns += [CountColumn(unit), TimeElapsedColumn()]
    else:
        columns += [
            DownloadColumn() if unit == "bytes" else MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
        ]
    with Progress(*columns, console=make_console(sys.stderr), transient=True, expand=True) as progress:
        task = progress.add_task(printable(what), total=total, completed=done)
        yield lambda count: progress.advance(task, count)
