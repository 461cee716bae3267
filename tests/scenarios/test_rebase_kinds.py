"""Each way in which upstream can have a patch, or have moved from under it, carried out: the verdict and the tree."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.upstreams import ENGINE, GUARD, SOURCES, lane_tree, release, replaced, tree_id
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
COUNT = b"        count = size * 2\n"
REST, OTHER = b"    rest = value - 1\n", b"    rest = value - 2\n"
PATCH = "0001-guard"
HALF = ENGINE.index(b"def helper")
TWINS = ENGINE.index(b"def tail")


def change(data: bytes) -> bytes:
    """The patch: a guard in Engine.start, and another number in tail."""
    return replaced(replaced(data, HEAD, HEAD + GUARD), REST, OTHER)


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start(SOURCES)
    world.series((PATCH, {CORE: change(ENGINE)}), files=SOURCES)
    return world


SQUASHED = replaced(change(ENGINE), b"import math\n", b"import math\nimport os\n")
INDENTED = b"        self.count = count\n        with self.lock:\n" + b"".join(
    b"    " + line for line in GUARD.splitlines(keepends=True)
)
AWAY = replaced(replaced(ENGINE, COUNT, COUNT + INDENTED), REST, OTHER)
LATER = replaced(ENGINE, b"import math\n", b"import math\nimport sys\n")
PIECES = {"pkg/core/__init__.py": b"from .engine import Engine\n", "pkg/core/engine.py": ENGINE[:HALF]}
SUMS = b"import os\n\n\n" + ENGINE[HALF:]


@pytest.mark.parametrize(
    ("there", "verdict", "result"),
    [
        ({CORE: change(ENGINE)}, "landed", None),
        ({CORE: SQUASHED, "pkg/more.py": b"more = 1\n"}, "landed", None),
        ({CORE: AWAY}, "landed", None),
        ({CORE: replaced(ENGINE, HEAD, HEAD + GUARD)}, "partial", {CORE: change(ENGINE)}),
        ({"README.md": b"a tag without it\n"}, "clean", {CORE: change(ENGINE)}),
        ({CORE: None, "pkg/deep/kernel.py": LATER}, "merged", {"pkg/deep/kernel.py": change(LATER)}),
        (
            {CORE: None, **PIECES, "pkg/core/sums.py": SUMS},
            "merged",
            {
                "pkg/core/engine.py": replaced(ENGINE[:HALF], HEAD, HEAD + GUARD),
                "pkg/core/sums.py": replaced(SUMS, REST, OTHER),
            },
        ),
    ],
    ids=["as is", "squashed", "lines away", "half", "not in the tag", "renamed", "became a package"],
)
def test_what_goes_by_itself(
    guarded: World, there: dict[str, bytes | None], verdict: str, result: dict[str, bytes] | None
) -> None:
    files = release(guarded, "v2", there)
    (found,) = guarded.ok("rebase", "--onto", "v2")["patches"]
    assert (found["verdict"], found["carried"]) == (verdict, result is not None)
    assert lane_tree(guarded, "v2") == tree_id(guarded, {**files, **(result or {})})


@pytest.mark.parametrize(
    ("there", "verdict", "file"),
    [
        ({CORE: None}, "missing", CORE),
        ({CORE: ENGINE[: ENGINE.index(HEAD)] + ENGINE[ENGINE.index(b"    def stop") :]}, "missing", CORE),
        ({CORE: ENGINE[:TWINS]}, "missing", CORE),
        ({CORE: replaced(ENGINE, REST, b"    rest = value - 7\n")}, "conflict", CORE),
    ],
    ids=["file deleted", "method deleted, twin left", "function deleted", "same line"],
)
def test_what_asks_a_person(guarded: World, there: dict[str, bytes | None], verdict: str, file: str) -> None:
    files = release(guarded, "v2", there)
    result = guarded.patchq("rebase", "--onto", "v2", "--json")
    assert result.code == 1
    pending = result.json["pending"]
    assert (pending["verdict"], [f["file"] for f in pending["files"]]) == (verdict, [file])
    assert result.json["patches"] == []
    guarded.ok("rebase", "--skip")
    assert lane_tree(guarded, "v2") == tree_id(guarded, files)


@pytest.mark.parametrize("same", [True, False])
def test_both_sides_add_one_path(tmp_path: Path, same: bool) -> None:
    world = World(tmp_path)
    world.start(SOURCES)
    world.series(("0001-new", {"pkg/fresh.py": b"fresh = 1\n"}), files=SOURCES)
    files = release(world, "v2", {"pkg/fresh.py": b"fresh = 1\n" if same else b"fresh = 2\n"})
    result = world.patchq("rebase", "--onto", "v2", "--json")
    assert result.code == (0 if same else 1)
    if same:
        assert result.json["patches"][0]["verdict"] == "landed"
    else:
        assert result.json["pending"]["verdict"] == "conflict"
        world.ok("rebase", "--skip")
    assert lane_tree(world, "v2") == tree_id(world, files)


STEPS = b"    one = 1\n    two = 2\n    three = 3\n    four = 4\n    five = 5\n"
GROW = b"def grow(size):\n" + STEPS + b"    return size + one + two + three + four + five\n"
TEST = b"from pkg import grow\n\n\ndef test_it():\n    assert grow.grow(0) == 115\n"
OURS = replaced(GROW, b"    one = 1\n", b"    one = 1\n    size += 100\n")
THEIRS = replaced(GROW, b"    five = 5\n", b"    five = 5\n    size = size + 100\n")


def run_tests(world: World, *args: str) -> Any:
    return world.patchq("test", "--base", "v2", "--python", sys.executable, "--json", *args)


def test_a_merge_that_does_a_thing_twice_is_caught_by_the_patchs_tests(tmp_path: Path) -> None:
    """Upstream does the same in other words some lines away: text goes on cleanly, and the sum is wrong."""
    world = World(tmp_path)
    sources = {**SOURCES, "pkg/grow.py": GROW}
    world.start(sources)
    world.series(("0001-more", {"pkg/grow.py": OURS, "tests/test_it.py": TEST}), files=sources)
    files = release(world, "v2", {"pkg/grow.py": THEIRS})
    (moved,) = world.ok("rebase", "--onto", "v2")["patches"]
    assert (moved["verdict"], moved["carried"]) == ("clean", True)
    twice = replaced(THEIRS, b"    one = 1\n", b"    one = 1\n    size += 100\n")
    both = {**files, "pkg/grow.py": twice, "tests/test_it.py": TEST}
    assert lane_tree(world, "v2") == tree_id(world, both)
    proof = run_tests(world, "--prove")
    assert proof.code == 1
    (result,) = proof.json["results"]
    assert result["proved"] is False
    assert "after: failed: tests/test_it.py::test_it: assert 215 == 115" in result["against"][0]
    stock = run_tests(world, "--stock", "--record")
    assert [r["status"] for r in stock.json["results"]] == ["landed"]
    (left,) = world.ok("rebase", "--onto", "v2")["patches"]
    assert (left["verdict"], left["carried"]) == ("reworked", False)
    assert lane_tree(world, "v2") == tree_id(world, files)
    assert not (world.project / "series/0001-more/v2.patch").exists()
