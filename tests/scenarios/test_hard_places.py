"""Places that cannot be written, are full, are in use, or lose power: the right result, or a refusal that loses nothing."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.scenarios.test_checkout import PATCHED, refused
from tests.support.killing import power_lost_at
from tests.support.world import UPSTREAM, contents, git_state, snapshot

if TYPE_CHECKING:
    from tests.support.world import World


def in_own_mounts(world: World, script: str, *args: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell script, then patchq with `args`, where what is mounted is seen by nobody else."""
    command = [sys.executable, "-m", "patchq", "--root", str(world.project), *args]
    unshare = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-ec",
        f"{script}\nexec {shlex.join(command)}",
    ]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    return subprocess.run(unshare, env=env, capture_output=True, check=False)


def can_mount() -> bool:
    """Whether this machine lets a process have mounts of its own, as root or in a user namespace."""
    command = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


mounting = pytest.mark.skipif(
    not can_mount(), reason="this machine has no mounts of a process's own (unshare)"
)


def bound(path: Path, options: str) -> str:
    quoted = shlex.quote(str(path))
    return f"mount --bind {quoted} {quoted}\nmount -o remount,bind,{options} {quoted}"


@mounting
@pytest.mark.parametrize("command", ["apply", "unapply"])
def test_a_read_only_checkout(stacked: World, command: str) -> None:
    clone = stacked.clone()
    if command == "unapply":
        stacked.ok("apply", str(clone))
    before = snapshot(clone)
    done = in_own_mounts(stacked, bound(clone, "ro"), command, str(clone))
    assert (done.returncode, b"Traceback" in done.stderr) == (3, False), done.stderr
    assert b"Read-only file system" in done.stderr
    assert snapshot(clone) == before
    stacked.ok(command, str(clone))
    assert contents(clone) == (PATCHED if command == "apply" else UPSTREAM)


@mounting
def test_a_read_only_directory_of_it(stacked: World) -> None:
    """The first files go over, then comes one that cannot: all are put back."""
    clone = stacked.clone()
    before = snapshot(clone)
    (clone / "pkg/new").mkdir()
    done = in_own_mounts(stacked, bound(clone / "pkg/new", "ro"), "apply", str(clone))
    assert (done.returncode, b"Traceback" in done.stderr) == (3, False), done.stderr
    assert b"Read-only file system" in done.stderr
    (clone / "pkg/new").rmdir()
    after = snapshot(clone)
    for state in (before, after):
        state["files"] = {n: v[:2] for n, v in state["files"].items()}
    assert after == before
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED


@mounting
@pytest.mark.parametrize("full", ["checkout", "cache", "project"])
def test_a_full_disk(stacked: World, full: str) -> None:
    """A file system with no block left, under the checkout, the cache or the project."""
    clone = stacked.clone()
    if full == "project":
        stacked.ok("apply", str(clone))
        (clone / "pkg/added.bin").write_bytes(os.urandom(60_000))
    before = snapshot(clone)
    project = contents(stacked.project)
    place = {"checkout": clone, "cache": stacked.cache, "project": stacked.project}[full]
    quoted, aside = shlex.quote(str(place)), shlex.quote(str(stacked.top / "aside"))
    script = (
        f"mv {quoted} {aside}\nmkdir {quoted}\nmount -t tmpfs -o size=4m none {quoted}\ncp -a {aside}/. {quoted}\n"
        f"dd if=/dev/zero of={quoted}/{'.git/' if full == 'checkout' else ''}ballast bs=4k 2>/dev/null || true\n"
        f"trap 'rm {quoted}/.git/ballast {quoted}/ballast 2>/dev/null || true; mkdir {aside}.now;"
        f" cp -a {quoted}/. {aside}.now' EXIT\n"
    )
    command = ["refresh", str(clone)] if full == "project" else ["apply", str(clone)]
    run = [sys.executable, "-m", "patchq", "--root", str(stacked.project), *command]
    unshare = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec", f"{script}\n{shlex.join(run)}"]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(unshare, env=env, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (3, False), done.stderr
    assert b"No space left on device" in done.stderr
    place.rmdir()
    (stacked.top / "aside.now").rename(place)
    after = snapshot(clone)
    for state in (before, after):
        state["files"] = {n: v[:2] for n, v in state["files"].items()}
    assert after == before
    assert contents(stacked.project) == project
    stacked.ok(*command)
    assert stacked.ok("verify", str(clone))["ok"] is True


def test_in_the_middle_of_the_users_own_rebase(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("checkout", "-q", "-b", "side", cwd=clone)
    stacked.commit(clone, "side", {"pkg/model.py": b"side\n"})
    stacked.git("checkout", "-q", "main", cwd=clone)
    stacked.commit(clone, "mine", {"pkg/model.py": b"mine\n"})
    with pytest.raises(AssertionError, match="could not apply"):
        stacked.git("rebase", "side", cwd=clone)
    before = snapshot(clone)
    for command in ("apply", "unapply"):
        result = stacked.patchq(command, str(clone))
        assert (result.code, "in conflict: pkg/model.py" in result.err) == (1, True), result.err
        assert snapshot(clone) == before
    stacked.git("add", "pkg/model.py", cwd=clone)
    refused(stacked, clone, "a rebase is under way")
    stacked.git("rebase", "--abort", cwd=clone)
    stacked.ok("apply", str(clone))
    assert contents(clone) == {**PATCHED, "pkg/model.py": b"mine\n"}


def test_verify_and_modes(stacked: World) -> None:
    """A file that lost or got its executable bit is another file; where git is told not to look, it says so itself."""
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    (clone / "run.sh").chmod(0o644)
    (clone / "pkg/engine.py").chmod(0o755)
    document = stacked.patchq("verify", str(clone), "--json")
    assert document.code == 1
    assert {"run.sh", "pkg/engine.py"} == {f["path"] for f in document.json["files"]}


def test_a_dead_lock_holder_holds_nothing(stacked: World) -> None:
    """Killed with the lock and its note still there: the next one goes on, and no note is left."""
    clone = stacked.clone()
    stop = (
        "import os, signal, patchq.engine.apply as a\n"
        "a.diff_trees = lambda *x, **y: os.kill(os.getpid(), signal.SIGKILL)"
    )
    assert stacked.child("apply", str(clone), before=stop).returncode == -9
    locks = stacked.cache / "locks"
    assert list(locks.glob("checkout-*.json")) != []
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED
    assert list(locks.glob("checkout-*.json")) == []


@pytest.mark.parametrize("command", ["apply", "unapply", "refresh"])
def test_power_lost_at_every_rename(stacked: World, command: str) -> None:
    """What was renamed and not flushed is empty afterwards; the next command still leaves the old or the new state."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for number in itertools.count(1):
            clone = stacked.clone(f"clone{number}")
            if command != "apply":
                stacked.ok("apply", str(clone))
            if command == "refresh":
                text = f"[Test] third\n\nReworded {number}."
                stacked.git("commit", "-q", "--amend", "-m", text, cwd=clone)
            lost = power_lost_at(stacked, number, command, str(clone))
            applied = stacked.ok("status", str(clone))["applied"]
            assert len(applied) in {0, 3}
            assert contents(clone) == (PATCHED if applied else UPSTREAM)
            state = git_state(clone)
            assert (state["status"], state["left"]) == ("", [])
            stacked.ok(command, str(clone))
            assert contents(clone) == (UPSTREAM if command == "unapply" else PATCHED)
            if command == "refresh":
                assert (
                    f"Reworded {number}.".encode()
                    in (stacked.project / "series/0003-third/v1.patch").read_bytes()
                )
            if not lost:
                assert number > 1
                break
