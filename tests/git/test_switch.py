"""What a switch is, before it is carried out; carrying it out is under tests/scenarios."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from patchq.git.objects import EXECUTABLE, REGULAR, Entry
from patchq.git.switch import Switch
from patchq.git.trees import Change, diff_trees
from tests.support.oracle import File, Oracle, executable, link

if TYPE_CHECKING:
    from pathlib import Path

PAIRS: list[tuple[dict[str, File | bytes], dict[str, File | bytes]]] = [
    ({"a": b"1", "d/e": b"2", "same/x": b""}, {"a": b"2", "d/f": b"2", "same/x": b""}),
    ({"a": b"1"}, {"a/b": b"1"}),
    ({"a/b": b"1", "a/c": b"1"}, {"a": b"1"}),
    ({"a": b"1"}, {"a": executable(b"1")}),
    ({"a": b"1"}, {"a": link(b"1")}),
    ({}, {"\u00e4/ b": b"", os.fsdecode(b"\xff\n"): b""}),
    ({"x.y": b"", "x/z": b""}, {}),
]


@pytest.mark.parametrize("number", range(len(PAIRS)))
def test_trees_differ_where_git_says_so(tmp_path: Path, number: int) -> None:
    git = Oracle(tmp_path / "repo").start()
    old, new = (git.tree(files) for files in PAIRS[number])
    rows = os.fsdecode(
        git.git("diff-tree", "-r", "-z", "--no-renames", "--full-index", old, new).stdout
    ).split("\0")[:-1]
    expected = set()
    for head, path in zip(rows[::2], rows[1::2], strict=True):
        one, two, from_oid, to_oid, _ = head[1:].split(" ")
        entries = [
            None if int(o, 16) == 0 else Entry(int(m, 8), o) for m, o in ((one, from_oid), (two, to_oid))
        ]
        expected.add(Change(path, *entries))
    with git.objects() as objects:
        found = diff_trees(objects, old, new)
        assert len(found) == len(set(found))
        assert set(found) == expected
        assert {c._replace(old=c.new, new=c.old) for c in diff_trees(objects, new, old)} == expected
        assert diff_trees(objects, old, old) == []


def test_a_switch_survives_the_journal() -> None:
    changes = (
        Change("a", None, Entry(REGULAR, "1" * 40)),
        Change(os.fsdecode(b"\xff"), Entry(EXECUTABLE, "2" * 40), None),
        Change("\u00e4\n", Entry(REGULAR, "1" * 40), Entry(EXECUTABLE, "1" * 40)),
    )
    switch = Switch("token", "1" * 40, "2" * 40, None, "refs/heads/x", None, "refs/heads/y", changes)
    assert Switch.from_dict(json.loads(json.dumps(switch.as_dict()))) == switch


@pytest.mark.parametrize(
    "data",
    [{}, {"changes": 1}, {"changes": [[1]]}, {"changes": [], "token": "x"}, {"changes": [], "more": 1}],
)
def test_a_damaged_journal_is_no_switch(data: dict[str, object]) -> None:
    with pytest.raises((TypeError, KeyError, ValueError)):
        Switch.from_dict(data)
