"""A rebase killed at every write: running it again ends where an undisturbed one does."""

from __future__ import annotations

import itertools
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.killing import killed_at, telling_points
from tests.support.upstreams import ENGINE, GUARD, SOURCES, release, replaced
from tests.support.world import World, contents

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARES = 6
CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
LAST = b"    rest = value - 1\n"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
MODEL = b"def first():\n    return 5\n"


@pytest.fixture(autouse=True)
def _forking() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Patches of which, on v2, one has landed and two move; on v3 one conflicts."""
    top = tmp_path_factory.mktemp("made")
    world = World(top)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATCHQ_CACHE", str(world.cache))
        world.start(SOURCES)
        tail = replaced(GUARDED, LAST, b"    rest = value - 2\n")
        world.series(
            ("0001-guard", {CORE: GUARDED}),
            ("0002-tail", {CORE: tail}),
            ("0003-apart", {"pkg/model.py": MODEL}),
            files=SOURCES,
        )
        release(world, "v2", {CORE: b"import os\n" + GUARDED})
        release(world, "v3", {CORE: replaced(ENGINE, LAST, b"    rest = value - 7\n")})
    return top


@pytest.fixture
def world(made: Path, tmp_path: Path) -> World:
    for name in ("project", "cache"):
        shutil.copytree(made / name, tmp_path / name, symlinks=True)
    return World(tmp_path)


def again(world: World, made: Path) -> None:
    """Put the project back, and forget the rebase."""
    for name in ("project", "cache"):
        shutil.rmtree(world.top / name)
        shutil.copytree(made / name, world.top / name, symlinks=True)


def numbers(share: int) -> Iterator[int]:
    return itertools.count(share + 1, SHARES)


@pytest.mark.parametrize("share", range(SHARES))
def test_a_whole_rebase(world: World, made: Path, share: int) -> None:
    world.ok("rebase", "--onto", "v2")
    wanted = contents(world.project)
    assert world.ok("status", "--base", "v2")["patches"][0]["verdict"] == "landed"
    for number in numbers(share):
        again(world, made)
        killed = killed_at(world, number, "rebase", "--onto", "v2")
        world.ok("rebase", "--onto", "v2")
        left = list(world.project.rglob(".*.new"))
        for path in left:
            path.unlink()
        assert contents(world.project) == wanted
        assert world.ok("rebase", "--status")["base"] is None
        if not killed:
            assert left == []
            break


@pytest.mark.parametrize("share", range(SHARES))
def test_one_that_stops(world: World, made: Path, share: int) -> None:
    before = contents(world.project)
    for number in numbers(share):
        again(world, made)
        killed = killed_at(world, number, "rebase", "--onto", "v3", code=1)
        result = world.patchq("rebase", "--onto", "v3", "--json")
        assert result.code == 1
        work = Path(result.json["pending"]["work"])
        assert b"<<<<<<< upstream" in (work / CORE).read_bytes()
        assert world.git("status", "--porcelain", cwd=work) == f"UU {CORE}"
        assert contents(world.project) == before
        if not killed:
            break


def resolved(world: World) -> None:
    """A rebase that stopped, its conflict resolved."""
    result = world.patchq("rebase", "--onto", "v3", "--json")
    work = Path(result.json["pending"]["work"])
    data = (work / CORE).read_bytes()
    start, end = data.index(b"<<<<<<<"), data.index(b"\n", data.index(b">>>>>>>")) + 1
    (work / CORE).write_bytes(b"import os\n" + data[:start] + b"    rest = value - 9\n" + data[end:])


@pytest.mark.parametrize("share", range(2))
@pytest.mark.parametrize("how", ["--continue", "--skip", "--abort"])
def test_one_that_goes_on(world: World, made: Path, how: str, share: int) -> None:
    """Killed as it goes on, leaves the patch out, or is given up: done again, it ends where an undisturbed one does."""
    under = tuple(world.top / name for name in ("project", "cache/rebases", "cache/projects"))
    resolved(world)
    numbers = telling_points(world, "rebase", how, under=under)
    wanted = contents(world.project)
    again(world, made)
    resolved(world)
    aside = world.top / "aside"
    for name in ("project", "cache"):
        shutil.copytree(world.top / name, aside / name, symlinks=True)
    resolution = "series/0002-tail/resolutions.yaml"
    for number in numbers[share::2]:
        again(world, aside)
        killed = killed_at(world, number, "rebase", how, under=under)
        if world.ok("rebase", "--status")["base"] is not None:
            waits = world.ok("rebase", "--status")["pending"] is not None
            world.ok("rebase", how if waits or how == "--abort" else "--continue")
        for path in world.project.rglob(".*.new"):
            path.unlink()
        found = contents(world.project)
        assert {k: v for k, v in found.items() if k != resolution} == {
            k: v for k, v in wanted.items() if k != resolution
        }
        assert killed == (number != numbers[-1])
        assert killed or found == wanted
