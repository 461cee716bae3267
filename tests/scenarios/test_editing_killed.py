"""An edit killed at every write to the project, its journal or a checkout: the next command leaves the old or the new state."""

from __future__ import annotations

import itertools
import shutil
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.test_editing import ENGINE
from tests.support.killing import killed_at, telling_points
from tests.support.world import World, contents, git_state

if TYPE_CHECKING:
    from collections.abc import Iterator

SHARES = 2
"""Each command's kill points are dealt out to so many tests, which may run side by side."""
NAMES = ("project", "made", "cache/projects", "cache/checkouts")
"""All that an edit changes, but for objects in the store, which go by their content."""


@pytest.fixture(autouse=True)
def _forking() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.fixture
def ready(stacked: World) -> World:
    """A project, and a checkout of it in which a patch was edited; kept aside to begin from again."""
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    path = made / ENGINE
    path.write_bytes(path.read_bytes().replace(b"line 10, patched", b"line 10, mended"))
    return stacked


def state(world: World) -> tuple[object, ...]:
    """The whole of a project and its checkout, but for what a killed write left beside a file."""
    made = git_state(world.top / "made")
    found = {n: d for n, d in contents(world.project).items() if not n.endswith(".new")}
    where = [made[k] for k in ("head", "index", "refs", "status", "left")]
    return (found, contents(world.top / "made"), where)


def killed_everywhere(world: World, share: int, *args: str, shares: int = SHARES) -> None:
    """Kill a command at each of a share of its writes; recover by reading the log; then it goes on as ever."""
    aside = world.top / "aside"
    for name in NAMES:
        shutil.copytree(world.top / name, aside / name, symlinks=True)
    before = state(world)
    entries = len(world.ok("log")["entries"])
    under = tuple(world.top / n for n in NAMES)
    numbers = telling_points(world, *args, under=under)
    after = state(world)
    assert before != after
    seen = set()
    for number in (*numbers[share:-1:shares], numbers[-1]):
        for name in NAMES:
            shutil.rmtree(world.top / name, ignore_errors=True)
            shutil.copytree(aside / name, world.top / name, symlinks=True)
        killed = killed_at(world, number, *args, under=under)
        world.ok("status", str(world.top / "made"))
        found = state(world)
        assert found in (before, after), number
        kept = world.ok("log")["entries"]
        assert len(kept) == entries + (found == after)
        seen.add(found == after)
        assert killed == (number != numbers[-1])
        assert killed or found == after
    assert seen == {False, True}


@pytest.mark.parametrize(
    "args",
    [
        ("new", "fresh", "--title", "[Test] fresh"),
        ("import", "{patch}"),
        ("rename", "3", "last"),
        ("drop", "3"),
        ("fold", "2", "--into", "1"),
        ("split", "3", "--name", "two", "--files", "pkg/dos.py"),
        ("verdict", "set", "1", "landed", "--base", "v1", "--because", "It is there."),
    ],
    ids=lambda args: args[0],
)
def test_every_other_edit(ready: World, args: tuple[str, ...]) -> None:
    """They share one journal; each is killed at every fifth of the writes that tell."""
    author = ready.clone("author")
    ready.commit(author, "[Test] more", {"pkg/more.py": b"more = 1\n"})
    patch = ready.top / "more.patch"
    patch.write_text(ready.git("format-patch", "--stdout", "-1", cwd=author) + "\n")
    killed_everywhere(ready, 1, *(a.format(patch=patch) for a in args), shares=5)


@pytest.mark.parametrize("share", range(SHARES))
def test_move(ready: World, share: int) -> None:
    killed_everywhere(ready, share, "move", "3", "--before", "1")


@pytest.mark.parametrize("share", range(SHARES))
def test_refresh_and_its_checkout(ready: World, share: int) -> None:
    killed_everywhere(ready, share, "refresh", str(ready.top / "made"))


@pytest.mark.parametrize("share", range(SHARES))
def test_undo_of_a_refresh(ready: World, share: int) -> None:
    ready.ok("refresh", str(ready.top / "made"))
    killed_everywhere(ready, share, "undo")


def test_a_file_edited_between_kill_and_recovery_is_not_overwritten(ready: World) -> None:
    meta = ready.project / "series/0001-third/patch.yaml"
    numbers = telling_points(ready, "move", "3", "--before", "1", under=(ready.project,))
    ready.ok("undo")
    for number in numbers:
        assert killed_at(ready, number, "move", "3", "--before", "1", under=(ready.project,))
        if meta.exists():
            break
        ready.ok("undo")
    meta.write_bytes(b"mine\n")
    result = ready.patchq("status")
    assert (result.code, "series/0001-third/patch.yaml was changed by hand" in result.err) == (1, True)
    assert meta.read_bytes() == b"mine\n"


def test_no_space_left(ready: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills at the n-th rename: everything is put back."""
    real = Path.replace
    for failing in itertools.count(1):
        calls = itertools.count(1)

        def replace(path: Path, target: Path, calls: Iterator[int] = calls, failing: int = failing) -> Path:
            if path.is_relative_to(ready.project) and next(calls) == failing:
                raise OSError(28, "No space left on device", str(target))
            return real(path, target)

        before = state(ready)
        monkeypatch.setattr(Path, "replace", replace)
        result = ready.patchq("move", "3", "--before", "1")
        monkeypatch.setattr(Path, "replace", real)
        if result.code == 0:
            assert failing > 5
            break
        assert (result.code, "cannot be written: No space left" in result.err) == (3, True)
        assert state(ready) == before
