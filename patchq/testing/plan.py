"""What must be run to prove a patch: which tests, on which trees. Decided on git objects alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.engine.lane import Lane, substack
from patchq.errors import InputError
from patchq.testing.runner import Group
from patchq.vllm.layout import is_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.series.patch import Gate, PatchMeta
    from patchq.series.series import Series

Mode = Literal["alone", "stack", "stock"]
OUTERMOST = 60
"""Seconds that neighbours get beyond the patch's own time limit: they are upstream's, and are run with it."""


@dataclass(frozen=True)
class Trees:
    """The trees of a patch's proof.

    Attributes:
        after: with the patch.
        before: with its test files and without its production files; None where there is nothing to take away.
        without: without the patch.
        kind: `patch`; or `test-only` for one without production files: what is taken away then is what it depends on.
        production: the files outside the tests that it changes.
        removed: paths of the base's that it deletes.
    """

    after: str
    before: str | None
    without: str
    kind: Literal["patch", "test-only"]
    production: tuple[str, ...]
    neighbours: str
    """The tree on which neighbours are run without the patch: `before` where its test files cannot matter to them."""


@dataclass(frozen=True)
class Task:
    """The tests of one patch at one gate.

    Attributes:
        patch: its metadata.
        gate: the level.
        target: the architecture that the level is about.
        trees: where to run.
        own: the patch's tests.
        neighbours: upstream's tests that it must not change; only in the first task of a patch.
        missing: tests that the patch names and does not bring, as sentences.
        expected: how the run before must end.
        programs: what must be on PATH for them.
    """

    patch: PatchMeta
    gate: Gate
    target: str
    trees: Trees
    own: Group
    neighbours: Group | None
    missing: tuple[str, ...]
    expected: str
    programs: tuple[str, ...] = ()


def plan_tasks(
    series: Series,
    objects: Objects,
    lane: Lane,
    ids: Sequence[str],
    *,
    mode: Mode,
    gate: Gate | None,
    target: str | None,
) -> list[Task]:
    """The tasks for some patches of a lane.

    Args:
        series: the series.
        objects: where trees are read and made.
        lane: the lane.
        ids: the patches; all of the lane where empty.
        mode: `alone` on the base with what the patch depends on, or `stack` at its place in the series.
        gate: this level only; every level that a patch has tests for where None.
        target: an architecture instead of the one that each patch names.

    Raises:
        InputError: a patch has no body for this base.
    """
    chosen = (
        [series.find(name) for name in ids] if ids else [p for p in series.patches if p.id in lane.stack.ids]
    )
    tasks = []
    for patch in dict.fromkeys(p.id for p in chosen):
        meta = series.find(patch)
        if patch not in lane.stack.ids:
            raise InputError(
                f"{patch} has no body for {lane.base}.", f"The lane has: {', '.join(lane.stack.ids)}."
            )
        trees = trees_of(series, objects, lane, meta, mode)
        tasks += tasks_of(objects, meta, trees, gate, target)
    return tasks


def trees_of(series: Series, objects: Objects, lane: Lane, patch: PatchMeta, mode: Mode) -> Trees:
    """The trees of a patch's proof."""
    if mode == "alone":
        ids = tuple(p.id for p in series.closure([patch.id]) if p.id in lane.stack.ids)
    else:
        ids = lane.stack.ids[: lane.stack.ids.index(patch.id) + 1]
    stack = substack(objects, lane, ids)
    step = stack.steps[-1]
    without = stack.steps[-2].tree if len(stack.steps) > 1 else stack.base_tree
    tests = {path: entry for path, entry in step.changes.items() if is_test(path)}
    production = tuple(sorted(path for path in step.changes if not is_test(path)))
    if production:
        before: str | None = objects.edit_tree(without, tests)
    else:
        before = objects.edit_tree(stack.base_tree, tests) if patch.depends else None
    additions = all(
        objects.lookup(without, path) is None and not path.endswith("conftest.py") for path in tests
    )
    neighbours = before if production and additions and before is not None else without
    return Trees(step.tree, before, without, "patch" if production else "test-only", production, neighbours)


def tasks_of(
    objects: Objects, patch: PatchMeta, trees: Trees, gate: Gate | None, target: str | None
) -> list[Task]:
    """The tasks of one patch on its trees: one a level, or that of the level that is asked for."""
    by_gate: dict[Gate, list[str]] = {}
    expected: dict[Gate, str] = {}
    for group in patch.tests:
        by_gate.setdefault(group.gate, []).extend(group.run)
        expected[group.gate] = group.before
    tasks: list[Task] = []
    if not by_gate:
        by_gate["cpu"], expected["cpu"] = [], "fails"
    for level, tests in by_gate.items():
        if gate is not None and level != gate:
            continue
        selected = tuple(dict.fromkeys(tests))
        name = f"{patch.id}:{level}"
        tasks.append(
            Task(
                patch,
                level,
                target or patch.target,
                trees,
                own=Group(name, selected, patch.time_limit, level, target or patch.target),
                neighbours=_neighbours(patch) if level == "cpu" else None,
                missing=_missing(objects, trees.after, selected),
                expected=expected[level],
                programs=tuple(sorted({p for g in patch.tests if g.gate == level for p in g.needs})),
            ),
        )
    return tasks


def _missing(objects: Objects, tree: str, selected: tuple[str, ...]) -> tuple[str, ...]:
    """What a patch names as its tests and does not bring, in words."""
    if not selected:
        return ("missing test: its patch.yaml names none",)
    return tuple(
        f"missing test: {name} is not in the tree with the patch"
        for name in selected
        if objects.lookup(tree, name.split("::")[0]) is None
    )


def _neighbours(patch: PatchMeta) -> Group | None:
    if not patch.neighbours:
        return None
    return Group(f"{patch.id}:neighbours", patch.neighbours, patch.time_limit + OUTERMOST)
