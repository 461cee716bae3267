"""A patch's tests on a stock base, without its production files: what they say there of the feature itself.

The tests come from the base's own lane where it has the patch, else from the lane that the patch comes from. New test
files are put on the base whole, changed ones by the engine's three-way merge; those of patches that it depends on come
along, since they may hold what its tests use. What cannot be put there, and what fails over a name that the patch does
not bring (a module or helper that moved), is said to be just that.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from patchq.cache import scratch_dir
from patchq.engine.behaviour import Behaviour, Origin, behaviour_of, find_proof
from patchq.engine.placing import place
from patchq.engine.signs import read_signs
from patchq.series.evidence import NAME, read_evidence
from patchq.series.series import SERIES_NAME
from patchq.testing.outcome import TRANSIENT
from patchq.testing.plan import Trees, tasks_of
from patchq.testing.prove import Verdict
from patchq.vllm.layout import is_test

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchq.engine.forecast import Forecast
    from patchq.engine.home import Home
    from patchq.git.objects import Entry, Objects
    from patchq.series.patch import Gate, PatchMeta
    from patchq.series.series import Series
    from patchq.testing.outcome import Outcome
    from patchq.testing.plan import Task

SHOWN = 5
"""Reasons that are kept of a longer list."""
LACKS = re.compile(
    r"ModuleNotFoundError: No module named '(?P<module>[\w.]+)'"
    r"|ImportError: cannot import name '(?P<name>\w+)'"
    r"|AttributeError: (?:<?module|type object) '.*has no attribute '(?P<attribute>\w+)'"
)
"""How Python says that a name is not there that something is imported by or looked up under."""


@dataclass(frozen=True)
class Brought:
    """What patches bring outside the tests: the lines that they add, and the files."""

    lines: bytes
    files: tuple[str, ...]

    def lacks(self, reason: str) -> bool:
        """Whether a test failed over a name that the patches do not bring: it moved, or never was theirs."""
        found = LACKS.search(reason)
        if found is None:
            return False
        if found["module"]:
            stem = found["module"].replace(".", "/")
            return not any(f == f"{stem}.py" or f.startswith(f"{stem}/") for f in self.files)
        name = re.escape((found["name"] or found["attribute"]).encode())
        made = (
            rb"^\s*(?:async\s+)?(?:def|class)\s+%s\b",
            rb"^\s*%s\s*[:=]",
            rb"\bas\s+%s\b",
            rb"\bimport\s.*\b%s\b",
        )
        return not any(re.search(pattern % name, self.lines, re.MULTILINE) for pattern in made)


@dataclass(frozen=True)
class StockTests:
    """A patch's tests on a stock base.

    Attributes:
        patch: its id.
        tasks: the tests by gate.
        origin: where the patch comes to the base from.
        sha256: of the body whose tests they are.
        brought: what the patch and what it depends on bring.
        notes: what a reader should know of how they were put there.
    """

    patch: str
    tasks: tuple[Task, ...]
    origin: Origin
    sha256: str
    brought: Brought
    notes: tuple[str, ...]


def plan_stock(
    forecast: Forecast,
    objects: Objects,
    base: str,
    patches: Sequence[str],
    gate: Gate | None,
    target: str | None,
) -> list[StockTests]:
    """Put the tests of some patches on a stock base, in memory.

    Raises:
        PatchqError: a patch has no body in any lane, or its lane does not build.
    """
    return [_plan(forecast, objects, base, patch, gate, target) for patch in patches]


def _plan(
    forecast: Forecast, objects: Objects, base: str, patch: str, gate: Gate | None, target: str | None
) -> StockTests:
    stock = forecast.ground(base).tree
    lane = forecast.told_at(patch, base)
    tree, missing = stock, list[str]()
    moved: dict[str, str] = {}
    notes: list[str] = []
    homes = []
    for needed in forecast.series_on(lane).closure([patch]):
        where = forecast.told_at(needed.id, base)
        home = forecast.home(where, needed.id)
        homes.append(home)
        put = _put(forecast, objects, tree, home, where, base)
        tree, moved = put.tree, {**moved, **put.moved}
        if needed.id == patch:
            missing = [f"cannot be put on {base}: {why}" for why in put.troubles]
        else:
            notes += [f"of {needed.id}, which it depends on: {why}" for why in put.troubles]
        notes += put.notes
    home = homes[-1]
    production = any(not is_test(file.path) for file in home.files)
    meta = _at(forecast.series_on(lane).find(patch), moved)
    trees = Trees(tree, None, stock, "patch" if production else "test-only", (), stock)
    tasks = tasks_of(objects, meta, trees, gate, target)
    if missing:
        tasks = [replace(task, missing=tuple(missing)) for task in tasks]
    origin = Origin(forecast.home_of(patch, base), forecast.source(patch, base).sha256)
    body = forecast.body(lane, patch)
    return StockTests(patch, tuple(tasks), origin, body.sha256, _brought(objects, homes), tuple(notes))


@dataclass(frozen=True)
class _Put:
    tree: str
    moved: dict[str, str]
    troubles: tuple[str, ...]
    notes: tuple[str, ...]


def _put(forecast: Forecast, objects: Objects, tree: str, home: Home, lane: str, base: str) -> _Put:
    """Put a patch's test files on a tree."""
    tests = [file for file in home.files if is_test(file.path)]
    new = [file for file in tests if file.before is None]
    rest = tuple(file for file in tests if file.before is not None)
    notes = []
    whole: dict[str, Entry | None] = {}
    for file in new:
        there = objects.lookup(tree, file.path)
        if there is not None and there != file.after:
            notes.append(f"{file.path} is in {base} with other content; the patch's own took its place")
        whole[file.path] = file.after
    try:
        tree = objects.edit_tree(tree, whole)
    except ValueError as error:
        return _Put(tree, {}, (f"{error} is a file there, and a directory here",), tuple(notes))
    if not rest:
        return _Put(tree, {}, (), tuple(notes))
    paths = {file.path for file in rest}
    changes = tuple(c for c in home.patch.changes if paths.intersection(p for p in c.paths if p))
    alone = replace(home, files=rest, patch=replace(home.patch, changes=changes))
    targets = forecast.targets(lane, base)
    placed = place(objects, scratch_dir(), tree, alone, read_signs(objects, tree, alone, targets), targets)
    troubles = tuple(f"{t.file} {t.reason}" for t in placed.troubles)
    return _Put(placed.tree, dict(placed.moved), troubles, tuple(notes))


