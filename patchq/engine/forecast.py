"""The forecast: every patch against every base, in memory; each cell is kept by the content that it follows from."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from patchq.cache import scratch_dir
from patchq.engine.behaviour import Behaviour, Origin, find_behaviour, was_heard
from patchq.engine.cells import Cells
from patchq.engine.ground import Attempt, Ground
from patchq.engine.history import Course, State, after_home, first_parents, follow, is_same_patch, touching
from patchq.engine.home import Home, find_home
from patchq.engine.placing import place, since_home
from patchq.engine.signs import read_signs
from patchq.engine.targets import Targets
from patchq.engine.verdict import LEAVES, Cell, Text, decide, judge_text
from patchq.errors import InputError
from patchq.git.commits import read_commit
from patchq.series.evidence import NAME, read_evidence
from patchq.series.rulings import read_rulings
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.commits import Commit
    from patchq.git.objects import Objects
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Body, Series


class Forecast:
    """Answers what becomes of patches of a series on bases; nothing is written but under the cache."""

    def __init__(self, series: Series, objects: Objects, grounds: Sequence[Ground]) -> None:
        """Prepare.

        Args:
            series: the patches.
            objects: the store's objects.
            grounds: every base that is in the store, in the lock's order.
        """
        self._series = series
        self._objects = objects
        self._grounds = {ground.name: ground for ground in grounds}
        self._order = [ground.name for ground in grounds]
        self._here: dict[str, Series] = {}
        self._lanes: dict[str, tuple[Body, ...]] = {}
        self._records: dict[str, list[dict[str, Any]]] = {}
        self._chains: dict[str, list[tuple[str, Commit]]] = {}
        self._visited: dict[str, str] = {}
        self._homes: dict[tuple[str, str], Home] = {}
        self._targets: dict[tuple[str, str], Targets] = {}
        self._attempts: dict[tuple[str, str], Attempt] = {}
        self._texts: dict[tuple[str, str], Text] = {}
        self._scratch = scratch_dir()
        self._cells = Cells()

    def home_of(self, patch: str, base: str) -> str:
        """The lane that a patch comes to a base from: the nearest one before it, else the first that has the patch.

        Raises:
            InputError: no lane has the patch.
        """
        base = self._visited.get(base, base)
        having = [
            lane for lane in self._series.lock.lanes if self._has(lane, patch) and lane in self._grounds
        ]
        if not having:
            raise InputError(
                f"{patch} has no body in any lane whose base is in the store.",
                "Record it with patchq refresh, and fetch its base: patchq upstream fetch.",
            )
        before = [lane for lane in having if self.is_before(lane, base)]
        if before:
            return functools.reduce(lambda one, two: two if self.is_before(one, two) else one, before)
        pinned = self._series.lock.with_role("pinned")
        return pinned if pinned in having else having[0]

    def knows(self, patch: str) -> bool:
        """Whether some lane here has a patch."""
        return any(lane in self._grounds and self._has(lane, patch) for lane in self._series.lock.lanes)

    def is_before(self, one: str, two: str) -> bool:
        """Whether a base is older than another: by date where both have one, else by the lock's order."""
        first, second = self._grounds[one].date, self._grounds[two].date
        if first and second and first != second:
            return first < second
        return self._order.index(one) < self._order.index(two)

    def cell(self, patch: PatchMeta, base: str) -> Cell:
        """What became of a patch on a base.

        Raises:
            PatchqError: the patch's own lane does not build, or a record beside it is damaged.
        """
        return self.judge(patch.id, base, self.text(patch.id, base))

    def judge(self, patch: str, base: str, text: Text) -> Cell:
        """Bring what the text says of a patch on a base together with all else that is known."""
        home = self.home_of(patch, base)
        sha256, tree = self.judged(patch, base)
        ruling = read_rulings(self._series.root, patch).for_base(base)
        course = self._course(patch, base)
        passed = course.get("landed") if text.verdict != "landed" else None
        cell = decide(
            text,
            self.behaviour(patch, base),
            ruling,
            holds=ruling is not None and ruling.holds(sha256, tree),
            earlier=f"commit {passed['commit'][:12]}" if passed else self._earlier(patch, home, base),
            commits=course,
        )
        if cell.behaviour is None and was_heard(self._evidence(patch), base):
            again = (
                f"its tests were run on another {base} or are others now: patchq test --stock --base {base}"
            )
            cell = replace(cell, detail=f"{cell.detail}; {again} {patch} --record")
        if self._series.find(patch).upstream.state == "merged" and cell.verdict not in LEAVES:
            return replace(
                cell, detail=f"{cell.detail}; patch.yaml says merged, and this base does not have it"
            )
        return cell

    def behaviour(self, patch: str, base: str) -> Behaviour | None:
        """What is recorded of a patch's tests on a stock base, where it still is about the patch and the base."""
        sha256, tree = self.judged(patch, base)
        step = self._series.locked(base).get(patch)
        bodies = (step.sha256, sha256) if step is not None else (sha256,)
        origin = Origin(self.home_of(patch, base), sha256)
        return find_behaviour(self._evidence(patch), bodies, origin, tree)

    def _evidence(self, patch: str) -> list[dict[str, Any]]:
        if patch not in self._records:
            self._records[patch] = read_evidence(self._series.root / SERIES_NAME / patch / NAME)
        return self._records[patch]

    def told_at(self, patch: str, base: str) -> str:
        """The lane whose tests tell of a patch on a base: the base's own where it has the patch, else its home."""
        return base if self._has(base, patch) else self.home_of(patch, base)

    def text(self, patch: str, base: str) -> Text:
        """What the text alone says of a patch on a base, from the cache where it is known."""
        key = (patch, base)
        if key not in self._texts:
            facts = self._facts(patch, base)
            kept = self._cells.text(facts)
            if kept is None:
                kept = self.attempt(patch, base).text
                self._cells.keep_text(facts, kept)
            self._texts[key] = kept
        return self._texts[key]

    def attempt(self, patch: str, base: str) -> Attempt:
        """Hold a patch against a base with what it depends on."""
        key = (patch, base)
        if key not in self._attempts:
            tree = self._grounds[base].tree
            blocked = []
            for needed in self.series_on(base).closure([patch])[:-1]:
                if self._is_ruled_out(needed.id, base):
                    continue
                step = self.attempt(needed.id, base)
                if step.text.verdict != "landed" and not step.text.tree:
                    blocked.append(needed.id)
                elif step.text.tree:
                    tree = self._stacked(needed.id, base, tree)
            self._attempts[key] = self.try_on(patch, base, tree, tuple(blocked), alone=True)
        return self._attempts[key]

    def try_on(
        self, patch: str, base: str, tree: str, blocked_by: tuple[str, ...] = (), *, alone: bool = False
    ) -> Attempt:
        """Hold a patch against a tree over a base.

        Args:
            patch: the patch.
            base: the base.
            tree: the tree.
            blocked_by: patches it depends on that should be in the tree and are not.
            alone: whether the tree has no more of the series than what the patch depends on, so that offsets count
                from where its hunks stand at home without the others.
        """
        lane = self.home_of(patch, base)
        home = self.home(lane, patch)
        targets = self.targets(lane, base)
        signs = read_signs(self._objects, tree, home, targets)
        if home.files and signs.production == signs.weight:
            return Attempt(home, tree, signs, None, judge_text(signs, None, tree, blocked_by))
        placed = place(self._objects, self._scratch, tree, home, signs, targets)
        if alone:
            placed = since_home(placed, home)
        return Attempt(home, tree, signs, placed, judge_text(signs, placed, tree, blocked_by))

    def judged(self, patch: str, base: str) -> tuple[str, str]:
        """What a verdict is bound to: the hash of the body that the patch comes to a base with, and the base's tree."""
        return self.source(patch, base).sha256, self._grounds[base].tree

    def source(self, patch: str, base: str) -> Body:
        """The body that a patch comes to a base with."""
        return self.body(self.home_of(patch, base), patch)

    def series_on(self, base: str) -> Series:
        """The series as it is on a base."""
        base = self._visited.get(base, base)
        if base not in self._here:
            self._here[base] = self._series.on(base)
        return self._here[base]

    def ground(self, base: str) -> Ground:
        """A base in the store."""
        return self._grounds[base]

    def _course(self, patch: str, base: str) -> dict[str, dict[str, Any]]:
        """The upstream commits that decided over a patch; none where the base has no history here."""
        ground, lane = self._grounds[base], self.home_of(patch, base)
        if base == lane:
            return {}
        if base not in self._chains:
            self._chains[base] = first_parents(self._objects, ground.commit)
        chain = self._chains[base]
        if len(chain) == 1:
            return {}
        facts = [self._facts(patch, base), chain[0][0], chain[-1][0], self._grounds[lane].commit]
        kept = self._cells.get(facts, "history")
        if kept is None:
            kept = self._follow(patch, base).as_dict()
            self._cells.put(facts, "history", kept)
        return kept

    def _follow(self, patch: str, base: str) -> Course:
        lane = self.home_of(patch, base)
        home = self.home(lane, patch)
        text = self.text(patch, base)
        commits = after_home(self._objects, self._chains[base], self._grounds[lane].commit, home)
        paths = [file.path for file in home.files] + [moved["to"] for moved in text.moved]
        course = follow(
            touching(self._objects, commits, paths),
            lambda commit: _state(self.attempt(patch, self._visit(base, commit)).text),
            _state(text),
        )
        if course.landed is None:
            return course
        same = is_same_patch(self._objects, course.landed.commit, home)
        return replace(course, landed=replace(course.landed, same_patch=same))

    def _visit(self, base: str, commit: str) -> str:
        """Make a commit of a base's history a ground of its own, to which patches come from the same lane."""
        name = f"{base}@{commit}"
        if name not in self._grounds:
            tree = read_commit(self._objects, commit).tree
            self._grounds[name] = replace(self._grounds[base], name=name, tree=tree, commit=commit)
            self._visited[name] = base
        return name

    def _is_ruled_out(self, patch: str, base: str) -> bool:
        """Whether a person ruled that a base does not need a patch, so that no other waits for it there."""
        ruling = read_rulings(self._series.root, patch).for_base(base)
        return ruling is not None and ruling.verdict in LEAVES and ruling.holds(*self.judged(patch, base))

    def _stacked(self, patch: str, base: str, tree: str) -> str:
        """A tree with one patch more on it."""
        done = self._attempts[patch, base]
        if done.tree == tree:
            return done.result
        return self.try_on(patch, base, tree).result

    def _earlier(self, patch: str, home: str, base: str) -> str:
        """The newest base between a patch's home and a base on which all of the patch was there."""
        between = [b for b in self._order if self.is_before(home, b) and self.is_before(b, base)]
        return next(
            (b for b in reversed(between) if b != home and self.text(patch, b).verdict == "landed"), ""
        )

    def _has(self, lane: str, patch: str) -> bool:
        return any(step.id == patch for step in self._series.lock.lanes.get(lane, ()))

    def _lane(self, name: str) -> tuple[Body, ...]:
        if name not in self._lanes:
            self._lanes[name] = self._series.lane(name)
        return self._lanes[name]

    def body(self, lane: str, patch: str) -> Body:
        """A patch's body in a lane."""
        return next(body for body in self._lane(lane) if body.id == patch)

    def home(self, lane: str, patch: str) -> Home:
        """A patch where it was made: in a lane."""
        if (lane, patch) not in self._homes:
            self._homes[lane, patch] = self._find_home(lane, patch)
        return self._homes[lane, patch]

    def _find_home(self, lane: str, patch: str) -> Home:
        series = self.series_on(lane)
        closure = [p.id for p in series.closure([patch])]
        return find_home(
            self._objects, self._grounds[lane].tree, self._lane(lane), closure, series.find(patch)
        )

    def targets(self, lane: str, base: str) -> Targets:
        """What finds the files of a lane's patches on a base."""
        key = (lane, base)
        if key not in self._targets:
            self._targets[key] = Targets(self._objects, self._grounds[lane].tree, self._grounds[base].tree)
        return self._targets[key]

    def _facts(self, patch: str, base: str) -> list[Any]:
        """What a cell follows from: two trees, the bodies of the closure, their own tests, and how it is decided."""
        facts: list[Any] = [self._grounds[base].tree]
        for needed in self.series_on(base).closure([patch]):
            lane = self.home_of(needed.id, base)
            number = [b.id for b in self._lane(lane)].index(needed.id)
            bodies = [b.sha256 for b in self._lane(lane)[: number + 1]]
            at_home = self.series_on(lane)
            tests = [list(group.run) for group in at_home.find(needed.id).tests]
            tests += [[p.id for p in at_home.closure([needed.id])]]
            out = needed.id != patch and self._is_ruled_out(needed.id, base)
            facts.append([needed.id, self._grounds[lane].tree, bodies, tests, out])
        return facts


def _state(text: Text) -> State:
    """How a patch stands by its text, for following it through history."""
    if text.verdict == "landed":
        return "in"
    return "out" if text.tree else "stuck"
