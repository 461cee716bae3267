"""A patch's tests on a stock base: what they say of the feature there, and what they cannot say."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from patchq.testing.stock import Brought
from tests.support.proving import BETTER, GOOD, MODEL, TEST, bring, prove
from tests.support.upstreams import cell
from tests.support.world import UPSTREAM

if TYPE_CHECKING:
    from tests.support.world import World

PATCH = "0001-better"
TWO = GOOD + b"\n\ndef test_second():\n    assert model.second() == 20\n"
BOTH = BETTER.replace(b"return 2", b"return 20")
NEAR = b"from pkg import model\n\n\ndef test_third():\n    assert model.third() == 3\n"


def base(world: World, name: str, changes: dict[str, bytes | None] | None = None) -> None:
    """Another base: the first one with some files changed."""
    files: dict[str, bytes] = dict(UPSTREAM)
    for path, data in (changes or {}).items():
        if data is None:
            files.pop(path, None)
        else:
            files[path] = data
    top = world.write_upstream(files, at=world.top / name)
    assert world.patchq("upstream", "add", name, "--directory", str(top)).code == 0


def stock(world: World, name: str, *args: str) -> Any:
    """`patchq test --stock --record --json` on a base, with this interpreter; the one result, with the exit code."""
    result = world.patchq(
        "test", "--stock", "--base", name, "--python", sys.executable, "--record", "--json", *args
    )
    assert result.code in {0, 1}, result.err
    (found,) = result.json["results"]
    return {**found, "code": result.code, "recorded": result.json["recorded"]}


def test_absent(world: World) -> None:
    bring(world, GOOD)
    base(world, "v2", {"README.md": b"later\n"})
    found = stock(world, "v2")
    assert (found["code"], found["status"], found["mode"], found["proved"]) == (0, "absent", "stock", None)
    assert found["after"] == {"passed": 0, "failed": 1, "skipped": 0, "errors": 0}
    assert found["recorded"] == [f"series/{PATCH}/evidence.jsonl"]
    here = cell(world, PATCH, "v2")
    assert (here["verdict"], here["disagreement"]) == ("clean", "")
    assert here["behaviour"]["says"] == "absent"
    assert "its tests on the stock base: 0 passed, 1 failed" in here["detail"]
    assert stock(world, "v2")["recorded"] == []


def test_landed_another_way_is_reworked_and_leaves_the_lane(world: World) -> None:
    bring(world, GOOD)
    other = MODEL.replace(b"    return 1\n", b"    ten = 5 * 2\n    return ten\n")
    base(world, "v2", {"pkg/model.py": other})
    assert cell(world, PATCH, "v2")["verdict"] == "conflict"
    found = stock(world, "v2")
    assert (found["code"], found["status"]) == (0, "landed")
    here = cell(world, PATCH, "v2")
    assert here["verdict"] == "reworked"
    assert here["disagreement"] == "its tests say landed, its text says absent"
    (moved,) = world.ok("rebase", "--onto", "v2")["patches"]
    assert (moved["verdict"], moved["carried"]) == ("reworked", False)
    assert "its tests on the stock base: 1 passed" in moved["reason"]
    assert not (world.project / "series" / PATCH / "v2.patch").exists()


def test_partial(world: World) -> None:
    bring(world, TWO, production={"pkg/model.py": BOTH})
    base(world, "v2", {"pkg/model.py": BETTER.replace(b"return 10", b"return 3 + 7")})
    assert stock(world, "v2")["status"] == "partial"
    assert cell(world, PATCH, "v2")["verdict"] == "partial"


def test_what_passes_at_home_without_the_patch_is_no_part_of_it(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_third():\n    assert model.third() == 3\n")
    base(world, "v2", {"README.md": b"later\n"})
    assert prove(world, "--record").code == 0
    found = stock(world, "v2")
    assert (found["after"]["passed"], found["status"]) == (1, "absent")


def test_a_module_that_moved_is_not_absence(world: World) -> None:
    bring(world, b"from pkg.engine_helper import x\n" + GOOD, tests=[{"gate": "cpu", "run": [TEST]}])
    base(world, "v2")
    found = stock(world, "v2")
    assert (found["code"], found["status"]) == (1, "cannot run")
    assert "No module named 'pkg.engine_helper'" in found["notes"][0]
    here = cell(world, PATCH, "v2")
    assert (here["verdict"], here["disagreement"]) == ("clean", "")
    assert "cannot run on the stock base" in here["detail"]
    assert "pkg.engine_helper" in here["detail"]


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        (b"from pkg.model import moved_away", "cannot run"),
        (b"model.moved_away()", "cannot run"),
        (b"from pkg.model import brought", "absent"),
        (b"model.brought()", "absent"),
        (b"import pkg.fresh", "absent"),
        (b"import pkg.other", "cannot run"),
    ],
)
def test_names_that_a_test_looks_up_as_it_runs(world: World, inside: bytes, says: str) -> None:
    test = b"from pkg import model\n\n\ndef test_it():\n    " + inside + b"\n"
    production = {
        "pkg/model.py": MODEL + b"\n\ndef brought():\n    return moved_away\n",
        "pkg/fresh.py": b"",
    }
    bring(world, test, production=production)
    base(world, "v2")
    assert stock(world, "v2")["status"] == says


def test_changed_test_files_are_merged_and_new_ones_put_whole(world: World) -> None:
    near = {"tests/test_near.py": NEAR + b"\n\ndef test_last():\n    pass\n"}
    world.write_upstream({**UPSTREAM, **near}, at=world.top / "v1b")
    assert world.patchq("upstream", "add", "v1b", "--directory", str(world.top / "v1b")).code == 0
    clone = world.clone("author", {**UPSTREAM, **near})
    world.describe(PATCH, tests=[{"gate": "cpu", "run": [TEST, "tests/test_near.py::test_more"]}])
    more = near["tests/test_near.py"] + b"\n\ndef test_more():\n    assert model.first() == 10\n"
    world.commit(clone, "[Test] better", {"pkg/model.py": BETTER, TEST: GOOD, "tests/test_near.py": more})
    assert world.patchq("refresh", str(clone), "--base", "v1b").code == 0
    base(world, "v2", {"tests/test_near.py": b"import sys\n" + near["tests/test_near.py"]})
    found = stock(world, "v2")
    assert (found["status"], found["after"]["failed"]) == ("absent", 2)
    base(world, "v3", {"pkg/model.py": BETTER, "tests/deep/test_near.py": near["tests/test_near.py"]})
    found = stock(world, "v3")
    assert (found["status"], found["after"]["passed"]) == ("landed", 2)
    base(world, "v4", {"tests/test_near.py": NEAR + b"\n\ndef test_last():\n    assert True\n"})
    found = stock(world, "v4")
    assert (found["code"], found["status"], found["after"]) == (1, "cannot run", None)
    assert found["notes"][0].startswith("cannot be put on v4: tests/test_near.py ")
    assert "cannot be put on v4" in cell(world, PATCH, "v4")["detail"]


def test_helpers_come_from_what_it_depends_on_without_its_production(world: World) -> None:
    helper = b"from pkg import model\n\n\ndef look():\n    return model.first()\n"
    uses = b"from helper_of_ours import look\n\n\ndef test_look():\n    assert look() == 10\n"
    world.series(
        ("0001-better", {"pkg/model.py": BETTER, "tests/helper_of_ours.py": helper, TEST: GOOD}),
        ("0002-more", {"pkg/engine.py": b"more = 1\n", "tests/test_more.py": uses}),
    )
    world.describe("0002-more", depends=[PATCH], tests=[{"gate": "cpu", "run": ["tests/test_more.py"]}])
    base(world, "v2")
    assert stock(world, "v2", "2")["status"] == "absent"


def test_the_bases_own_lane_gives_the_tests_where_it_has_the_patch(world: World) -> None:
    bring(world, GOOD)
    base(world, "v2", {"pkg/model.py": b"import os\n" + MODEL})
    world.ok("rebase", "--onto", "v2")
    stock(world, "v2")
    record = json.loads((world.project / "series" / PATCH / "evidence.jsonl").read_text())
    lock = (world.project / "upstream.lock").read_text()
    assert record["patch_sha256"] in lock[lock.index("lanes:") :].partition("v2:")[2]
    assert cell(world, PATCH, "v2")["behaviour"]["says"] == "absent"


def test_a_record_goes_stale_with_the_base_and_with_the_patch(world: World) -> None:
    bring(world, GOOD)
    base(world, "v2", {"pkg/model.py": MODEL.replace(b"return 1", b"return 5 + 5")})
    stock(world, "v2")
    assert cell(world, PATCH, "v2")["verdict"] == "reworked"
    assert [r["current"] for r in world.ok("evidence", "list")["results"]] == [True]
    author = world.top / "author"
    world.commit(author, "again", {TEST: GOOD + b"\n"})
    world.git("reset", "-q", "--soft", "HEAD~2", cwd=author)
    world.git("commit", "-q", "-m", "[Test] better", cwd=author)
    assert world.patchq("refresh", str(author)).code == 0
    here = cell(world, PATCH, "v2")
    assert (here["verdict"], here["behaviour"]) == ("conflict", None)
    assert f"patchq test --stock --base v2 {PATCH} --record" in here["detail"]
    assert [r["current"] for r in world.ok("evidence", "list")["results"]] == [False]


def test_tests_that_are_the_whole_patch_do_not_land_by_passing(world: World) -> None:
    world.series((PATCH, {"pkg/model.py": BETTER}), ("0002-oracle", {TEST: GOOD}))
    world.describe("0002-oracle", depends=[PATCH])
    base(world, "v2", {"pkg/model.py": BETTER})
    assert stock(world, "v2", "2")["status"] == "landed"
    here = cell(world, "0002-oracle", "v2")
    assert (here["verdict"], here["disagreement"]) == ("clean", "")


@pytest.mark.parametrize(("expected", "says"), [("fails", "cannot run"), ("crash", "absent")])
def test_a_run_that_ends_as_it_does_without_the_feature(world: World, expected: str, says: str) -> None:
    test = b"import os\n\nfrom pkg import model\n\n\ndef test_it():\n    model.first() == 10 or os._exit(3)\n"
    bring(world, test, tests=[{"gate": "cpu", "run": [TEST], "before": expected}])
    base(world, "v2")
    assert stock(world, "v2")["status"] == says


def test_a_run_that_dies_half_way_has_not_landed(world: World) -> None:
    bring(world, GOOD + b"\n\ndef test_end():\n    import os\n\n    os._exit(3)\n")
    base(world, "v2", {"pkg/model.py": BETTER})
    assert stock(world, "v2")["status"] == "partial"


@pytest.mark.parametrize(
    "words",
    [["--prove"], ["--stack"]],
)
def test_words_that_make_no_sense_beside_stock(world: World, words: list[str]) -> None:
    bring(world, GOOD)
    result = world.patchq("test", "--stock", *words)
    assert result.code == 2
    assert f"--stock and {words[0]} do not go together" in result.err


def test_what_a_patch_brings() -> None:
    brought = Brought(b"def one():\nclass Two(One):\nTHREE: int = 3\n    four = call(five)\n", ("a/b.py",))
    lacks = {name: brought.lacks(f"ImportError: cannot import name '{name}' from 'a'") for name in
             ("one", "Two", "THREE", "four", "five", "on")}  # fmt: skip
    assert lacks == {"one": False, "Two": False, "THREE": False, "four": False, "five": True, "on": True}
    assert not brought.lacks("ModuleNotFoundError: No module named 'a.b'")
    assert brought.lacks("ModuleNotFoundError: No module named 'a.c'")
    assert not brought.lacks("assert 1 == 2")
