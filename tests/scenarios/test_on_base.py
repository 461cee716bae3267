"""What patch.yaml says of a single base counts there, in every command, and nowhere else."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.proving import BETTER, GOOD, MODEL, TEST
from tests.support.world import UPSTREAM

if TYPE_CHECKING:
    from tests.support.world import World

MORE = BETTER.replace(b"return 2", b"return 20")
TITLE = "[Other] better, by another name"


def two(world: World) -> None:
    """Two patches on v1, the second declared to need the first; and v2, where files stand elsewhere."""
    world.series(
        ("0001-better", {"pkg/model.py": BETTER, TEST: GOOD}),
        ("0002-more", {"pkg/model.py": MORE, "tests/test_more.py": GOOD.replace(b"first() == 10", b"second() == 20")}),
    )  # fmt: skip
    why = {"0001-better": "They are meant together."}
    more = [{"gate": "cpu", "run": ["tests/test_more.py"]}]
    world.describe("0002-more", depends=["0001-better"], because=why, tests=more)
    top = world.write_upstream({**UPSTREAM, "pkg/model.py": b"import os\n" + MODEL}, at=world.top / "v2")
    assert world.patchq("upstream", "add", "v2", "--directory", str(top)).code == 0


def test_titles_tests_and_needs_of_a_base(world: World) -> None:
    two(world)
    tests = [{"gate": "cpu", "run": [f"{TEST}::test_first"]}]
    world.describe("0001-better", bases={"v2": {"title": TITLE, "tests": tests}})
    more = [{"gate": "cpu", "run": ["tests/test_more.py"]}]
    world.describe("0002-more", depends=["0001-better"], tests=more,
                   because={"0001-better": "They are meant together."}, bases={"v2": {"depends": []}})  # fmt: skip
    document = world.ok("rebase", "--onto", "v2")
    assert [p["carried"] for p in document["patches"]] == [True, True]
    assert document["patches"][0]["difference"]["message"] is True
    titles = {b: [p["title"] for p in world.ok("status", "--base", b)["patches"]] for b in ("v1", "v2")}
    assert titles["v1"] == ["[Test] better", "[Test] more"]
    assert titles["v2"] == [TITLE, "[Test] more"]
    assert [e["to"] for e in world.ok("deps", "--base", "v1")["edges"]] == ["0001-better"]
    assert world.ok("deps", "--base", "v2")["edges"] == []
    made = world.top / "made"
    applied = world.ok("apply", "--create", str(made), "--base", "v2", "--only", "2")
    assert [p["id"] for p in applied["patches"]] == ["0002-more"]
    world.ok("apply", str(made), "--base", "v2")
    assert world.git("log", "--format=%s", "-2", cwd=made).split("\n") == ["[Test] more", TITLE]
    assert world.ok("refresh", str(made), "--base", "v2")["written"] == []
    assert world.ok("rebase", "--onto", "v2")["tree"] == document["tree"]
    shown = world.ok("test", "1", "--base", "v2", "--prove", "--python", sys.executable)
    assert [r["proved"] for r in shown["results"]] == [True]


def test_a_title_that_comes_later_is_taken_over_by_the_next_rebase(world: World) -> None:
    two(world)
    world.ok("rebase", "--onto", "v2")
    world.describe("0001-better", bases={"v2": {"title": TITLE}})
    document = world.ok("rebase", "--onto", "v2")
    assert TITLE.encode() in (world.project / "series/0001-better/v2.patch").read_bytes()
    assert document["pending"] is None
    assert TITLE.encode() not in (world.project / "series/0001-better/v1.patch").read_bytes()


def test_a_patch_without_a_body_for_a_base_is_not_in_its_lane(world: World) -> None:
    two(world)
    (world.top / "v3").mkdir()
    top = world.write_upstream({**UPSTREAM, "pkg/model.py": BETTER, TEST: GOOD}, at=world.top / "v3")
    assert world.patchq("upstream", "add", "v3", "--directory", str(top)).code == 0
    document = world.ok("rebase", "--onto", "v3")
    assert [p["carried"] for p in document["patches"]] == [False, True]
    shown = world.ok("test", "--base", "v3", "--prove", "--python", sys.executable)
    assert [(r["id"], r["proved"]) for r in shown["results"]] == [("0002-more", True)]
    assert world.ok("deps", "--base", "v3")["edges"] == []
    status = world.ok("status", "--base", "v3")["patches"]
    assert [p["verdict"] for p in status] == ["landed", "clean"]


def test_a_base_that_there_is_not(world: World) -> None:
    two(world)
    world.describe("0001-better", bases={"2": {"limits": ["None."]}})
    result = world.patchq("status")
    assert result.code == 2
    file = world.project / "series/0001-better/patch.yaml"
    line = next(n for n, text in enumerate(file.read_text().split("\n"), 1) if text.startswith("  '2':"))
    assert f"series/0001-better/patch.yaml:{line}: bases names '2'" in result.err
    assert "v1, v2" in result.err


def test_needs_that_do_not_hold_on_a_base(world: World) -> None:
    two(world)
    world.describe("0001-better", bases={"v2": {"depends": ["0002-more"]}})
    world.describe("0002-more", bases={"v2": {"limits": ["None."]}})
    result = world.patchq("status")
    assert result.code == 2
    file = world.project / "series/0001-better/patch.yaml"
    line = next(
        n for n, text in enumerate(file.read_text().split("\n"), 1) if text.startswith("    depends:")
    )
    assert f"series/0001-better/patch.yaml:{line}: depends on 0002-more, which comes later" in result.err
