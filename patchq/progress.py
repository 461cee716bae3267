"""Telling a person how far a long step is; what it looks like is decided in `patchq.ui`."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

Unit = Literal["bytes", "files", "objects", "tests", "steps", "seconds"]


@dataclass(frozen=True)
class Line:
    """How one of several pieces of work stands.

    Attributes:
        name: what it is about, such as a patch's id.
        kind: which work of that it is, such as a gate.
        state: in a word or two: `waiting`, `running`, or what came of it.
        detail: what there is to say besides.
        running: the parts that are being done, each with when it began by `time.monotonic()`.
        final: whether it is over.
    """

    name: str
    kind: str
    state: str = "waiting"
    detail: str = ""
    running: tuple[tuple[str, float], ...] = ()
    final: bool = False


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

    def lines(
        self, what: str, lines: Sequence[Line], left: Callable[[], str]
    ) -> AbstractContextManager[Callable[[int, Line], None]]:
        """Show several pieces of work side by side, a line each, while they are done.

        Args:
            what: what is being done.
            lines: how each stands now, in the order to show them in.
            left: how long it is going to take, in words; empty where that is not known. Asked again and again.

        Returns:
            A context manager whose value is called, from any thread, with the number of a line and how it stands now.
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

    @contextlib.contextmanager
    def lines(
        self, what: str, lines: Sequence[Line], left: Callable[[], str]
    ) -> Iterator[Callable[[int, Line], None]]:
        """See `Progress.lines`."""
        yield lambda _number, _line: None
