"""Applying to a checkout that is not quite the base: refused, unless a three-way merge is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.upstreams import ENGINE, GUARD, SOURCES, replaced
from tests.support.world import World, contents, snapshot

if TYPE_CHECKING:
    from pathlib import Path

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
NEAR = replaced(ENGINE, b"class Engine:\n", b"class Engine(Base):\n")


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start(SOURCES)
    more = {"pkg/model.py": b"def first():\n    return 5\n"}
    world.series(("0001-guard", {CORE: GUARDED}), ("0002-apart", more), files=SOURCES)
    return world


def test_merged_only_where_asked_for_and_reported(guarded: World) -> None:
    clone = guarded.clone("mine", {**SOURCES, CORE: NEAR})
    before = snapshot(clone)
    assert guarded.patchq("apply", str(clone)).code == 1
    assert snapshot(clone) == before
    dry = guarded.ok("apply", str(clone), "--three-way", "--dry-run")
    assert snapshot(clone)["files"] == before["files"]
    document = guarded.ok("apply", str(clone), "--three-way")
    assert document["tree"] != document["head"]
    assert [(p["id"], p["verdict"]) for p in document["patches"]] == [
        ("0001-guard", "merged"),
        ("0002-apart", "clean"),
    ]
    assert dry["files"] == document["files"]
    assert (clone / CORE).read_bytes() == replaced(NEAR, HEAD, HEAD + GUARD)
    assert guarded.ok("apply", str(clone), "--three-way")["changed"] is False
    assert guarded.ok("status", str(clone))["applied"] == ["0001-guard", "0002-apart"]
    guarded.ok("unapply", str(clone))
    assert contents(clone) == {k: v[0] for k, v in before["files"].items()}
    assert guarded.git("symbolic-ref", "HEAD", cwd=clone) == "refs/heads/main"
    assert guarded.git("for-each-ref", "--format=%(refname)", cwd=clone) == "refs/heads/main"


def test_a_part_of_it(guarded: World) -> None:
    clone = guarded.clone("mine", {**SOURCES, CORE: NEAR})
    document = guarded.ok("apply", str(clone), "--three-way", "--only", "2")
    assert [p["id"] for p in document["patches"]] == ["0002-apart"]
    document = guarded.ok("apply", str(clone), "--three-way")
    assert [p["id"] for p in document["patches"]] == ["0001-guard", "0002-apart"]


def test_a_conflict_changes_nothing(guarded: World) -> None:
    clone = guarded.clone("mine", {**SOURCES, CORE: replaced(ENGINE, HEAD, b"    def start(self):\n")})
    before = snapshot(clone)
    result = guarded.patchq("apply", str(clone), "--three-way", "--json")
    assert result.code == 1
    assert result.json["error"]["files"] == [CORE]
    assert snapshot(clone) == before


def test_what_the_checkout_has_already_is_not_put_twice(guarded: World) -> None:
    had = replaced(NEAR, HEAD, HEAD + GUARD)
    clone = guarded.clone("mine", {**SOURCES, CORE: had})
    document = guarded.ok("apply", str(clone), "--three-way")
    assert [p["id"] for p in document["patches"]] == ["0002-apart"]
    assert (clone / CORE).read_bytes() == had


def test_on_the_very_base_nothing_is_merged(guarded: World) -> None:
    clone = guarded.clone("mine", SOURCES)
    document = guarded.ok("apply", str(clone), "--three-way")
    assert {p["verdict"] for p in document["patches"]} == {"clean"}
    assert guarded.ok("verify", str(clone))["ok"] is True
