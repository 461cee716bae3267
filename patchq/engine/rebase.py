"""Moving a series to another base in one pass, in memory: what goes by itself goes, what is there already leaves.

The pass decides everything anew each time from the series, the base and what a person has decided so far; so a killed
rebase is resumed by running it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from patchq.engine.conflicts import fill_in
from patchq.engine.placing import Placed, Trouble
from patchq.engine.rangediff import Difference, compare
from patchq.engine.verdict import LEAVES
from patchq.errors import RefusedError
from patchq.git.commits import Commit, put_commit
from patchq.git.hunks import HunkRefusedError
from patchq.git.mail import diff_trees, format_mail, parse_mail
from patchq.git.objects import Entry
from patchq.git.pick import pick
from patchq.series.moves import Move, read_moves
from patchq.series.resolutions import read_resolutions
from patchq.series.rulings import read_rulings
from patchq.series.series import Body

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from patchq.engine.forecast import Forecast
    from patchq.engine.ground import Attempt
    from patchq.git.commits import Identity
    from patchq.git.objects import Objects
    from patchq.series.rulings import Verdict
    from patchq.series.series import Series


STOPS = frozenset({"conflict", "missing"})
"""Rulings that keep a text from going on by itself."""
BY_HAND = frozenset({"conflict", "missing", "partial"})
"""Verdicts after which a lane has a patch only because a person ported it."""


@dataclass(frozen=True)
class Decision:
    """What a person decided when a patch did not go on.

    Attributes:
        kind: `resolved`, or `skipped`.
        onto: the tree that the patch was to go on.
        source_sha256: the hash of the body it came with.
        tree: the tree with the patch, as resolved; empty where it is skipped.
    """

    kind: Literal["resolved", "skipped"]
    onto: str
    source_sha256: str
    tree: str = ""


@dataclass(frozen=True)
class Outcome:
    """What became of one patch in a pass.

    Attributes:
        id: the patch.
        move: the record of it.
        before: the tree that it went on.
        tree: the tree after it; the same where it is not carried.
        body: its body on the new base, where it is carried.
        difference: how that body differs from the one it came with.
    """

    id: str
    move: Move
    before: str
    tree: str
    body: Body | None = None
    difference: Difference | None = None


@dataclass(frozen=True)
class Pending:
    """A patch that waits for a person.

    Attributes:
        id: the patch.
        verdict: `conflict`, `missing`, or `partial`.
        reason: what stands in the way.
        onto: the tree that it is to go on.
        placed: how far it goes, with known conflicts filled in.
        source: the body it comes with.
    """

    id: str
    verdict: Verdict
    reason: str
    onto: str
    placed: Placed
    source: Body


@dataclass(frozen=True)
class Pass:
    """A pass over a series.

    Attributes:
        outcomes: patches that are through, in order.
        pending: the one that waits; None where all are through.
        waiting: ids of those after it.
        head: a commit of the base with the patches that are carried.
    """

    outcomes: tuple[Outcome, ...]
    pending: Pending | None
    waiting: tuple[str, ...]
    head: str
    tree: str = field(default="")

    @property
    def bodies(self) -> list[Body]:
        """The new lane."""
        return [outcome.body for outcome in self.outcomes if outcome.body is not None]


def run_pass(
    series: Series,
    forecast: Forecast,
    objects: Objects,
    base: str,
    decisions: Mapping[str, Decision],
    again: Collection[str] = (),
) -> Pass:
    """Move every patch to a base, or as far as it goes without a person.

    Objects that the new bodies are made of are written to the repository of `objects`.

    Args:
        series: the patches.
        forecast: what is known of them on the base.
        objects: where trees are read and made.
        base: the base.
        decisions: what a person decided, by patch.
        again: patches that were skipped before and are to be asked about again.

    Raises:
        PatchqError: a lane does not build, or a record beside a patch is damaged.
    """
    return _Runner(series, forecast, objects, base, again).run(decisions)


class _Runner:
    def __init__(
        self, series: Series, forecast: Forecast, objects: Objects, base: str, again: Collection[str]
    ) -> None:
        self.series = series
        self.forecast = forecast
        self.objects = objects
        self.base = base
        self.ground = forecast.ground(base)
        self.there = series.locked(base)
        self.again = again

    def run(self, decisions: Mapping[str, Decision]) -> Pass:
        tree, head = self.ground.tree, self.ground.commit
        outcomes: list[Outcome] = []
        ids = [
            p.id
            for p in self.series.patches
            if any(p.id in self.series.locked(x) for x in self.series.lock.lanes)
        ]
        for number, patch in enumerate(ids):
            found = self._one(patch, tree, decisions.get(patch))
            if isinstance(found, Pending):
                return Pass(tuple(outcomes), found, tuple(ids[number + 1 :]), head, tree)
            outcomes.append(found)
            if found.body is not None:
                mail = parse_mail(found.body.data, found.body.where)
                head = put_commit(self.objects, Commit(found.tree, (head,), mail.author, mail.message))
            tree = found.tree
        return Pass(tuple(outcomes), None, (), head, tree)

    def _one(self, patch: str, tree: str, decision: Decision | None) -> Outcome | Pending:
        source = self.forecast.source(patch, self.base)
        known = read_moves(self.series.root, patch).to(self.base)
        if decision is not None and (decision.onto, decision.source_sha256) == (tree, source.sha256):
            return self._decided(patch, tree, source, decision)
        ruling = read_rulings(self.series.root, patch).for_base(self.base)
        if ruling is not None and ruling.verdict in LEAVES and ruling.holds(source.sha256, self.ground.tree):
            return self._left(patch, tree, source, ruling.verdict, f"ruled by a person: {ruling.because}")
        asks = known is None or patch in self.again
        if known is not None and not asks and known.still_skips(source.sha256, self.ground.tree):
            return Outcome(patch, known, tree, tree)
        heard = self.forecast.behaviour(patch, self.base)
        landed = heard is not None and heard.says == "landed" and not heard.tests_only
        ruled = ruling is not None and ruling.holds(source.sha256, self.ground.tree)
        kept = self._kept(patch, tree, source, known, ruled=ruled) if ruled or not landed else None
        if kept is not None:
            return kept
        attempt = self.forecast.try_on(patch, self.base, tree)
        cell = self.forecast.judge(patch, self.base, attempt.text)
        if cell.verdict in LEAVES or attempt.text.verdict == "landed":
            verdict = cell.verdict if cell.verdict in LEAVES else "landed"
            return self._left(patch, tree, source, verdict, cell.detail)
        if attempt.text.tree and ruled and ruling is not None and ruling.verdict in STOPS:
            raise RefusedError(
                f"{patch} is ruled {ruling.verdict} on {self.base}, and its text goes on there all the same.",
                f"Port it in a checkout of {self.base} and record that (patchq refresh CHECKOUT --base {self.base}), "
                f"or rule otherwise: patchq verdict set {patch} {self.base} VERDICT --because WHY.",
            )
        if attempt.text.tree:
            return self._moved(attempt, source, cell.verdict, cell.detail, attempt.text.tree)
        return self._resolved_before(attempt, source, cell.verdict, cell.detail)

    def _decided(self, patch: str, tree: str, source: Body, decision: Decision) -> Outcome:
        attempt = self.forecast.try_on(patch, self.base, tree)
        verdict = self.forecast.judge(patch, self.base, attempt.text).verdict
        if decision.kind == "skipped":
            again = f"patchq rebase --onto {self.base} --again {patch}"
            holds = f"it stays out until the patch or {self.base} changes; to be asked again: {again}"
            left = self._left(
                patch, tree, source, verdict, f"skipped by a person: {attempt.text.detail}; {holds}"
            )
            return replace(left, move=replace(left.move, skipped=True))
        if decision.tree == tree:
            reason = "nothing was left of it once its conflicts were resolved"
            return self._left(patch, tree, source, "landed", reason)
        return self._moved(
            attempt, source, verdict, f"resolved by a person: {attempt.text.detail}", decision.tree
        )

    def _kept(
        self, patch: str, tree: str, source: Body, known: Move | None, *, ruled: bool
    ) -> Outcome | None:
        """A patch that the base's lane has already, made from the body it still comes with, or by a person.

        What a person ported by hand is not written over when the body that it came with changes: that is said, and it is
        carried anew where it is asked for by --again.
        """
        step = self.there.get(patch)
        older = known is not None and known.source_sha256 != source.sha256
        if step is None or patch in self.again or (older and not (ruled or _by_hand(known))):
            return None
        path = self.series.body_path(patch, self.base)
        if not path.exists():
            return None
        body = Body(patch, str(path.relative_to(self.series.root)), path.read_bytes())
        mail = parse_mail(body.data, body.where)
        try:
            picked = pick(self.objects, tree, mail, body.where)
        except HunkRefusedError:
            return None
        if body.sha256 != step.sha256 or picked.offsets:
            return None
        message = self._titled(patch, mail.message)
        if message != mail.message:
            body = self._written(patch, tree, picked.tree, mail.author, message)
            mail = parse_mail(body.data, body.where)
        move = self._move(patch, source, "clean", "the lane has a body of its own", carried=True)
        if known is not None and known.carried:
            move = replace(known, source_sha256=source.sha256) if ruled else known
        if older and not ruled:
            move = replace(move, reason=self._behind(patch, move.reason))
        difference = compare(parse_mail(source.data, source.where), mail, {})
        return Outcome(patch, move, tree, picked.tree, body, difference)

    def _behind(self, patch: str, reason: str) -> str:
        """What is said of a port whose original has changed since."""
        again = f"patchq rebase --onto {self.base} --again {patch}"
        said = (
            f"the body it was ported from has changed since, and the port was kept; to carry it anew: {again}"
        )
        return reason if said in reason else f"{reason}; {said}"

    def _resolved_before(
        self, attempt: Attempt, source: Body, verdict: Verdict, detail: str
    ) -> Outcome | Pending:
        """A patch with conflicts, those filled in that a person has resolved before."""
        patch, placed = attempt.home.id, attempt.placed
        if placed is None:
            return self._left(patch, attempt.tree, source, verdict, detail)
        known = read_resolutions(self.series.root, patch)
        changes: dict[str, Entry | None] = {}
        troubles: list[Trouble] = []
        count = 0
        for trouble in placed.troubles:
            if trouble.marked is None or trouble.theirs is None:
                troubles.append(trouble)
                continue
            data, left = fill_in(trouble.marked, known)
            count += trouble.marked != data
            if left:
                troubles.append(replace(trouble, marked=data))
            else:
                changes[trouble.file] = Entry(trouble.theirs.mode, self.objects.put("blob", data))
        tree = self.objects.edit_tree(placed.tree, changes)
        if not troubles and tree == attempt.tree:
            return self._left(
                patch, tree, source, "landed", f"{detail}; resolved as before, nothing is left of it"
            )
        if not troubles:
            return self._moved(attempt, source, "merged", f"{detail}; resolved as before", tree)
        rest = replace(placed, tree=tree, troubles=tuple(troubles))
        return Pending(patch, verdict, detail, attempt.tree, rest, source)

    def _moved(self, attempt: Attempt, source: Body, verdict: Verdict, reason: str, tree: str) -> Outcome:
        home = attempt.home
        message = self._titled(home.id, home.patch.message)
        body = self._written(home.id, attempt.tree, tree, home.patch.author, message)
        moved: dict[str, list[str]] = {}
        for old, new in attempt.placed.moved if attempt.placed else ():
            moved.setdefault(old, []).append(new)
        difference = compare(home.patch, parse_mail(body.data, body.where), moved)
        move = self._move(home.id, source, verdict, reason, carried=True)
        return Outcome(home.id, move, attempt.tree, tree, body, difference)

    def _titled(self, patch: str, message: str) -> str:
        """A commit's message under the title that patch.yaml has for the base."""
        _, newline, text = message.partition("\n")
        return self.forecast.series_on(self.base).find(patch).title + newline + text

    def _written(self, patch: str, before: str, after: str, author: Identity, message: str) -> Body:
        """The body that makes one tree of another."""
        where = f"series/{patch}/{self.base}.patch"
        self.objects.flush(self.objects.git_dir)
        diff = diff_trees(self.objects.git_dir, before, after, self.objects.alternates)
        return Body(patch, where, format_mail(author, message, diff, where))

    def _left(self, patch: str, tree: str, source: Body, verdict: Verdict, reason: str) -> Outcome:
        return Outcome(patch, self._move(patch, source, verdict, reason, carried=False), tree, tree)

    def _move(self, patch: str, source: Body, verdict: Verdict, reason: str, *, carried: bool) -> Move:
        lane = self.forecast.home_of(patch, self.base)
        return Move(self.base, carried, verdict, reason, lane, source.sha256, self.ground.tree)


def _by_hand(known: Move | None) -> bool:
    """Whether a person had a part in how a patch came to its base."""
    return known is not None and (known.verdict in BY_HAND or "by a person" in known.reason)
