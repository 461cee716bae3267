"""Running what a plan asks for: each tree once, what is known from the ledger, the rest side by side."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.testing.interpreters import Interpreters, Plain, open_interpreters
from patchq.testing.runner import Group, Limits, Workshop, run_session

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.progress import Progress
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


def limits_for(jobs: int) -> Limits:
    """What each of so many sessions at one time may use."""
    return Limits(int(total_memory() * MEMORY_SHARE / jobs), max(1, (os.cpu_count() or 1) // jobs))


def run_wanted(
    wanted: Iterable[Want], base: str, shop: Workshop, ledger: Ledger, jobs: int, progress: Progress
) -> Known:
    """Find or run everything that is wanted.

    Args:
        wanted: what to run; the same thing may be wanted twice.
        base: the base's tree, from which it is learnt what can be imported beforehand.
        shop: where to run.
        ledger: what is known, and where new outcomes go.
        jobs: sessions at one time.
        progress: told when a group is done.
    """
    known = Known()
    sessions: dict[tuple[str, str], list[Want]] = {}
    for want in dict.fromkeys(wanted):
        outcome = ledger.find(want.tree, want.group, want.gate, want.target)
        if outcome is not None:
            known.outcomes[want] = outcome
            known.cached.add(want)
        else:
            sessions.setdefault((want.tree, want.group.name if want.group.card else ""), []).append(want)
    if not sessions:
        return known
    shop.trees.prune()
    total = sum(len(wants) for wants in sessions.values())
    with contextlib.ExitStack() as stack:
        step = stack.enter_context(
            progress.task(f"running tests on {len(sessions)} trees", total=total, unit="steps")
        )
        ways: dict[bool, Interpreters] = {}
        if any(not alone for _, alone in sessions):
            tree = shop.trees.make(base) if shop.environment.preload else Path("/")
            opened = open_interpreters(shop.environment, shop.isolation, tree, shop.variables(card=False))
            ways[False] = stack.enter_context(opened)
        ways[True] = Plain(shop.environment, shop.isolation)
        native = any(want.gate == "native" for wants in sessions.values() for want in wants)
        pool = ThreadPoolExecutor(max_workers=1 if native else jobs)
        stack.callback(pool.shutdown, wait=True, cancel_futures=True)
        futures = {
            pool.submit(run_session, shop, ways[bool(alone)], tree_id, [w.group for w in wants]): wants
            for (tree_id, alone), wants in sessions.items()
        }
        try:
            for future in as_completed(futures):
                outcomes = future.result()
                for want in futures[future]:
                    known.outcomes[want] = outcomes[want.group.name]
                    ledger.keep(want.tree, want.group, want.gate, want.target, outcomes[want.group.name])
                    step(1)
        except BaseException:
            for future in futures:
                future.cancel()
            for way in ways.values():
                way.close()
            raise
    return known
