"""Running what a plan asks for: each tree once, what is known from the ledger, the rest side by side."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.testing.runner import Group, Limits, run_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.progress import Progress
    from patchq.testing.environment import Environment
    from patchq.testing.isolate import Isolation
    from patchq.testing.ledger import Ledger
    from patchq.testing.outcome import Outcome
    from patchq.testing.trees import Trees

MEMORY_SHARE = 0.8
"""Of the machine's memory that all sessions together may use."""


@dataclass(frozen=True)
class Want:
    """One group of tests on one tree, at one gate for one target."""

    tree: str
    group: Group
    gate: str
    target: str


@dataclass
class Known:
    """Outcomes by what was wanted, and which of them came from the ledger."""

    outcomes: dict[Want, Outcome] = field(default_factory=dict)
    cached: set[Want] = field(default_factory=set)


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


def run_wanted(
    wanted: Iterable[Want],
    trees: Trees,
    environment: Environment,
    isolation: Isolation,
    ledger: Ledger,
    jobs: int,
    progress: Progress,
) -> Known:
    """Find or run everything that is wanted.

    Args:
        wanted: what to run; the same thing may be wanted twice.
        trees: the test trees.
        environment: what to run in.
        isolation: how runs are shut in.
        ledger: what is known, and where new outcomes go.
        jobs: sessions at one time.
        progress: told when a session is done.
    """
    known = Known()
    sessions: dict[tuple[str, bool], list[Want]] = {}
    for want in dict.fromkeys(wanted):
        outcome = ledger.find(want.tree, want.group, want.gate, want.target)
        if outcome is not None:
            known.outcomes[want] = outcome
            known.cached.add(want)
        else:
            sessions.setdefault((want.tree, want.group.card), []).append(want)
    if not sessions:
        return known
    limits = Limits(int(total_memory() * MEMORY_SHARE / jobs), max(1, (os.cpu_count() or 1) // jobs))
    trees.prune()
    pool = ThreadPoolExecutor(max_workers=jobs)
    try:
        futures = {
            pool.submit(
                run_session, trees, tree, [w.group for w in wants], environment, isolation, limits
            ): wants
            for (tree, _), wants in sessions.items()
        }
        with progress.task(
            "running tests", total=sum(len(w) for w in sessions.values()), unit="tests"
        ) as step:
            for future in as_completed(futures):
                outcomes = future.result()
                for want in futures[future]:
                    known.outcomes[want] = outcomes[want.group.name]
                    ledger.keep(want.tree, want.group, want.gate, want.target, outcomes[want.group.name])
                    step(1)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    return known
