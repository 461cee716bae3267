"""A kill at every write, a failure at every write, two at once: the next command finishes or undoes it."""

from __future__ import annotations

import errno
import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.test_checkout import PATCHED
from tests.support.killing import killed_at
from tests.support.world import UPSTREAM, contents, git_state, snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.world import World

SHARES = 6
"""Each command's kill points are dealt out to so many tests, which may run side by side."""


def kill_points(share: int) -> Iterator[int]:
    return itertools.count(share + 1, SHARES)


@pytest.fixture(autouse=True)
def _forking() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def whole(path: Path) -> str:
    """`base` or `patched`, where a checkout is wholly the one or the other and nothing is left lying."""
    state = git_state(path)
    assert state["status"] == ""
    assert state["left"] == []
    found = contents(path)
    assert found in (PATCHED, UPSTREAM)
    return "patched" if found == PATCHED else "base"


@pytest.mark.parametrize("share", range(SHARES))
def test_apply_killed_at_every_write(stacked: World, share: int) -> None:
    seen = set()
    for number in kill_points(share):
        clone = stacked.clone(f"clone{number}")
        main = stacked.git("rev-parse", "main", cwd=clone)
        if not killed_at(stacked, number, "apply", str(clone)):
            break
        applied = stacked.ok("status", str(clone))["applied"]
        assert len(applied) in {0, 3}
        assert whole(clone) == ("patched" if applied else "base")
        seen.add(len(applied))
        stacked.ok("apply", str(clone))
        assert whole(clone) == "patched"
        assert stacked.git("rev-parse", "main", cwd=clone) == main
        stacked.ok("unapply", str(clone))
        assert whole(clone) == "base"
        assert stacked.git("symbolic-ref", "HEAD", cwd=clone) == "refs/heads/main"
    assert seen == {0, 3}


@pytest.mark.parametrize("share", range(SHARES))
def test_unapply_killed_at_every_write(stacked: World, share: int) -> None:
    seen = set()
    for number in kill_points(share):
        clone = stacked.clone(f"clone{number}")
        stacked.ok("apply", str(clone))
        if not killed_at(stacked, number, "unapply", str(clone)):
            break
        document = stacked.patchq("verify", str(clone), "--json")
        seen.add(document.code)
        assert whole(clone) == ("base" if document.code else "patched")
        stacked.ok("unapply", str(clone))
        assert whole(clone) == "base"
        assert stacked.git("for-each-ref", "--format=%(refname)", cwd=clone) == "refs/heads/main"
    assert seen == {0, 1}


@pytest.mark.parametrize("share", range(SHARES))
def test_create_killed_at_every_write(stacked: World, share: int) -> None:
    for number in kill_points(share):
        made = stacked.top / f"made{number}" / "vllm"
        if not killed_at(stacked, number, "apply", "--create", str(made)):
            break
        if made.exists():
            assert whole(made) == "patched"
        stacked.ok("apply", "--create", str(made))
        assert whole(made) == "patched"
        assert [e.name for e in made.parent.iterdir()] == ["vllm"]


@pytest.mark.parametrize("share", range(SHARES))
def test_refresh_killed_at_every_write(stacked: World, share: int) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.git("commit", "-q", "--amend", "-m", "[Test] third", "-m", "Reworded.", cwd=clone)
    for number in kill_points(share):
        killed = killed_at(stacked, number, "refresh", str(clone))
        after = stacked.ok("refresh", str(clone))
        assert [p["id"] for p in after["patches"]] == ["0001-first", "0002-second", "0003-third"]
        assert b"Reworded." in (stacked.project / "series/0003-third/v1.patch").read_bytes()
        left = [p.name for p in stacked.project.rglob("*") if p.name.endswith(".new")]
        assert len(left) <= number
        if not killed:
            break
        for path in stacked.project.rglob(".*.new"):
            path.unlink()
        stacked.git("commit", "-q", "--amend", "-m", "[Test] third", "-m", f"Reworded. {number}", cwd=clone)


@pytest.mark.parametrize("share", range(SHARES))
def test_fetch_killed_at_every_write(stacked: World, share: int) -> None:
    for number in kill_points(share):
        killed = killed_at(stacked, number, "upstream", "fetch", "v1", "--again")
        assert stacked.ok("upstream", "list")["bases"][0]["present"] is True
        stacked.ok("upstream", "fetch", "v1", "--again")
        if not killed:
            break
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    assert whole(made) == "patched"


def test_a_file_edited_between_kill_and_recovery_is_not_overwritten(stacked: World) -> None:
    for number in itertools.count(1):
        clone = stacked.clone(f"clone{number}")
        assert killed_at(stacked, number, "apply", str(clone))
        half = contents(clone)
        if half != UPSTREAM:
            break
    (clone / "pkg/engine.py").write_bytes(b"mine\n")
    result = stacked.patchq("apply", str(clone))
    assert (result.code, "pkg/engine.py" in result.err) == (1, True)
    assert (clone / "pkg/engine.py").read_bytes() == b"mine\n"
    (clone / "pkg/engine.py").write_bytes(half["pkg/engine.py"])
    stacked.ok("apply", str(clone))
    assert whole(clone) == "patched"


