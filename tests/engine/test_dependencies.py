"""Derived needs over small series: real ones found, declared ones held against them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.world import UPSTREAM, edited

if TYPE_CHECKING:
    from tests.support.world import World

ENGINE = "pkg/engine.py"


def chain(world: World) -> None:
    """0002 edits what 0001 wrote; 0003 edits another place of the same file; 0004 another file."""
    one = edited(ENGINE, 10, b"line 10, patched\n")
    two = one.replace(b"line 10, patched\n", b"line 10, patched twice\n")
    three = edited(ENGINE, 50, b"line 50, patched\n", {ENGINE: two})
    world.series(
        ("0001-one", {ENGINE: one}),
        ("0002-two", {ENGINE: two}),
        ("0003-three", {ENGINE: three}),
        ("0004-four", {"README.md": b"patched\n"}),
    )


def kinds(document: Any) -> dict[tuple[str, str], str]:
    return {(e["from"], e["to"]): e["kind"] for e in document["edges"]}


def test_undeclared_need_is_found(world: World) -> None:
    chain(world)
    result = world.patchq("deps", "--json")
    assert result.code == 1
    assert kinds(result.json) == {("0002-two", "0001-one"): "undeclared"}
    assert result.json["edges"][0]["files"] == [ENGINE]
    assert "add it to depends" in world.patchq("deps").out


def test_declared_needs(world: World) -> None:
    chain(world)
    world.describe("0002-two", depends=["0001-one"])
    world.describe("0004-four", depends=["0002-two"], because={"0002-two": "It reads what 0002 computes."})
    document = world.ok("deps")
    assert kinds(document) == {("0002-two", "0001-one"): "textual", ("0004-four", "0002-two"): "semantic"}
    assert document["edges"][1]["because"] == "It reads what 0002 computes."
    assert document["agree"] is True


def test_declared_need_that_is_none(world: World) -> None:
    chain(world)
    world.describe("0002-two", depends=["0001-one"])
    world.describe("0003-three", depends=["0001-one"])
    result = world.patchq("deps", "--json")
    assert (result.code, kinds(result.json)["0003-three", "0001-one"]) == (1, "unfounded")


def test_need_reached_through_another_is_not_undeclared(world: World) -> None:
    one = edited(ENGINE, 10, b"a\n")
    two = edited(ENGINE, 10, b"b\n")
    three = edited(ENGINE, 10, b"c\n")
    world.series(("0001-one", {ENGINE: one}), ("0002-two", {ENGINE: two}), ("0003-three", {ENGINE: three}))
    world.describe("0002-two", depends=["0001-one"])
    world.describe("0003-three", depends=["0002-two"])
    assert kinds(world.ok("deps")) == {
        ("0002-two", "0001-one"): "textual",
        ("0003-three", "0002-two"): "textual",
    }


def test_pairs_that_commute_give_the_same_tree_in_either_order(world: World) -> None:
    chain(world)
    world.describe("0002-two", depends=["0001-one"])
    pairs = {tuple(p) for p in world.ok("deps")["commutes"]}
    assert pairs == {
        ("0001-one", "0003-three"),
        ("0001-one", "0004-four"),
        ("0002-two", "0003-three"),
        ("0002-two", "0004-four"),
        ("0003-three", "0004-four"),
    }


def test_two_that_insert_at_one_place_do_not_commute(world: World) -> None:
    text = UPSTREAM[ENGINE]
    one = text.replace(b"line 30\n", b"line 30\nfirst\n")
    two = one.replace(b"first\n", b"first\nsecond\n")
    world.series(("0001-one", {ENGINE: one}), ("0002-two", {ENGINE: two}))
    world.describe("0002-two", depends=["0001-one"])
    document = world.ok("deps")
    assert document["commutes"] == []


def test_because_without_depends_is_refused(world: World) -> None:
    chain(world)
    world.describe("0004-four", because={"0002-two": "?"})
    result = world.patchq("deps")
    assert result.code == 2
    assert "series/0004-four/patch.yaml" in result.err
    assert "which depends does not list" in result.err
