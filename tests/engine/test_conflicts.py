"""Conflict markers: read, filled in from what is known, and learnt from a resolved file."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.engine.conflicts import Conflict, fill_in, learn, marker_line, read_pieces
from patchq.series.resolutions import Resolution, Resolutions

MARKED = (
    b"one\ntwo\n<<<<<<< upstream\nours\n||||||| the patch's base\nbase\n=======\ntheirs\n>>>>>>> 0001-x\n"
    b"three\nfour\n<<<<<<< upstream\n||||||| the patch's base\nold\n=======\nnew\n>>>>>>> 0001-x\nfive\n"
)
RESOLVED = b"one\ntwo\nboth\nof them\nthree\nfour\nfive\n"


def test_pieces() -> None:
    first, conflict, middle, second, last = read_pieces(MARKED)
    assert (first, middle, last) == ((b"one\n", b"two\n"), (b"three\n", b"four\n"), (b"five\n",))
    assert conflict == Conflict((b"ours\n",), (b"base\n",), (b"theirs\n",))
    assert second == Conflict((), (b"old\n",), (b"new\n",))


def test_markers_are_found_by_line() -> None:
    assert marker_line(MARKED) == 3
    assert marker_line(RESOLVED + b"=======\nunderlined\n") == 0


def test_learnt_and_filled_in_again() -> None:
    learnt = learn("a.py", MARKED, RESOLVED)
    assert learnt == [
        Resolution("a.py", "base\n", "ours\n", "theirs\n", "both\nof them\n"),
        Resolution("a.py", "old\n", "", "new\n", ""),
    ]
    moved = b"zero\n" + MARKED + b"six\n"
    assert fill_in(moved, Resolutions(tuple(learnt))) == (b"zero\n" + RESOLVED + b"six\n", 0)


def test_what_is_not_known_stays() -> None:
    learnt = learn("a.py", MARKED, RESOLVED)
    data, left = fill_in(MARKED, Resolutions(tuple(learnt[1:])))
    assert left == 1
    assert data == MARKED[: MARKED.index(b"three")] + b"three\nfour\nfive\n"
    assert fill_in(MARKED, Resolutions()) == (MARKED, 2)


def test_a_conflict_whose_neighbours_were_edited_is_not_learnt() -> None:
    assert learn("a.py", MARKED, b"ONE\nTWO\nboth\nTHREE\nfour\nfive\n") == []


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=6)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, LINES, LINES, LINES, LINES)
def test_what_is_learnt_gives_the_resolved_file_again(
    before: list[bytes], ours: list[bytes], theirs: list[bytes], resolved: list[bytes], after: list[bytes]
) -> None:
    before, after = [b"first\n", *before, b"above\n"], [b"below\n", *after, b"last\n"]
    marked = b"".join(
        [*before, b"<<<<<<< u\n", *ours, b"||||||| b\n", b"=======\n", *theirs, b">>>>>>> p\n", *after]
    )
    wanted = b"".join([*before, *resolved, *after])
    learnt = learn("f", marked, wanted)
    assert len(learnt) == 1
    assert fill_in(marked, Resolutions(tuple(learnt))) == (wanted, 0)
