"""How text, behaviour, history and a ruling weigh against each other, as a pure function."""

from __future__ import annotations

import pytest

from patchq.engine.behaviour import Behaviour, Says, judge
from patchq.engine.verdict import LEAVES, MOVES, Text, decide, is_worse
from patchq.series.evidence import Counts
from patchq.series.rulings import VERDICTS, Ruling, Verdict

NONE = Counts(0, 0, 0, 0)
CLEAN = Text("clean", "clean", "applies as it is", tree="t")
CONFLICT = Text("conflict", "conflict", "a.py was changed", ("a.py",))
PARTIAL = Text("partial", "merged", "half", ("a.py",), "t", 0.5)
LANDED = Text("landed", None, "all of it", ("a.py",), "t", 1.0)


def behaving(says: Says) -> Behaviour:
    return Behaviour(says, Counts(1, 1, 0, 0), "cpu")


@pytest.mark.parametrize(
    ("text", "says", "verdict", "disagrees"),
    [
        (CLEAN, "absent", "clean", False),
        (CLEAN, "landed", "reworked", True),
        (CLEAN, "partial", "partial", True),
        (CLEAN, "cannot run", "clean", False),
        (CONFLICT, "absent", "conflict", False),
        (CONFLICT, "landed", "reworked", True),
        (CONFLICT, "partial", "partial", True),
        (PARTIAL, "partial", "partial", False),
        (PARTIAL, "absent", "merged", True),
        (PARTIAL, "landed", "reworked", True),
        (LANDED, "landed", "landed", False),
        (LANDED, "absent", "partial", True),
        (LANDED, "partial", "partial", True),
        (LANDED, "cannot run", "landed", False),
    ],
)
def test_behaviour_and_text(text: Text, says: Says, verdict: Verdict, disagrees: bool) -> None:
    cell = decide(text, behaving(says), None, holds=False, earlier="", commits={})
    assert (cell.verdict, bool(cell.disagreement)) == (verdict, disagrees)
    assert "1 passed, 1 failed" in cell.detail


@pytest.mark.parametrize(
    ("text", "verdict"),
    [(CLEAN, "reverted"), (CONFLICT, "reworked"), (PARTIAL, "reworked"), (LANDED, "landed")],
)
def test_what_had_landed_before(text: Text, verdict: Verdict) -> None:
    cell = decide(text, None, None, holds=False, earlier="v2", commits={})
    assert cell.verdict == verdict
    assert bool(cell.earlier) == (text is not LANDED)


@pytest.mark.parametrize("holds", [True, False])
def test_a_ruling_wins_while_it_holds(holds: bool) -> None:
    ruling = Ruling("v2", "landed", "Because.", "0" * 64, "0" * 40, "2026-01-02")
    cell = decide(CONFLICT, behaving("absent"), ruling, holds=holds, earlier="", commits={})
    assert cell.verdict == ("landed" if holds else "conflict")
    assert cell.as_dict()["ruling"]["holds"] is holds


@pytest.mark.parametrize(
    ("counts", "before", "says"),
    [
        (Counts(3, 0, 0, 0), NONE, "landed"),
        (Counts(3, 0, 1, 0), NONE, "partial"),
        (Counts(3, 0, 1, 0), Counts(3, 2, 0, 0), "cannot run"),
        (Counts(2, 1, 0, 0), Counts(1, 2, 0, 0), "partial"),
        (Counts(1, 2, 0, 0), Counts(1, 2, 0, 0), "absent"),
        (Counts(0, 3, 0, 0), NONE, "absent"),
        (Counts(0, 0, 0, 3), NONE, "cannot run"),
        (Counts(0, 0, 3, 0), NONE, "cannot run"),
        (NONE, NONE, "cannot run"),
        (Counts(3, 0, 0, 1), Counts(0, 3, 0, 0), "partial"),
    ],
)
def test_what_counts_say(counts: Counts, before: Counts, says: Says) -> None:
    assert judge(counts, before) == says


@pytest.mark.parametrize(
    ("counts", "before", "unable", "newly", "says"),
    [
        (Counts(0, 3, 0, 0), NONE, 3, None, "cannot run"),
        (Counts(0, 3, 0, 0), NONE, 2, None, "absent"),
        (Counts(2, 3, 0, 0), Counts(2, 3, 0, 0), 3, None, "cannot run"),
        (Counts(2, 1, 0, 0), Counts(2, 1, 0, 0), 0, 1, "partial"),
        (Counts(5, 1, 0, 0), Counts(2, 1, 0, 0), 0, 0, "absent"),
        (Counts(2, 0, 0, 0), Counts(2, 1, 0, 0), 0, 0, "landed"),
    ],
)
def test_what_could_not_run_says_nothing_and_names_count_before_numbers(
    counts: Counts, before: Counts, unable: int, newly: int | None, says: Says
) -> None:
    assert judge(counts, before, unable=unable, newly=newly) == says


def test_worse() -> None:
    for verdict in VERDICTS:
        assert not is_worse(verdict, verdict)
    assert is_worse("conflict", "merged")
    assert is_worse("missing", "conflict")
    assert not is_worse("offset", "clean")
    assert not is_worse("landed", "clean")
    assert not is_worse("clean", "conflict")
    assert MOVES.isdisjoint(LEAVES)
