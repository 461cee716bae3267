"""Runs groups of tests of one tree, in the environment's own interpreter: standard library and pytest only.

The job is a JSON file: what to import once, then the groups, each forked off with its own report and log. What this
writes is facts alone (events, signals, peaks); what they mean is decided by `patchq.testing.outcome`.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import importlib
import json
import os
import resource
import signal
import socket
import struct
import sys
import time
from typing import Any

MS_RDONLY, MS_REMOUNT, MS_BIND = 1, 32, 4096
MS_REC, MS_PRIVATE = 16384, 1 << 18
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
POLL = 0.1
"""Seconds between two looks at a group's memory and deadline."""
LEAVE = 15.0
"""Seconds that a group may take to exit after its last test."""
PAGE = os.sysconf("SC_PAGE_SIZE")


class Recorder:
    """The pytest plugin: one JSON line an event, flushed, so that a killed run still says what it was at."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: PTH123, SIM115

    def write(self, **event: Any) -> None:
        """Append an event."""
        self.file.write(json.dumps(event) + "\n")
        self.file.flush()

    def pytest_collectreport(self, report: Any) -> None:
        """A file that could not be collected, or asked to be skipped whole."""
        if report.outcome == "failed":
            self.write(event="collect_error", id=report.nodeid, why=str(report.longrepr)[-4000:])
        elif report.outcome == "skipped":
            self.write(event="collect_skip", id=report.nodeid, why=str(report.longrepr)[-1000:])

    def pytest_collection_finish(self, session: Any) -> None:
        """What is going to be run."""
        self.write(event="collected", ids=[item.nodeid for item in session.items])
        set_aside()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """A test begins."""
        self.write(event="start", id=nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One phase of a test is over."""
        why = str(report.longrepr)[-4000:] if report.longrepr else ""
        self.write(
            event="report",
            id=report.nodeid,
            when=report.when,
            outcome=report.outcome,
            why=why,
            xfail=hasattr(report, "wasxfail"),
            seconds=round(report.duration, 3),
            properties=[list(pair) for pair in report.user_properties],
        )

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """All is run; only leaving is left."""
        self.write(event="finish", status=int(exitstatus))


def set_aside() -> None:
    """Keep what is imported by now out of garbage collection, for good.

    A conftest that unfreezes and collects after each test (vLLM's does) spends a second or more each time on modules
    that never go. An `unfreeze` without a `freeze` by the tests themselves therefore does nothing; after one, it is real.
    """
    freeze, unfreeze = gc.freeze, gc.unfreeze
    theirs = False

    def freeze_theirs() -> None:
        nonlocal theirs
        theirs = True
        freeze()

    def unfreeze_theirs() -> None:
        if theirs:
            unfreeze()

    freeze()
    gc.freeze, gc.unfreeze = freeze_theirs, unfreeze_theirs


def mount(source: str, target: str, flags: int, kind: str = "") -> None:
    """Make a bind mount, or change the flags of one.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    what = os.fsencode(kind) if kind else None
    if libc.mount(os.fsencode(source), os.fsencode(target), what, ctypes.c_ulong(flags), None):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def freeze(tree: str) -> None:
    """Make the tree read-only in this mount namespace."""
    mount("none", "/", MS_REC | MS_PRIVATE)
    mount(tree, tree, MS_BIND | MS_REC)
    kept = os.statvfs(tree).f_flag & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC)
    mount(tree, tree, MS_BIND | MS_REMOUNT | MS_RDONLY | kept)
    os.chdir(tree)


def raise_loopback() -> None:
    """Bring up `lo` in this network namespace, which has nothing else."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        asked = struct.pack("16sH14s", b"lo", 0, b"")
        flags = struct.unpack("16sH14s", fcntl.ioctl(sock, SIOCGIFFLAGS, asked))[1]
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14s", b"lo", flags | IFF_UP, b""))


def private_bytes(group: int, *, alone: bool) -> int:
    """Bytes of private memory of a group's processes: all but this one where the namespace is ours, else by group id."""
    total = 0
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            if not alone and os.getpgid(int(name)) != group:
                continue
            with open(f"/proc/{name}/statm", encoding="ascii") as file:  # noqa: PTH123
                fields = file.read().split()
            total += (int(fields[1]) - int(fields[2])) * PAGE
    return total


