"""Starting sessions: each in a new interpreter, or forked off one that has the base's dependencies imported."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from patchq.cache import cache_dir, write_atomically
from patchq.testing import driver, warm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from patchq.testing.environment import Environment
    from patchq.testing.isolate import Isolation

WARMING = 300
"""Seconds that the first import may take before it is given up and each session imports for itself."""
TOO_LATE = "the session did not end in its time"


class Interpreters(Protocol):
    """A way to run the driver on a job."""

    name: str
    """For the ledger: results of one way are not taken for those of another."""

    def sandbox_seen(self, sandbox: Path) -> Path:
        """Where a session finds its sandbox."""
        ...

    def run(self, job: Path, sandbox: Path, tree: Path, variables: Mapping[str, str], budget: int) -> str:
        """Run a job to its end, or for `budget` seconds; what the driver itself said."""
        ...

    def close(self) -> None:
        """End every session that is still running."""
        ...


class Plain:
    """A new interpreter a session."""

    def __init__(self, environment: Environment, isolation: Isolation) -> None:
        self.name = f"plain, {isolation.name}"
        self._command = [*isolation.prefix, str(environment.python), driver.__file__]
        self._running: set[subprocess.Popen[bytes]] = set()

    def sandbox_seen(self, sandbox: Path) -> Path:
        """See `Interpreters.sandbox_seen`."""
        return sandbox

    def run(self, job: Path, sandbox: Path, tree: Path, variables: Mapping[str, str], budget: int) -> str:
        """See `Interpreters.run`."""
        process = subprocess.Popen(
            [*self._command, str(job)],
            cwd=tree,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._running.add(process)
        try:
            said, _ = process.communicate(timeout=budget)
        except subprocess.TimeoutExpired:
            process.kill()
            said, _ = process.communicate()
            said += f"\n{TOO_LATE}".encode()
        finally:
            self._running.discard(process)
        return said.decode("utf-8", "replace")

    def close(self) -> None:
        """See `Interpreters.close`."""
        for process in list(self._running):
            process.kill()


class Warm:
    """One interpreter with everything imported that does not come from the tree; each session is a fork of it.

    A session has namespaces of its own, so this needs a kernel that gives them.
    """

    def __init__(self, process: subprocess.Popen[bytes], sandbox: Path) -> None:
        self.name = "warm, namespaces"
        self._process = process
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._done: set[int] = set()
        self._next = 0
        self._dead = False
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def sandbox_seen(self, sandbox: Path) -> Path:
        """See `Interpreters.sandbox_seen`: every session has its own where the warm process has its."""
        return self._sandbox

    def run(self, job: Path, sandbox: Path, tree: Path, variables: Mapping[str, str], budget: int) -> str:
        """See `Interpreters.run`."""
        log = sandbox / "driver.log"
        with self._lock:
            self._next += 1
            number = self._next
            self._tell({"id": number, "job": str(job), "sandbox": str(sandbox), "log": str(log)})
        with self._ended:
            in_time = self._ended.wait_for(lambda: number in self._done or self._dead, timeout=budget)
            if not in_time:
                self._tell({"kill": number})
                self._ended.wait_for(lambda: number in self._done or self._dead, timeout=10)
        said = log.read_text("utf-8", "replace") if log.exists() else ""
        return said if in_time else f"{said}\n{TOO_LATE}"

    def close(self) -> None:
        """See `Interpreters.close`; the warm process itself ends too."""
        self._process.kill()
        self._listener.join()
        _end(self._process)

    def _tell(self, order: dict[str, Any]) -> None:
        with contextlib.suppress(BrokenPipeError):
            if self._process.stdin is not None:
                self._process.stdin.write(json.dumps(order).encode() + b"\n")
                self._process.stdin.flush()

    def _listen(self) -> None:
        for line in self._process.stdout or ():
            with self._ended:
                self._done.add(json.loads(line)["done"])
                self._ended.notify_all()
        with self._ended:
            self._dead = True
            self._ended.notify_all()


@contextlib.contextmanager
def open_interpreters(
    environment: Environment, isolation: Isolation, tree: Path, variables: Mapping[str, str]
) -> Iterator[Interpreters]:
    """A warm interpreter where the environment has something to import beforehand and the kernel allows it; else plain ones.

    Args:
        environment: what to run in.
        isolation: what the kernel allows.
        tree: a made tree of the base, from which it is learnt what is imported.
        variables: for the tests, with `{sandbox}` for the sandbox.
    """
    if not environment.preload or not isolation.tree:
        yield Plain(environment, isolation)
        return
    sandbox = Path(tempfile.mkdtemp(prefix="patchq-"))
    running = None
    try:
        for name in ("home", "tmp", "cache"):
            (sandbox / name).mkdir()
        seen = {k: v.replace("{sandbox}", str(sandbox)) for k, v in variables.items()}
        known = _learn(environment, isolation, tree, seen)
        process = _start(environment, isolation, known, sandbox, seen)
        running = Warm(process, sandbox) if process is not None else None
        yield running or Plain(environment, isolation)
    finally:
        if running is not None:
            running.close()
        shutil.rmtree(sandbox, ignore_errors=True)


def _learn(environment: Environment, isolation: Isolation, tree: Path, variables: dict[str, str]) -> Path:
    """The file that says what the base imports; made once an environment and base."""
    directory = cache_dir() / "imports"
    directory.mkdir(exist_ok=True)
    path = directory / f"{environment.key}-{tree.name[:40]}.json"
    if not path.is_file():
        command = [
            *isolation.prefix,
            str(environment.python),
            warm.__file__,
            "learn",
            str(tree),
            *environment.preload,
        ]
        env = {**variables, "PYTHONPATH": ":".join([str(tree), variables["PYTHONPATH"]])}
        known: dict[str, Any] = {"modules": [], "variables": {}}
        with contextlib.suppress(subprocess.TimeoutExpired, ValueError, IndexError):
            done = subprocess.run(
                command, env=env, cwd=tree, capture_output=True, check=False, timeout=WARMING
            )
            known = json.loads(done.stdout.splitlines()[-1])
        write_atomically(path, json.dumps(known).encode())
    return path


def _start(
    environment: Environment, isolation: Isolation, known: Path, sandbox: Path, variables: dict[str, str]
) -> subprocess.Popen[bytes] | None:
    """The warm interpreter, ready; None where it cannot be forked safely (a module started a thread)."""
    user = [*isolation.prefix[:1], "--user", "--map-root-user", "--"] if "--user" in isolation.prefix else []
    process = subprocess.Popen(
        [*user, str(environment.python), warm.__file__, "serve", str(known), str(sandbox)],
        cwd="/",
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    line = process.stdout.readline() if process.stdout is not None else b""
    if line and json.loads(line).get("ready"):
        return process
    process.kill()
    _end(process)
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(BrokenPipeError), process:
        pass


def search_path(environment: Environment) -> str:
    """PATH for tests: the environment's commands, then the system's."""
    return f"{environment.python.parent}:{os.environ.get('PATH', os.defpath)}"