def test_head_moved_by_the_user_between_kill_and_recovery(stacked: World) -> None:
    for number in itertools.count(1):
        clone = stacked.clone(f"clone{number}")
        assert killed_at(stacked, number, "apply", str(clone))
        if contents(clone) != UPSTREAM:
            break
    (clone / ".git/index.lock").unlink(missing_ok=True)
    stacked.git("reset", "-q", "--hard", cwd=clone)
    stacked.git("clean", "-fdq", cwd=clone)
    stacked.commit(clone, "mine", {"mine.txt": b"mine\n"})
    assert stacked.ok("status", str(clone))["applied"] == []
    assert contents(clone) == {**UPSTREAM, "mine.txt": b"mine\n"}
    assert git_state(clone)["left"] == []


def failing_at(number: int, real: Callable[..., object]) -> Callable[..., object]:
    """A function that does what `real` does, but for its `number`-th call, at which the disk is full."""
    calls = itertools.count(1)

    def failing(*args: object, **named: object) -> object:
        if next(calls) == number:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*args, **named)

    return failing


@pytest.mark.parametrize("target", ["rename", "replace", "mkdir", "fsync", "unlink"])
def test_no_space_left_at_every_write(stacked: World, target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills at the n-th call; the checkout is put back as it was."""
    holder: object = {"fsync": os}.get(target, Path)
    real = getattr(holder, target)
    for number in itertools.count(1):
        clone = stacked.clone(f"clone{number}")
        before = snapshot(clone)
        monkeypatch.setattr(holder, target, failing_at(number, real))
        result = stacked.patchq("apply", str(clone))
        monkeypatch.setattr(holder, target, real)
        if result.code == 0:
            assert whole(clone) == "patched"
            break
        assert (result.code, "Traceback" in result.err) == (3, False)
        after = snapshot(clone)
        for state in (before, after):
            state["files"] = {n: v[:2] for n, v in state["files"].items()}
        finished = contents(clone) == PATCHED  # only tidying up failed, after the switch was done
        assert finished or after == before, (target, number)
        again = stacked.patchq("status", str(clone), "--json").json
        assert again["applied"] == (["0001-first", "0002-second", "0003-third"] if finished else [])
        stacked.ok("apply", str(clone))
        assert whole(clone) == "patched"


def test_two_at_once(stacked: World) -> None:
    clone = stacked.clone()
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import sys
from pathlib import Path
from patchq.engine.journal import working_on
with working_on(Path({str(clone)!r}), 'applying to'):
    print('held', flush=True)
    sys.stdin.read()
""",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        before = snapshot(clone)
        result = stacked.patchq("apply", str(clone))
        assert result.code == 3
        assert f"process {holder.pid}, applying to {clone}, since 20" in result.err
        assert snapshot(clone) == before
    finally:
        holder.kill()
        holder.communicate()
    stacked.ok("apply", str(clone))


def test_ctrl_c(stacked: World) -> None:
    clone = stacked.clone()
    interrupt = (
        "import os, signal\n"
        "def stop(*a, **k): os.kill(os.getpid(), signal.SIGINT)\n"
        "import patchq.engine.apply as a\na.diff_trees = stop"
    )
    done = stacked.child("apply", str(clone), before=interrupt)
    assert done.returncode == 130
    assert b"Traceback" not in done.stderr
    assert contents(clone) == UPSTREAM


@pytest.mark.parametrize("step", ["git.switch.move_files", "git.switch._move_refs", "engine.log.Log.add"])
def test_ctrl_c_in_the_middle_of_a_switch(stacked: World, step: str) -> None:
    """It waits until the switch is done, also for the git that patchq has started; no recovery is needed."""
    clone = stacked.clone()
    module, _, name = step.partition(".")[2].partition(".")
    interrupt = (
        "import os, signal\n"
        f"import patchq.{step.partition('.')[0]}.{module} as m\n"
        f"real = m.{name}\n"
        "def stop(*a):\n    os.killpg(0, signal.SIGINT)\n    return real(*a)\n"
        f"m.{name} = stop\n"
        "os.setpgid(0, 0)"
    )
    done = stacked.child("apply", str(clone), before=interrupt)
    assert (done.returncode, b"Traceback" in done.stderr) == (130, False), done.stderr
    assert whole(clone) == "patched"
    assert stacked.ok("log")["entries"][0]["command"] == f"apply {clone}"


def test_ctrl_c_in_the_middle_of_an_edit(stacked: World) -> None:
    interrupt = (
        "import os, signal, patchq.engine.project as m\n"
        "real = m.write_atomically\n"
        "def stop(*a):\n    os.kill(os.getpid(), signal.SIGINT)\n    return real(*a)\n"
        "m.write_atomically = stop"
    )
    done = stacked.child("move", "3", "--before", "1", before=interrupt)
    assert (done.returncode, b"Traceback" in done.stderr) == (130, False), done.stderr
    assert not list((stacked.cache / "projects").glob("*/pending.json"))
    assert [p["id"] for p in stacked.ok("log")["patches"]] == ["0001-third", "0002-first", "0003-second"]