def kill(group: int, number: int, *, alone: bool) -> None:
    """Signal a group; when killing in a namespace of ours, everything else in it too."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
    if alone and number == signal.SIGKILL:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)


def reap(pid: int) -> int | None:
    """Collect dead children; the wait status of `pid` if it is among them."""
    found = None
    with contextlib.suppress(ChildProcessError):
        while True:
            dead, status = os.waitpid(-1, os.WNOHANG)
            if dead == 0:
                break
            if dead == pid:
                found = status
    return found


def finished_at(path: str, known: float | None) -> float | None:
    """When the group's report first had its `finish` event, on the monotonic clock; None before."""
    if known is not None:
        return known
    with contextlib.suppress(OSError), open(path, "rb") as file:  # noqa: PTH123
        file.seek(max(0, os.fstat(file.fileno()).st_size - 200))
        if b'"event": "finish"' in file.read():
            return time.monotonic()
    return None


def watch(pid: int, group: dict[str, Any], memory: int, *, alone: bool) -> dict[str, Any]:
    """Wait for a group's end, or make it: by its deadline, or by the memory that it may use.

    Returns:
        The facts: exit status or signal, why it was killed, seconds, peak bytes.
    """
    began = time.monotonic()
    killed, peak, finished, status = "", 0, None, None
    while status is None:
        time.sleep(POLL)
        status = reap(pid)
        if status is not None:
            break
        used = private_bytes(pid, alone=alone)
        peak = max(peak, used)
        finished = finished_at(group["report"], finished)
        if killed:
            kill(pid, signal.SIGKILL, alone=alone)
        elif used > memory:
            killed = "memory"
            kill(pid, signal.SIGKILL, alone=alone)
        elif finished is not None and time.monotonic() - finished > LEAVE:
            killed = "leaving"
            kill(pid, signal.SIGKILL, alone=alone)
        elif finished is None and time.monotonic() - began > group["limit"]:
            killed = "time"
            kill(pid, signal.SIGABRT, alone=alone)
            time.sleep(1)
    kill(pid, signal.SIGKILL, alone=alone)
    reap(pid)
    signalled = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    return {
        "name": group["name"],
        "code": code,
        "signal": signalled,
        "killed": killed,
        "peak_bytes": peak,
        "seconds": round(time.monotonic() - began, 3),
    }


def run_group(group: dict[str, Any]) -> int:
    """In the forked child: pytest, with its output in the group's log."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    log = os.open(group["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    import pytest

    return int(pytest.main(group["args"], plugins=[Recorder(group["report"])]))


def preload(modules: list[str]) -> float:
    """Import what every group will import; one that fails is left for the tests to fail on.

    Returns:
        Seconds that it took.
    """
    began = time.monotonic()
    for name in modules:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001
            print(f"preloading {name}: {type(error).__name__}: {error}", file=sys.stderr)
            break
    return round(time.monotonic() - began, 3)


def main() -> int:
    """Do the job named by the first argument."""
    with open(sys.argv[1], encoding="utf-8") as file:  # noqa: PTH123
        job = json.load(file)
    sys.path[0] = job["tree"]
    return perform(job)


def perform(job: dict[str, Any]) -> int:
    """Do a job; in a group's process, give pytest's status."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if job["loopback"]:
        raise_loopback()
    os.chdir(job["tree"])
    if job["freeze"]:
        freeze(job["tree"])
    alone = os.getpid() == 1
    spent = preload(job["preload"])
    with open(job["results"], "a", encoding="utf-8") as results:  # noqa: PTH123
        results.write(json.dumps({"preload_seconds": spent}) + "\n")
        results.flush()
        for group in job["groups"]:
            sys.stdout.flush()
            sys.stderr.flush()
            pid = os.fork()
            if pid == 0:
                results.close()
                return run_group(group)
            with contextlib.suppress(OSError):
                os.setpgid(pid, pid)
            facts = watch(pid, group, job["memory"], alone=alone)
            results.write(json.dumps(facts) + "\n")
            results.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
