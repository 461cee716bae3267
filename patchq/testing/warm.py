"""An interpreter that has imported what a base imports, and forks off one shut-in session after the other.

Runs in the environment's own interpreter: standard library and pytest only. Importing vLLM's dependencies takes most of
the time of a short test run and is the same for every tree; the tree's own packages are never imported here, only in
the sessions. Each session has namespaces of its own, and its own sandbox mounted where this process has its.

    warm.py learn TREE MODULE...   print, as JSON, the modules from outside TREE that importing MODULEs brings
    warm.py serve MODULES SANDBOX  take jobs as JSON lines on stdin, say on stdout when each is done
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import sys
import threading
from pathlib import Path
from typing import Any

CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWPID = 0x00020000, 0x40000000, 0x20000000
PR_SET_PDEATHSIG = 1


def load_driver() -> Any:
    """The driver beside this file; by path, since this directory is not on the tests' import path."""
    spec = importlib.util.spec_from_file_location("patchq_driver", Path(__file__).with_name("driver.py"))
    if spec is None or spec.loader is None:
        raise ImportError("driver.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def learn(tree: str, modules: list[str]) -> dict[str, Any]:
    """Import modules of a tree; what came from outside it, in order, and the variables that were set on the way."""
    before, known = dict(os.environ), set(sys.modules)
    sys.path[0] = tree
    os.chdir(tree)
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    found = []
    for name, module in list(sys.modules.items()):
        spec = getattr(module, "__spec__", None)
        origin = getattr(spec, "origin", None) or ""
        if name not in known and spec is not None and spec.name == name and not origin.startswith(tree):
            own = origin in {"built-in", "frozen"} or origin.endswith((".py", ".so"))
            found += [name] if own else []
    variables = {k: v for k, v in os.environ.items() if before.get(k) != v}
    return {"modules": found, "variables": variables}


def warm_up(known: dict[str, Any]) -> None:
    """Import what was learnt, under the variables that the tree sets before it does so."""
    before = dict(os.environ)
    os.environ.update(known["variables"])
    for name in known["modules"]:
        with contextlib.suppress(BaseException):
            importlib.import_module(name)
    os.environ.clear()
    os.environ.update(before)
    gc.collect()
    gc.freeze()


def die_with_parent() -> None:
    """Be killed when the parent dies."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_session(driver: Any, order: dict[str, Any], sandbox: str) -> int:
    """Fork a session into namespaces of its own; the process that waits for it."""
    pid = os.fork()
    if pid:
        return pid
    die_with_parent()
    log = os.open(order["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID):
        print(f"unshare: {os.strerror(ctypes.get_errno())}", flush=True)
        os._exit(1)
    first = os.fork()
    if first:
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    die_with_parent()
    os.setsid()
    driver.mount("none", "/", driver.MS_REC | driver.MS_PRIVATE)
    driver.mount("proc", "/proc", 0, "proc")
    driver.mount(order["sandbox"], sandbox, driver.MS_BIND)
    with open(order["job"], encoding="utf-8") as file:  # noqa: PTH123
        job = json.load(file)
    os.environ["PYTHONPATH"] = ":".join([job["tree"], *filter(None, [os.environ.get("PYTHONPATH")])])
    sys.path[0] = job["tree"]
    importlib.invalidate_caches()
    status = int(driver.perform(job))
    sys.stdout.flush()
    return -1 - status


def serve(known: dict[str, Any], sandbox: str) -> int:
    """Take orders until stdin closes."""
    driver = load_driver()
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path[0] = "/nonexistent"
    import pytest  # noqa: F401

    warm_up(known)
    print(json.dumps({"ready": threading.active_count() == 1}), file=answer, flush=True)
    running: dict[int, int] = {}
    orders = os.fdopen(os.dup(0), "rb", buffering=0)
    pending = b""
    while True:
        readable, _, _ = select.select([orders], [], [], 0.05)
        if readable:
            chunk = orders.read(65536)
            if not chunk:
                break
            pending += chunk
        while b"\n" in pending:
            line, _, pending = pending.partition(b"\n")
            order = json.loads(line)
            if "kill" in order:
                for pid, number in running.items():
                    if number == order["kill"]:
                        os.kill(pid, signal.SIGKILL)
                continue
            pid = start_session(driver, order, sandbox)
            if pid < 0:
                return -1 - pid
            running[pid] = order["id"]
        for pid in list(running):
            dead, status = os.waitpid(pid, os.WNOHANG)
            if dead:
                done = {"done": running.pop(pid), "status": os.waitstatus_to_exitcode(status)}
                print(json.dumps(done), file=answer, flush=True)
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return 0


def main() -> int:
    """Do what the first argument says."""
    if sys.argv[1] == "learn":
        print(json.dumps(learn(sys.argv[2], sys.argv[3:])))
        return 0
    with open(sys.argv[2], encoding="utf-8") as file:  # noqa: PTH123
        known = json.load(file)
    return serve(known, sys.argv[3])


if __name__ == "__main__":
    sys.exit(main())
