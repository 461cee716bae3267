"""Upstreams with history: the commit that landed a patch, took it out again, or broke it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.upstreams import ENGINE, GUARD, SOURCES, cell, replaced
from tests.support.world import World

if TYPE_CHECKING:
    from pathlib import Path

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
PATCH = "0001-guard"


@pytest.fixture(params=["clone", "directory"])
def based(tmp_path: Path, request: pytest.FixtureRequest) -> tuple[World, Path]:
    """A series on v1, and an upstream clone; v1 is its first commit, or the same files without any history."""
    world = World(tmp_path)
    world.write_upstream(SOURCES)
    (world.project / "series").mkdir(parents=True)
    (world.project / "upstream.lock").write_text("version: 1\nbases: {}\nlanes: {}\n")
    clone = world.clone("theirs", SOURCES)
    source = ["--clone", str(clone), "--rev", "main"]
    if request.param == "directory":
        source = ["--directory", str(world.upstream)]
    result = world.patchq("upstream", "add", "v1", *source)
    assert result.code == 0, result.err
    world.series((PATCH, {CORE: GUARDED}), files=SOURCES)
    return world, clone


def later(world: World, clone: Path, *commits: tuple[str, dict[str, bytes | None]]) -> dict[str, str]:
    """Commit to the upstream, an unrelated commit between each two, and make its tip the base v2; ids by title."""
    made = {}
    for number, (title, files) in enumerate(commits):
        made[title] = world.commit(clone, title, files)
        world.commit(clone, f"Unrelated {number}", {"README.md": b"%d\n" % number})
    assert world.patchq("upstream", "add", "v2", "--clone", str(clone), "--rev", "main").code == 0
    return made


def test_the_commit_that_landed_it(based: tuple[World, Path]) -> None:
    world, clone = based
    made = later(
        world, clone, ("Guard start", {CORE: GUARDED}), ("More", {CORE: GUARDED + b"\n\nmore = 1\n"})
    )
    found = cell(world, PATCH, "v2")
    assert found["verdict"] == "landed"
    assert found["commits"] == {
        "landed": {"commit": made["Guard start"], "title": "Guard start", "same_patch": True}
    }


def test_a_squash_is_found_though_its_patch_is_another(based: tuple[World, Path]) -> None:
    world, clone = based
    made = later(world, clone, ("Guard and more", {CORE: GUARDED + b"\n\nmore = 1\n"}))
    landed = cell(world, PATCH, "v2")["commits"]["landed"]
    assert landed == {"commit": made["Guard and more"], "title": "Guard and more", "same_patch": False}


def test_a_merge_counts_as_one_commit(based: tuple[World, Path]) -> None:
    world, clone = based
    world.git("checkout", "-q", "-b", "topic", cwd=clone)
    world.commit(clone, "Half", {CORE: replaced(ENGINE, HEAD, HEAD + GUARD.splitlines(keepends=True)[0])})
    world.commit(clone, "Whole", {CORE: GUARDED})
    world.git("checkout", "-q", "main", cwd=clone)
    world.git("merge", "-q", "--no-ff", "-m", "Merge topic", "topic", cwd=clone)
    later(world, clone)
    landed = cell(world, PATCH, "v2")["commits"]["landed"]
    assert landed["title"] == "Merge topic"
    assert landed["same_patch"] is True


def test_landed_then_reverted(based: tuple[World, Path]) -> None:
    world, clone = based
    made = later(world, clone, ("Guard start", {CORE: GUARDED}), ('Revert "Guard start"', {CORE: ENGINE}))
    found = cell(world, PATCH, "v2")
    assert found["verdict"] == "reverted"
    assert found["earlier"] == f"commit {made['Guard start'][:12]}"
    assert found["commits"]["left"]["commit"] == made['Revert "Guard start"']


def test_landed_then_reworked(based: tuple[World, Path]) -> None:
    world, clone = based
    other = replaced(ENGINE, HEAD, HEAD + b"        size = max(size, 0)\n")
    made = later(world, clone, ("Guard start", {CORE: GUARDED}), ("Clamp instead", {CORE: other}))
    found = cell(world, PATCH, "v2")
    assert found["verdict"] == "reworked"
    assert found["commits"]["left"]["commit"] == made["Clamp instead"]


def test_the_first_commit_that_breaks_it(based: tuple[World, Path]) -> None:
    world, clone = based
    steps: list[tuple[str, dict[str, bytes | None]]] = [
        (f"Step {n}", {CORE: ENGINE + b"\n\nstep = %d\n" % n}) for n in range(4)
    ]
    broken = replaced(ENGINE, HEAD, b"    def start(self, *, size):\n")
    more: list[tuple[str, dict[str, bytes | None]]] = [
        (f"After {n}", {CORE: broken + b"\n\nstep = %d\n" % n}) for n in range(3)
    ]
    made = later(world, clone, *steps, ("Keywords only", {CORE: broken}), *more)
    found = cell(world, PATCH, "v2")
    assert found["verdict"] == "conflict"
    assert found["commits"] == {
        "broke": {"commit": made["Keywords only"], "title": "Keywords only", "same_patch": False}
    }
    assert "it was broken by" in found["detail"]


def test_no_history_no_commits(based: tuple[World, Path]) -> None:
    world, clone = based
    world.commit(clone, "Unrelated", {"README.md": b"0\n"})
    world.commit(clone, "Guard start", {CORE: GUARDED})
    url = clone.as_uri()
    assert world.patchq("upstream", "add", "v2", "--git", url, "--rev", "main").code == 0
    assert cell(world, PATCH, "v2")["commits"].keys() <= {"landed"}
    moved = world.top / "elsewhere"
    clone.rename(moved)
    assert cell(world, PATCH, "v2")["commits"] == {}
    moved.rename(clone)
    assert world.patchq("upstream", "fetch", "v2", "--history").code == 0
    clone.rename(moved)
    assert cell(world, PATCH, "v2")["commits"]["landed"]["title"] == "Guard start"