def _at(patch: PatchMeta, moved: dict[str, str]) -> PatchMeta:
    """A patch whose tests stand where its test files went, without its neighbours."""

    def here(test: str) -> str:
        path, colons, name = test.partition("::")
        return moved.get(path, path) + colons + name

    tests = tuple(replace(group, run=tuple(map(here, group.run))) for group in patch.tests)
    return replace(patch, tests=tests, neighbours=())


def judge_stock(
    series: Series, tests: StockTests, task: Task, outcome: Outcome | None, *, cached: bool
) -> Verdict:
    """What came of a patch's tests at one gate; None for an outcome where they could not be put on the base."""
    heard = hear(series, tests, task, outcome)
    notes = list(tests.notes)
    if heard.tests_only:
        notes.append("its tests are all that it is: that they pass is not its landing")
    if heard.unable:
        notes.append(f"{heard.unable} of them fail over a name that the patch does not bring")
    return Verdict(
        task,
        "stock",
        heard.says,
        notes=(*heard.why, *notes),
        after=outcome,
        cached=cached,
        seconds=round(outcome.seconds, 2) if outcome else 0.0,
    )


def hear(series: Series, tests: StockTests, task: Task, outcome: Outcome | None) -> Behaviour:
    """What an outcome says, held against the patch's proof where it comes from."""
    records = read_evidence(series.root / SERIES_NAME / task.patch.id / NAME)
    proof = find_proof(records, tests.origin, task.gate)
    return behaviour_of({"gate": task.gate, **findings(tests, task, outcome)}, proof)


def findings(tests: StockTests, task: Task, outcome: Outcome | None) -> dict[str, Any]:
    """What is recorded of an outcome on a stock base.

    `passed` are the tests that passed, `unable` the number of those that failed over a name that the patch does not
    bring, `why` what kept tests from running, `as_before` whether the run ended as patch.yaml says that it ends where
    the feature is absent (a crash, a hang, a collection error over what the patch brings).
    """
    found: dict[str, Any] = {"kind": task.trees.kind, "placed": not task.missing}
    if outcome is None:
        return {**found, "after": None, "passed": [], "unable": 0, "why": list(task.missing)}
    bad = [name for name, got in outcome.tests.items() if got in {"failed", "error"}]
    unable = {n: r for n in bad if tests.brought.lacks(r := outcome.reasons.get(n, ""))}
    failed = [name for name in unable if outcome.tests[name] == "failed"]
    blind = any(tests.brought.lacks(r) or not LACKS.search(r) for r in outcome.collect_errors.values())
    why = [f"{outcome.problem}: {outcome.detail}"] if outcome.problem and not outcome.collect_errors else []
    why += [f"{path} is not collected: {reason}" for path, reason in outcome.collect_errors.items()]
    why += list(dict.fromkeys(unable.values()))
    errors = [outcome.reasons.get(n, "") for n in bad if outcome.tests[n] == "error" and n not in unable]
    why += list(dict.fromkeys(errors))
    as_before = outcome.problem == task.expected and not (task.expected == "collection error" and blind)
    return {
        **found,
        "after": _counts(outcome),
        "passed": sorted(name for name, got in outcome.tests.items() if got == "passed"),
        "unable": len(failed),
        "why": why[:SHOWN],
        **({"as_before": True} if as_before else {}),
    }


def _brought(objects: Objects, homes: Iterable[Home]) -> Brought:
    lines: list[bytes] = []
    modules = []
    for file in (f for home in homes for f in home.files if not is_test(f.path)):
        if file.blocks is not None:
            lines += [line for block in file.blocks for line in block.new]
        elif file.before is None and file.after is not None:
            lines.append(objects.blob(file.after.oid))
            modules.append(file.path)
    return Brought(b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines), tuple(modules))


def _counts(outcome: Outcome) -> dict[str, int]:
    """Counts as they are recorded; a run that did not come to its end is one error more."""
    counts = asdict(outcome.counts)
    return {**counts, "errors": counts["errors"] + (outcome.problem in TRANSIENT)}
