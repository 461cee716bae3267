"""Running groups of tests of one tree: shut in, watched, and read back."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, write_atomically
from patchq.testing import driver
from patchq.testing.outcome import Outcome, last_line, read_outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.testing.environment import Environment
    from patchq.testing.isolate import Isolation
    from patchq.testing.trees import Trees

SLACK = 120
"""Seconds beyond the groups' limits that a whole session may take, for importing and leaving."""
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
REFUSED = re.compile(r"Read-only file system: ['\"]([^'\"]*)")
PYTEST_OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-rA",
    "--color=no",
    "--tb=short",
    "--continue-on-collection-errors",
)


@dataclass(frozen=True)
class Group:
    """Tests that are run together, in a process of their own.

    Attributes:
        name: unique in its session.
        tests: pytest files or node ids, relative to the tree.
        limit: seconds.
        card: whether it may see this machine's accelerators.
    """

    name: str
    tests: tuple[str, ...]
    limit: int
    card: bool = False


@dataclass(frozen=True)
class Limits:
    """What one session may use: bytes of private memory, and threads."""

    memory: int
    threads: int


def run_session(
    trees: Trees,
    tree: str,
    groups: Sequence[Group],
    environment: Environment,
    isolation: Isolation,
    limits: Limits,
) -> dict[str, Outcome]:
    """Run groups on a tree, one after the other, in one sandbox and in processes of their own.

    Args:
        trees: where the tree is made.
        tree: its id.
        groups: what to run; all of them see accelerators, or none does.
        environment: the interpreter and what belongs to it.
        isolation: how to shut the session in.
        limits: what it may use.

    Returns:
        The outcome of each group, by name; also of those that a dead driver never reached.
    """
    path = trees.make(tree)
    sandbox = Path(tempfile.mkdtemp(prefix="patchq-"))
    try:
        job = _job(path, sandbox, groups, environment, isolation, limits)
        command = [*isolation.prefix, str(environment.python), driver.__file__, str(job)]
        env = _variables(path, sandbox, environment, limits, card=any(g.card for g in groups))
        budget = sum(g.limit for g in groups) + SLACK
        said = _watched(command, path, env, budget)
        outcomes = {g.name: _read(sandbox, g, said) for g in groups}
    finally:
        shutil.rmtree(sandbox, ignore_errors=True)
    return _blame_writers(trees, path, outcomes)


def _job(
    path: Path,
    sandbox: Path,
    groups: Sequence[Group],
    environment: Environment,
    isolation: Isolation,
    limits: Limits,
) -> Path:
    for name in ("home", "tmp", "cache", "reports"):
        (sandbox / name).mkdir()
    reports = sandbox / "reports"
    job = {
        "tree": str(path),
        "freeze": isolation.tree,
        "loopback": isolation.network,
        "preload": environment.preload,
        "memory": limits.memory,
        "results": str(reports / "results.jsonl"),
        "groups": [
            {
                "name": g.name,
                "limit": g.limit,
                "report": str(reports / f"{number}.jsonl"),
                "log": str(reports / f"{number}.log"),
                "args": [
                    *PYTEST_OPTIONS,
                    f"--rootdir={path}",
                    f"--basetemp={sandbox / 'tmp' / f'pytest-{number}'}",
                    *g.tests,
                ],
            }
            for number, g in enumerate(groups)
        ],
    }
    file = reports / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    return file


def _variables(
    path: Path, sandbox: Path, environment: Environment, limits: Limits, *, card: bool
) -> dict[str, str]:
    """Nothing of the user's environment but the system's search path; every cache in the sandbox."""
    cache = sandbox / "cache"
    given = {k: v.replace("{sandbox}", str(sandbox)) for k, v in environment.variables.items()}
    return {
        "PATH": f"{environment.python.parent}:{os.environ.get('PATH', SYSTEM_PATH)}",
        "HOME": str(sandbox / "home"),
        "TMPDIR": str(sandbox / "tmp"),
        "XDG_CACHE_HOME": str(cache),
        "XDG_CONFIG_HOME": str(sandbox / "home" / ".config"),
        "XDG_DATA_HOME": str(sandbox / "home" / ".local" / "share"),
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONPATH": ":".join(str(p) for p in (path, *environment.path)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": str(limits.threads),
        **({} if card else {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
        **given,
    }


def _watched(command: list[str], path: Path, env: dict[str, str], budget: int) -> str:
    """Run the driver to its end, or to the end of its time; what it said."""
    process = subprocess.Popen(
        command,
        cwd=path,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=budget)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        said += b"\nthe session did not end in its time"
    except BaseException:
        process.kill()
        process.wait()
        raise
    return said.decode("utf-8", "replace")


def _read(sandbox: Path, group: Group, said: str) -> Outcome:
    reports = sandbox / "reports"
    job = json.loads((reports / "job.json").read_bytes())
    place = next(g for g in job["groups"] if g["name"] == group.name)
    facts: dict[str, Any] | None = None
    results = reports / "results.jsonl"
    if results.exists():
        lines = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
        facts = next((f for f in lines if f.get("name") == group.name), None)
    log = Path(place["log"]).read_bytes() if Path(place["log"]).exists() else b""
    full = said.encode() + log
    digest = hashlib.sha256(full).hexdigest()
    logs = cache_dir() / "logs"
    logs.mkdir(exist_ok=True)
    write_atomically(logs / f"{digest}.log", full)
    outcome = read_outcome(Path(place["report"]), facts, log, digest, group.limit)
    if outcome.problem == "not started" and not log:
        outcome = replace(outcome, detail=last_line(said) or outcome.detail)
    return outcome


def _blame_writers(trees: Trees, path: Path, outcomes: dict[str, Outcome]) -> dict[str, Outcome]:
    """Name what wrote into the tree: the test that was refused, or the file that is not as it was."""
    blamed = {}
    for name, outcome in outcomes.items():
        refused = [f"{t}: {why}" for t, why in outcome.reasons.items() if _is_refusal(why, path)]
        if refused and not outcome.problem:
            detail = refused[0].replace(f"{path}/", "")
            blamed[name] = replace(outcome, problem="wrote into its tree", detail=detail)
        else:
            blamed[name] = outcome
    changed = trees.changed(path)
    if changed:
        trees.discard(path)
        detail = ", ".join(changed[:5])
        blamed = {n: replace(o, problem="wrote into its tree", detail=detail) for n, o in blamed.items()}
    return blamed


def _is_refusal(why: str, tree: Path) -> bool:
    """Whether a failure is that of a write into the tree: by its path, or by one that is relative to it."""
    found = REFUSED.search(why)
    return found is not None and (not found[1].startswith("/") or found[1].startswith(f"{tree}/"))


def log_path(digest: str) -> Path:
    """Where the log of that hash is kept in this cache."""
    return cache_dir() / "logs" / f"{digest}.log"
