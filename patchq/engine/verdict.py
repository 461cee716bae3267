"""What became of a patch on a base: text, behaviour and a person's ruling brought to one verdict with its evidence.

How they weigh: a ruling wins while it is about these bytes and this tree. Else behaviour decides what landed, where the
patch's tests were run on the stock base. Text decides the rest: how the patch goes on, and, without behaviour, what
seems to be there. Where behaviour and text disagree, the disagreement is named.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from patchq.text import listed

if TYPE_CHECKING:
    from patchq.engine.behaviour import Behaviour
    from patchq.engine.placing import Fit, Placed
    from patchq.engine.signs import Signs
    from patchq.series.rulings import Ruling, Verdict

PARTLY = 0.1
"""The share of a patch's edits from which it has landed in part; a line or two that upstream wrote too is no part."""

MOVES: frozenset[Verdict] = frozenset({"clean", "offset", "merged", "reverted"})
"""The verdicts whose patches move to a base by themselves."""
LEAVES: frozenset[Verdict] = frozenset({"landed", "reworked"})
"""The verdicts whose patches are not needed on a base."""

_DID = {"landed": "it landed with", "left": "it left with", "broke": "it was broken by"}

_RANK: dict[str, int] = {
    "clean": 0,
    "offset": 0,
    "landed": 0,
    "merged": 1,
    "reverted": 1,
    "reworked": 2,
    "partial": 2,
    "conflict": 3,
    "missing": 4,
}


def is_worse(now: Verdict, was: Verdict) -> bool:
    """Whether a verdict asks more of a person than another; a moved line number asks nothing."""
    return _RANK[now] > _RANK[was]


@dataclass(frozen=True)
class Text:
    """What the text alone says.

    Attributes:
        verdict: what the patch is by its text.
        fit: how it goes on: `clean`, `offset`, `merged`, `conflict` or `missing`; None where all of it is there.
        detail: one sentence.
        files: the files that the verdict is about.
        tree: the tree with what is left of the patch; empty where it does not go on.
        share: how much of its edits the base has, from 0 to 1.
        signs: what shows that, edit by edit.
        offsets: hunks that moved.
        moved: files that were followed.
        troubles: what does not go on.
        blocked_by: patches it depends on that do not go on themselves.
    """

    verdict: Verdict
    fit: Fit | None
    detail: str
    files: tuple[str, ...] = ()
    tree: str = ""
    share: float = 0.0
    signs: tuple[dict[str, Any], ...] = ()
    offsets: tuple[dict[str, Any], ...] = ()
    moved: tuple[dict[str, str], ...] = ()
    troubles: tuple[dict[str, Any], ...] = ()
    blocked_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cell:
    """A patch on a base.

    Attributes:
        verdict: what became of it.
        detail: why, in a sentence or two.
        files: the files that the verdict is about.
        text: what the text alone says.
        behaviour: what its tests say of the stock base, where they were run there.
        ruling: a person's decision, whether it holds or not.
        ruled: whether the ruling holds.
        disagreement: what text and behaviour (or a ruling) say against each other; empty where they agree.
        earlier: the base between home and here on which it had landed; empty where there is none.
        commits: upstream commits that matter, by what they did (`landed`, `left`, `broke`).
    """

    verdict: Verdict
    detail: str
    files: tuple[str, ...]
    text: Text
    behaviour: Behaviour | None = None
    ruling: Ruling | None = None
    ruled: bool = False
    disagreement: str = ""
    earlier: str = ""
    commits: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        data = asdict(self)
        del data["ruled"]
        if data["ruling"] is not None:
            data["ruling"]["holds"] = self.ruled
        return data


def judge_text(signs: Signs, placed: Placed | None, tree: str, blocked_by: tuple[str, ...]) -> Text:
    """What the text says.

    Args:
        signs: what of the patch is there.
        placed: how the rest of it goes on; None where all of it is there.
        tree: the tree it was held against.
        blocked_by: patches it depends on that are not in that tree and should be.
    """
    found = tuple(asdict(sign) for sign in signs.found)
    if placed is None:
        files = tuple(dict.fromkeys(s.file for s in signs.found))
        how = ", ".join(dict.fromkeys(s.how for s in signs.found))
        return Text("landed", None, f"all of it is there ({how})", files, tree, 1.0, found)
    if not placed.troubles and placed.tree == tree and signs.weight:
        return Text("landed", None, "putting it on changes nothing", tuple(placed.merged), tree, 1.0, found)
    verdict: Verdict = "partial" if signs.share >= PARTLY else placed.fit
    said, files = _fit(placed)
    if blocked_by:
        needed = f"{', '.join(blocked_by)}, which {'do' if len(blocked_by) > 1 else 'does'} not go on here"
        said = f"blocked by {needed}: {said}" if placed.troubles else f"{said}; it depends on {needed}"
        verdict = "conflict" if verdict == "missing" else verdict
    if verdict == "partial":
        there = tuple(dict.fromkeys(s.file for s in signs.found))
        files = tuple(dict.fromkeys((*there, *files)))
        said = f"{signs.share:.0%} of its edits are there ({listed(there)}); the rest: {said}"
    elif signs.found:
        said = f"{said}; {len(signs.found)} of its edits stand there already"
    return Text(
        verdict,
        placed.fit,
        said,
        files,
        "" if placed.troubles else placed.tree,
        round(signs.share, 3),
        found,
        tuple(offset._asdict() for offset in placed.offsets),
        tuple({"from": old, "to": new} for old, new in placed.moved),
        tuple(
            {"file": t.file, "home": t.home, "missing": t.missing, "reason": t.reason, "hunks": list(t.hunks)}
            for t in placed.troubles
        ),
        blocked_by,
    )


