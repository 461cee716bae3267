"""Telling a person how far a long step is; what it looks like is decided in `patchq.ui`."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

Unit = Literal["bytes", "files", "objects", "tests", "steps", "seconds"]


class Progress(Protocol):
    """Something that shows long steps."""

    def task(
        self,
        what: str,
        *,
        total: int | None,
        done: int = 0,
        unit: Unit,
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Show a step while it runs.

        Args:
            what: what is being done.
            total: how many units it has, where known.
            done: how many are done already.
            unit: what is counted.

        Returns:
            A context manager whose value is called with the number of units done since the last call.
        """
        ...


class Silent:
    """Shows nothing."""

    @contextlib.contextmanager
    def task(
        self,
        what: str,
        *,
        total: int | None,
        done: int = 0,
        unit: Unit,
    ) -> Iterator[Callable[[int], None]]:
        """See `Progress.task`."""
        yield lambda _: None
