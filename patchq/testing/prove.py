"""From outcomes to an answer: what of a patch is proved, and what speaks against it, by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from patchq.gpu.judge import contradictions
from patchq.testing.schedule import Known, Want

if TYPE_CHECKING:
    from patchq.testing.outcome import Outcome
    from patchq.testing.plan import Mode, Task

Status = Literal[
    "proved", "passed", "not proved", "red", "not run", "absent", "landed", "partial", "cannot run"
]
SHOWN = 5
"""Names shown of a longer list."""


@dataclass(frozen=True)
class Verdict:
    """The answer for one task.

    Attributes:
        task: what was asked.
        status: the one word; on a stock base, what the tests say of the feature.
        against: what speaks against the patch; empty where it is proved or passed.
        notes: what a reader should know besides.
        before: outcome without the production files.
        after: outcome with the patch.
        same: neighbours' tests with the same outcome with and without the patch.
        cached: whether nothing had to be run.
        seconds: of the runs, whenever they were.
    """

    task: Task
    mode: Mode
    status: Status
    against: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    before: Outcome | None = None
    after: Outcome | None = None
    same: int | None = None
    cached: bool = False
    seconds: float = 0.0
    seam: tuple[dict[str, Any], ...] = field(default=())

    @property
    def proved(self) -> bool | None:
        """Whether it is proved; None where no proof was asked for or it could not be run."""
        return {"proved": True, "not proved": False, "red": False}.get(self.status)

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against it."""
        return self.status not in {"not proved", "red", "cannot run"}


def wants_of(task: Task, *, prove: bool) -> list[Want]:
    """What to run for a task."""
    if task.missing:
        return []

    def want(tree: str, group: Any) -> Want:
        return Want(tree, group, task.gate, task.target)

    wanted = [want(task.trees.after, task.own)]
    if prove:
        if task.trees.before is not None:
            wanted.append(want(task.trees.before, task.own))
        if task.neighbours is not None:
            wanted += [want(task.trees.after, task.neighbours), want(task.trees.neighbours, task.neighbours)]
    return wanted


def judge(task: Task, mode: Mode, known: Known, seam: tuple[dict[str, Any], ...], *, prove: bool) -> Verdict:
    """The verdict on a task that was run."""
    if task.missing:
        return Verdict(task, mode, "not proved" if prove else "red", task.missing)
    wanted = wants_of(task, prove=prove)
    after = known.outcomes[wanted[0]]
    before = known.outcomes[wanted[1]] if prove and task.trees.before is not None else None
    against = [f"after: {reason}" for reason in against_after(after)]
    if task.own.card:
        left = after.on or {"card": None, "cubins": []}
        against += contradictions(task.gate, task.target, left["card"], left["cubins"])
    against += [f"wrong call: {s['file']}:{s['line']}: {s['problem']}" for s in seam]
    notes: list[str] = []
    same: int | None = None
    if prove:
        if before is None:
            notes.append(
                "test-only, and depends on nothing: there is nothing to take away, so nothing is proved before"
            )
            against.append("before: test-only, and depends on nothing that could be taken away")
        else:
            if task.trees.kind == "test-only":
                notes.append("test-only: before is without the production files of what it depends on")
            against += [f"before: {reason}" for reason in against_before(task, before, after)]
        if task.neighbours is not None:
            same, differing = compare(known.outcomes[wanted[-2]], known.outcomes[wanted[-1]])
            against += [f"neighbour: {reason}" for reason in differing]
    if prove:
        status: Status = "not proved" if against else "proved"
    else:
        status = "red" if against else "passed"
    outcomes = [known.outcomes[w] for w in wanted]
    return Verdict(
        task,
        mode,
        status,
        tuple(against),
        tuple(notes),
        before,
        after,
        same,
        all(w in known.cached for w in wanted),
        round(sum(o.seconds for o in outcomes), 2),
        seam,
    )


def against_after(after: Outcome) -> list[str]:
    """What keeps the run with the patch from being green, by name."""
    if after.problem:
        return [f"{after.problem} ({after.detail})" if after.detail else after.problem]
    found = [f"{path}: collection error: {why}" for path, why in after.collect_errors.items()]
    for result in ("failed", "error", "skipped", "xfailed"):
        names = [name for name, got in after.tests.items() if got == result]
        found += [f"{result}: {name}: {after.reasons.get(name, '')}" for name in names[:SHOWN]]
        if len(names) > SHOWN:
            found.append(f"{result}: and {len(names) - SHOWN} more")
    return found


def against_before(task: Task, before: Outcome, after: Outcome) -> list[str]:
    """What keeps the run without the production files from proving anything, by name."""
    expected = task.expected
    if expected != "fails":
        return (
            []
            if before.problem == expected
            else [f"{expected} was expected, and it was {before.problem or before.counts}"]
        )
    if before.collect_errors:
        return [f"collection error: {path}: {why}" for path, why in before.collect_errors.items()]
    if before.problem:
        return [f"{before.problem} ({before.detail})"]
    bad = {name for name, got in before.tests.items() if got in {"failed", "error"}}
    good = {name for name, got in after.tests.items() if got == "passed"}
    found = []
    for path in dict.fromkeys(selected.partition("::")[0] for selected in task.own.tests):
        here = [name for name in before.tests if name.startswith((f"{path}::", f"{path}/"))]
        if not here:
            found.append(f"{path}: nothing was run")
        elif not bad.intersection(here):
            found.append(f"useless: {path}: no test of it fails without the patch ({len(here)} run)")
        elif not bad.intersection(here) & good and good:
            found.append(f"{path}: the tests that fail without the patch do not pass with it")
    return found


def compare(with_patch: Outcome, without: Outcome) -> tuple[int, list[str]]:
    """How many of the neighbours' tests ended alike, and those that did not, by name."""
    if without.problem in {"hang", "crash", "out of memory", "not started", "wrote into its tree"}:
        return 0, [f"{without.problem} without the patch ({without.detail}): nothing can be compared"]
    if with_patch.problem and with_patch.problem != without.problem:
        return 0, [f"{with_patch.problem} with the patch ({with_patch.detail})"]
    found = [
        f"{path}: collection error {'with' if path in with_patch.collect_errors else 'without'} the patch only"
        for path in sorted(with_patch.collect_errors.keys() ^ without.collect_errors.keys())
    ]
    names = sorted(with_patch.tests.keys() | without.tests.keys())
    for name in names:
        one, other = without.tests.get(name, "absent"), with_patch.tests.get(name, "absent")
        if one != other:
            found.append(f"{name}: {one} without the patch, {other} with it")
    more = [f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else []
    return sum(without.tests.get(n) == with_patch.tests.get(n) for n in names), found[:SHOWN] + more