def _fit(placed: Placed) -> tuple[str, tuple[str, ...]]:
    """How a patch goes on, in words, and the files that tell."""
    followed = "; ".join(f"{old} is {new} here" for old, new in placed.moved)
    if placed.troubles:
        said = "; ".join(f"{t.file} {t.reason}" for t in placed.troubles)
        files = tuple(dict.fromkeys(t.file for t in placed.troubles))
        return "; ".join(filter(None, [said, followed])), files
    if placed.merged or placed.moved:
        merged = f"goes on by a three-way merge of {listed(placed.merged)}" if placed.merged else ""
        return "; ".join(filter(None, [merged, followed])), placed.merged
    if placed.offsets:
        files = tuple(dict.fromkeys(o.file for o in placed.offsets))
        moved = {
            file: ", ".join(f"hunk {o.hunk} by {o.lines:+d}" for o in placed.offsets if o.file == file)
            for file in files
        }
        return f"applies at an offset: {listed([f'{f} ({m} lines)' for f, m in moved.items()])}", files
    return "applies as it is", ()


def decide(
    text: Text,
    behaviour: Behaviour | None,
    ruling: Ruling | None,
    *,
    holds: bool,
    earlier: str,
    commits: dict[str, dict[str, Any]],
) -> Cell:
    """Bring what is known of a patch on a base to one verdict.

    Args:
        text: what its text says.
        behaviour: what its tests say of the stock base, where they were run.
        ruling: a person's decision, where there is one.
        holds: whether that is about these bytes and this tree.
        earlier: a base (or commit) between home and here that had all of it; empty where none is known.
        commits: the upstream commits that decided over it, by what they did.
    """
    told = [f"{_DID[name]} {c['commit'][:12]} ({c['title']})" for name, c in commits.items()]
    detail = "; ".join([text.detail, *told])
    cell = Cell(text.verdict, detail, text.files, text, behaviour, earlier=earlier, commits=commits)
    cell = _with_history(cell, text)
    if behaviour is not None:
        cell = _with_behaviour(cell, text, behaviour)
    if ruling is None:
        return cell
    cell = replace(cell, ruling=ruling, ruled=holds)
    if not holds:
        return replace(
            cell,
            detail=f"{cell.detail}; a ruling ({ruling.verdict}) has expired: patch or base changed since",
        )
    against = f"by its text and tests it is {cell.verdict}" if cell.verdict != ruling.verdict else ""
    return replace(
        cell,
        verdict=ruling.verdict,
        detail=f"ruled by a person: {ruling.because}",
        disagreement=against or cell.disagreement,
    )


def _with_history(cell: Cell, text: Text) -> Cell:
    """A patch that an earlier base had: it left again, or upstream went on from it."""
    if not cell.earlier or text.verdict == "landed":
        return replace(cell, earlier="")
    if text.verdict in {"clean", "offset", "merged"} and not text.share:
        return replace(
            cell, verdict="reverted", detail=f"it had landed in {cell.earlier} and left again; {cell.detail}"
        )
    return replace(
        cell,
        verdict="reworked",
        detail=f"it had landed in {cell.earlier}, and upstream changed it since; {cell.detail}",
    )


def _with_behaviour(cell: Cell, text: Text, behaviour: Behaviour) -> Cell:
    counts = behaviour.counts
    ran = f"{counts.passed} passed, {counts.failed} failed, {counts.errors} errors, {counts.skipped} skipped"
    tests = f"its tests on the stock base: {ran}"
    if behaviour.unable:
        tests = f"{tests} ({behaviour.unable} of them over a name that the patch does not bring)"
    if behaviour.says == "cannot run":
        why = f": {behaviour.why[0]}" if behaviour.why else ""
        return replace(cell, detail=f"{cell.detail}; its tests cannot run on the stock base ({ran}){why}")
    if behaviour.tests_only:
        return replace(
            cell, detail=f"{cell.detail}; {tests}; they are all that it is, so that its text decides"
        )
    by_text = "landed" if text.verdict == "landed" else "partial" if text.verdict == "partial" else "absent"
    if behaviour.says == by_text:
        return replace(cell, detail=f"{cell.detail}; {tests}")
    disagreement = f"its tests say {behaviour.says}, its text says {by_text}"
    if behaviour.says == "landed":
        said = f"upstream has it another way; {tests}"
        return replace(cell, verdict="reworked", detail=said, disagreement=disagreement)
    if behaviour.says == "partial" or by_text == "landed":
        said = f"some of it is there; {tests}; {text.detail}"
        return replace(cell, verdict="partial", detail=said, disagreement=disagreement)
    verdict = cell.verdict if cell.earlier else text.fit or cell.verdict
    return replace(cell, verdict=verdict, detail=f"{text.detail}; {tests}", disagreement=disagreement)
