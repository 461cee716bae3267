"""How far a call of `patchq test` is: how each task stands while its runs go on, and how long they will still take."""

from __future__ import annotations

import heapq
import threading
import time
from typing import TYPE_CHECKING

from patchq.progress import Line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from patchq.testing.plan import Task
    from patchq.testing.prove import Verdict
    from patchq.testing.schedule import Session, Want

ENOUGH = 90
"""Seconds up to which a time is told in seconds."""


class Follow:
    """Keeps what is known of each run, and shows the line of each task that it belongs to.

    The schedule and its threads tell it what begins and what is over; it is safe to call from any thread. `show` is
    where it shows them, by the number of the task.

    Args:
        tasks: the tasks that are run, each with what is wanted for it.
        sessions: what has to be run, in the order in which it is begun.
        jobs: sessions at one time.
        past: seconds that a run took before, where that is known.
    """

    def __init__(
        self,
        tasks: Sequence[tuple[Task, Sequence[Want]]],
        sessions: Sequence[Session],
        jobs: int,
        past: Callable[[Want], float | None],
    ) -> None:
        self._tasks = tasks
        self._sessions = sessions
        self._jobs = jobs
        self._past = {want: past(want) for session in sessions for want in session.wants}
        self._ahead = set(self._past)
        self._making: set[Want] = set()
        self._began: dict[Want, float] = {}
        self._before = ""
        self._lock = threading.RLock()
        self.show: Callable[[int, Line], None] = lambda _number, _line: None

    def line(self, number: int) -> Line:
        """How a task stands that is not decided."""
        task, wants = self._tasks[number]
        done = sum(want not in self._ahead for want in wants)
        running = {_part(task, want): self._began[want] for want in wants if want in self._began}
        detail = f"{done} of {len(wants)} runs done" if done else self._before
        if running:
            return Line(task.patch.id, task.gate, "running", detail, tuple(running.items()))
        making = any(want in self._making for want in wants)
        return Line(task.patch.id, task.gate, "making the tree" if making else "waiting", detail)

    def prepare(self, what: str) -> None:
        """Something is being done before the first session."""
        with self._lock:
            self._before = what
            self._tell(self._past)

    def make(self, session: Session) -> None:
        """The tree of a session is being made."""
        with self._lock:
            self._before = ""
            self._making.update(session.wants)
            self._tell(session.wants)

    def begin(self, session: Session, group: str) -> None:
        """A group of a session is being run; those before it in the session are over."""
        with self._lock:
            for want in session.wants:
                self._making.discard(want)
                if self._began.pop(want, None) is not None:
                    self._ahead.discard(want)
                if want.group.name == group:
                    self._began[want] = time.monotonic()
            self._tell(session.wants)

    def end(self, wants: Sequence[Want]) -> None:
        """All of a session is over."""
        with self._lock:
            for want in wants:
                self._making.discard(want)
                self._ahead.discard(want)
                self._began.pop(want, None)
            self._tell(wants)

    def decided(self, number: int, verdict: Verdict) -> None:
        """What came of a task. Nothing that is told of its runs later takes the place of that."""
        with self._lock:
            self.show(number, final_line(verdict))

    def left(self) -> str:
        """How long it will take from now on, in words, by how long the same tests took before; empty where that is not known.

        Nothing is added for runs that were never made before: then it is `at least` so long.
        """
        now = time.monotonic()
        with self._lock:
            unknown = [want for want in self._ahead if self._past[want] is None]
            if len(unknown) == len(self._ahead):
                return ""
            seconds = _spread([self._remaining(session, now) for session in self._sessions], self._jobs)
        if unknown:
            return f"at least {duration(seconds)} left" if seconds else ""
        return f"about {duration(seconds)} left" if seconds else "longer than the last time"

    def _remaining(self, session: Session, now: float) -> float:
        """Seconds that a session will still take, by the past; 0 for what takes longer than it did."""
        ahead = [want for want in session.wants if want in self._ahead]
        spent = {want: now - self._began.get(want, now) for want in ahead}
        return sum(max(0.0, (self._past[want] or 0.0) - spent[want]) for want in ahead)

    def _tell(self, wants: Iterable[Want]) -> None:
        """Show the tasks that these runs belong to and that are not over; under the lock, so that no line comes late."""
        touched = set(wants)
        for number, (_, wanted) in enumerate(self._tasks):
            if touched.intersection(wanted) and any(want in self._ahead for want in wanted):
                self.show(number, self.line(number))


def final_line(verdict: Verdict) -> Line:
    """The line of a task that was decided."""
    task, told = verdict.task, []
    if verdict.after:
        told.append(verdict.after.problem or str(verdict.after.counts))
    if verdict.before:
        told.append(f"before {verdict.before.problem or verdict.before.counts}")
    if verdict.same is not None:
        told.append(f"{verdict.same} neighbours alike")
    if verdict.after:
        told.append("cached" if verdict.cached else f"{verdict.seconds:.0f} s")
    elif verdict.against or verdict.notes:
        told.append((*verdict.against, *verdict.notes)[0].removeprefix(f"{verdict.status}: "))
    return Line(task.patch.id, task.gate, verdict.status, "; ".join(told), final=True)


def duration(seconds: float) -> str:
    """A time, as exactly as a guess can be."""
    return f"{seconds:.0f} s" if seconds < ENOUGH else f"{seconds / 60:.0f} min"


def _part(task: Task, want: Want) -> str:
    if task.neighbours is not None and want.group.name == task.neighbours.name:
        return "neighbours"
    return "after" if want.tree == task.trees.after else "before"


def _spread(remaining: Iterable[float], jobs: int) -> float:
    """Seconds until all is done, where so many at one time are taken in order."""
    busy = [0.0] * jobs
    for seconds in remaining:
        heapq.heapreplace(busy, busy[0] + seconds)
    return max(busy)
