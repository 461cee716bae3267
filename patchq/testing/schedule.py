"""Running what a plan asks for: what is known comes from the ledger, the rest is run side by side, each tree once."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.testing.interpreters import Interpreters, Plain, open_interpreters
from patchq.testing.runner import Group, Limits, Workshop, run_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from patchq.testing.follow import Follow
    from patchq.testing.ledger import Ledger
    from patchq.testing.outcome import Outcome

MEMORY_SHARE = 0.8
"""Of the machine's memory that all sessions together may use."""


@dataclass(frozen=True)
class Want:
    """One group of tests on one tree, at one gate for one target."""

    tree: str
    group: Group
    gate: str
    target: str


@dataclass(frozen=True)
class Session:
    """What is run on one tree, one after the other; on a card one group alone."""

    tree: str
    card: bool
    wants: tuple[Want, ...]


@dataclass
class Known:
    """Outcomes by what was wanted, and which of them came from the ledger."""

    outcomes: dict[Want, Outcome] = field(default_factory=dict)
    cached: set[Want] = field(default_factory=set)

    def has(self, wants: Iterable[Want]) -> bool:
        """Whether the outcomes of all of them are known."""
        return all(want in self.outcomes for want in wants)


def total_memory() -> int:
    """Bytes that this machine, or the control group that this process is in, has."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            limit = int(Path(name).read_text("ascii"))
        except (OSError, ValueError):
            continue
        return min(machine, limit)
    return machine


def limits_for(jobs: int) -> Limits:
    """What each of so many sessions at one time may use."""
    return Limits(int(total_memory() * MEMORY_SHARE / jobs), max(1, (os.cpu_count() or 1) // jobs))


def find_known(wanted: Iterable[Want], ledger: Ledger) -> tuple[Known, list[Session]]:
    """What the ledger knows of what is wanted, and the sessions that run the rest; the same may be wanted twice."""
    known = Known()
    sessions: dict[tuple[str, str], list[Want]] = {}
    for want in dict.fromkeys(wanted):
        outcome = ledger.find(want.tree, want.group, want.gate, want.target)
        if outcome is not None:
            known.outcomes[want] = outcome
            known.cached.add(want)
        else:
            sessions.setdefault((want.tree, want.group.name if want.group.card else ""), []).append(want)
    return known, [Session(tree, bool(card), tuple(wants)) for (tree, card), wants in sessions.items()]


def run_sessions(
    sessions: Sequence[Session],
    known: Known,
    base: str,
    shop: Workshop,
    ledger: Ledger,
    jobs: int,
    follow: Follow,
    settle: Callable[[], None],
) -> None:
    """Run sessions and add their outcomes to what is known.

    Args:
        sessions: what to run.
        known: where the outcomes go.
        base: the base's tree, from which it is learnt what can be imported beforehand.
        shop: where to run.
        ledger: where outcomes are kept.
        jobs: sessions at one time.
        follow: told what begins and what is over.
        settle: called each time that more is known.
    """
    shop.trees.prune()
    with contextlib.ExitStack() as stack:
        ways: dict[bool, Interpreters] = {}
        if any(not session.card for session in sessions):
            follow.prepare("importing what every test imports" if shop.environment.preload else "")
            tree = shop.trees.make(base) if shop.environment.preload else Path("/")
            opened = open_interpreters(shop.environment, shop.isolation, tree, shop.variables(card=False))
            ways[False] = stack.enter_context(opened)
        ways[True] = Plain(shop.environment, shop.isolation)
        native = any(want.gate == "native" for session in sessions for want in session.wants)
        pool = ThreadPoolExecutor(max_workers=1 if native else jobs)
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        futures = {pool.submit(_run, shop, ways[s.card], s, follow): s for s in sessions}
        try:
            for future in as_completed(futures):
                outcomes = future.result()
                wants = futures[future].wants
                for want in wants:
                    known.outcomes[want] = outcomes[want.group.name]
                    ledger.keep(want.tree, want.group, want.gate, want.target, outcomes[want.group.name])
                follow.end(wants)
                settle()
        except BaseException:
            for future in futures:
                future.cancel()
            for way in ways.values():
                way.close()
            raise


def _run(shop: Workshop, way: Interpreters, session: Session, follow: Follow) -> dict[str, Outcome]:
    follow.make(session)
    groups = [want.group for want in session.wants]
    return run_session(shop, way, session.tree, groups, partial(follow.begin, session))
