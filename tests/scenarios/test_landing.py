"""Landing upstream: what upstream did with a patch, and whether the forecast sees it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.upstreams import ENGINE, GUARD, SOURCES, cell, release, replaced
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
BOTH = replaced(GUARDED, b"    rest = value - 1\n", b"    rest = value - 2\n")
PATCH = "0001-guard"


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    """A series whose one patch guards Engine.start and changes tail; its test file is its own."""
    world = World(tmp_path)
    world.start(SOURCES)
    world.series((PATCH, {CORE: BOTH, "tests/test_it.py": b"def test_it():\n    pass\n"}), files=SOURCES)
    return world


def verdict(world: World, base: str, patch: str = PATCH) -> Any:
    return cell(world, patch, base)["verdict"]


def test_landed_as_is(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH, "tests/test_it.py": b"def test_it():\n    pass\n"})
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "landed"
    assert found["files"] == [CORE, "tests/test_it.py"]
    assert {s["how"] for s in found["text"]["signs"]} == {"reverse applies", "same content"}


def test_landed_with_other_tests(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH, "tests/test_theirs.py": b"def test_theirs():\n    pass\n"})
    assert verdict(guarded, "v2") == "landed"


def test_squashed_with_another_change(guarded: World) -> None:
    squashed = replaced(BOTH, b"import math\n", b"import math\nimport os\n")
    squashed = replaced(squashed, b"        count = size * 2\n", b"        count = size * 3\n")
    squashed = replaced(squashed, b"    return rest\n", b"    print(rest)\n    return rest\n")
    release(guarded, "v2", {CORE: squashed, "pkg/more.py": b"more = 1\n"})
    assert verdict(guarded, "v2") == "landed"


def test_landed_then_reverted(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH})
    release(guarded, "v3", {"pkg/more.py": b"more = 1\n"})
    found = cell(guarded, PATCH, "v3")
    assert found["verdict"] == "reverted"
    assert found["earlier"] == "v2"
    assert "v2" in found["detail"]
    assert verdict(guarded, "v2") == "landed"


def test_landed_then_reworked_on_the_same_lines(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH})
    other = replaced(BOTH, GUARD, b"        size = max(size, 0)\n")
    release(guarded, "v3", {CORE: replaced(other, b"    rest = value - 2\n", b"    rest = value - 4\n")})
    found = cell(guarded, PATCH, "v3")
    assert (found["verdict"], found["earlier"]) == ("reworked", "v2")
    assert found["files"] == [CORE]


def test_half_landed(guarded: World) -> None:
    release(guarded, "v2", {CORE: GUARDED})
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "partial"
    assert found["text"]["fit"] == "merged"
    assert 0 < found["text"]["share"] < 1


def test_merged_on_main_but_not_in_the_pinned_tag(guarded: World) -> None:
    guarded.describe(PATCH, upstream={"state": "merged", "intent": "send", "related": ["o/r#1"]})
    release(guarded, "main", {CORE: BOTH})
    release(guarded, "v1.1", {"README.md": b"a release without it\n"})
    assert verdict(guarded, "main") == "landed"
    assert cell(guarded, PATCH, "v1")["detail"].endswith(
        "patch.yaml says merged, and this base does not have it"
    )
    assert verdict(guarded, "v1") == "clean"


@pytest.mark.parametrize("indent", [b"", b"    "])
def test_same_guard_landed_a_few_lines_away(guarded: World, indent: bytes) -> None:
    line = b"        count = size * 2\n"
    guard = b"".join(indent + g for g in GUARD.splitlines(keepends=True))
    around = b"        with self.lock:\n" if indent else b""
    moved = replaced(ENGINE, line, line + b"        self.count = count\n" + around + guard)
    moved = replaced(moved, b"    rest = value - 1\n", b"    rest = value - 2\n")
    release(guarded, "v2", {CORE: moved})
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "landed"
    assert "added lines present, removed lines absent" in {s["how"] for s in found["text"]["signs"]}


def test_the_same_guard_in_another_method_is_no_landing(guarded: World) -> None:
    stop = b"    def stop(self, size):\n"
    release(guarded, "v2", {CORE: replaced(ENGINE, stop, stop + GUARD)})
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] in {"offset", "merged"}
    assert found["text"]["share"] == 0


def test_the_pinned_base_is_clean(guarded: World) -> None:
    found = cell(guarded, PATCH, "v1")
    assert (found["verdict"], found["files"], found["text"]["signs"]) == ("clean", [], [])


def stock_run(world: World, base: str, **after: int) -> None:
    """Record what the patch's tests gave on a stock base."""
    from patchq.series.series import load_series

    series = load_series(world.project)
    counts = {"passed": 0, "failed": 0, "skipped": 0, "errors": 0}
    proof = {
        "id": PATCH,
        "base": "v1",
        "patch_sha256": series.lane("v1")[0].sha256,
        "tree": series.lock.lanes["v1"][0].tree,
        "mode": "stack",
        "gate": "cpu",
        "before": {**counts, "passed": 1, "failed": 3},
        "after": {**counts, "passed": 4},
    }
    stock = {
        **proof,
        "base": base,
        "tree": series.lock.bases[base].tree,
        "mode": "stock",
        "before": None,
        "after": {**counts, **after},
    }
    file = world.project / "series" / PATCH / "evidence.jsonl"
    file.write_text(json.dumps(proof) + "\n" + json.dumps(stock) + "\n")


def test_behaviour_decides_and_the_disagreement_is_named(guarded: World) -> None:
    release(guarded, "v2", {CORE: replaced(ENGINE, HEAD, HEAD + b"        size = abs(size)\n")})
    before = verdict(guarded, "v2")
    assert before == "conflict"
    stock_run(guarded, "v2", passed=4)
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "reworked"
    assert found["disagreement"] == "its tests say landed, its text says absent"
    stock_run(guarded, "v2", passed=2, failed=2)
    assert verdict(guarded, "v2") == "partial"
    stock_run(guarded, "v2", passed=1, failed=3)
    found = cell(guarded, PATCH, "v2")
    assert (found["verdict"], found["disagreement"]) == ("conflict", "")
    assert "1 passed, 3 failed" in found["detail"]


def test_behaviour_against_lines_that_are_there(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH})
    stock_run(guarded, "v2", passed=1, failed=3)
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "partial"
    assert found["disagreement"] == "its tests say absent, its text says landed"


def test_tests_that_cannot_run_are_not_taken_for_absence(guarded: World) -> None:
    release(guarded, "v2", {CORE: BOTH})
    stock_run(guarded, "v2", errors=4)
    found = cell(guarded, PATCH, "v2")
    assert (found["verdict"], found["disagreement"]) == ("landed", "")
    assert "cannot run" in found["detail"]


def test_a_skip_is_no_pass(guarded: World) -> None:
    release(guarded, "v2")
    stock_run(guarded, "v2", passed=1, skipped=3)
    assert verdict(guarded, "v2") == "clean"
