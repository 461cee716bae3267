"""Running groups of tests of one tree: shut in, watched, and read back."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, write_atomically
from patchq.gpu.cubin import collect_cubins
from patchq.gpu.device import Card, fitting_card, read_cards
from patchq.gpu.listing import list_ptx
from patchq.meanwhile import meanwhile
from patchq.testing.interpreters import Interpreters, search_path
from patchq.testing.outcome import Outcome, last_line, read_outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from patchq.testing.environment import Environment
    from patchq.testing.isolate import Isolation
    from patchq.testing.trees import Trees

LOOK = 0.2
"""Seconds between two looks at which group a session is at."""
SLACK = 120
"""Seconds beyond the groups' limits that a whole session may take, for importing and leaving."""
RESULTS = "results.jsonl"
"""The driver's words in a session's reports: a line when all is imported, then one when a group is over."""
REFUSED = re.compile(r"Read-only file system: ['\"]([^'\"]*)")
PYTEST_OPTIONS = (
    "-p",
    "no:cacheprovider",
    "-rA",
    "--color=no",
    "--tb=short",
    "--durations=8",
    "--continue-on-collection-errors",
)


@dataclass(frozen=True)
class Group:
    """Tests that are run together, in a process of their own.

    Attributes:
        name: unique in its session.
        tests: pytest files or node ids, relative to the tree.
        limit: seconds.
        gate: the level that they need; from `gpu` on they see this machine's accelerators.
        target: the architecture that the level is about.
    """

    name: str
    tests: tuple[str, ...]
    limit: int
    gate: str = "cpu"
    target: str = ""

    @property
    def card(self) -> bool:
        """Whether it may see this machine's accelerators."""
        return self.gate in {"gpu", "emulated", "native"}


@dataclass(frozen=True)
class Limits:
    """What one session may use: bytes of private memory, and threads."""

    memory: int
    threads: int


@dataclass(frozen=True)
class Workshop:
    """Where sessions are run.

    Attributes:
        trees: where the trees are made.
        environment: the interpreter and what belongs to it.
        isolation: how sessions are shut in.
        limits: what each may use.
    """

    trees: Trees
    environment: Environment
    isolation: Isolation
    limits: Limits

    def variables(self, *, card: bool) -> dict[str, str]:
        """What tests find in their environment, with `{sandbox}` for the sandbox.

        Nothing of the user's is in it but the search path; every cache is in the sandbox.
        """
        return {
            "PATH": search_path(self.environment),
            "HOME": "{sandbox}/home",
            "TMPDIR": "{sandbox}/tmp",
            "XDG_CACHE_HOME": "{sandbox}/cache",
            "XDG_CONFIG_HOME": "{sandbox}/home/.config",
            "XDG_DATA_HOME": "{sandbox}/home/.local/share",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": ":".join(str(p) for p in self.environment.path),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": str(self.limits.threads),
            **self.environment.variables,
            **({} if card else {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": ""}),
        }


def run_session(
    shop: Workshop,
    interpreters: Interpreters,
    tree: str,
    groups: Sequence[Group],
    begin: Callable[[str], None],
) -> dict[str, Outcome]:
    """Run groups on a tree, one after the other, in one sandbox and in processes of their own.

    Args:
        shop: where to run.
        interpreters: how to come by a process.
        tree: the tree's id.
        groups: what to run; without accelerators any number, with them one.
        begin: called with the name of each group when its tests begin, from another thread.

    Returns:
        The outcome of each group, by name; also of those that a dead driver never reached.
    """
    path = shop.trees.make(tree)
    sandbox = Path(tempfile.mkdtemp(prefix="patchq-"))
    try:
        seen = interpreters.sandbox_seen(sandbox)
        job = _job(shop, path, sandbox, seen, groups)
        wanted = shop.variables(card=any(g.card for g in groups))
        given = {k: v.replace("{sandbox}", str(seen)) for k, v in wanted.items()}
        given["PYTHONPATH"] = ":".join(filter(None, [str(path), given["PYTHONPATH"]]))
        used = fitting_card(groups[0].gate, groups[0].target, read_cards()) if groups[0].card else None
        if used is not None:
            given["CUDA_VISIBLE_DEVICES"] = used.uuid
        with meanwhile(LOOK, _following(sandbox, groups, begin)):
            said = interpreters.run(job, sandbox, path, given, sum(g.limit for g in groups) + SLACK)
        outcomes = {g.name: _read(sandbox, g, said) for g in groups}
        if used is not None:
            outcomes = {n: replace(o, on=_left_on(used, groups[0], sandbox)) for n, o in outcomes.items()}
    finally:
        shutil.rmtree(sandbox, ignore_errors=True)
    return _blame_writers(shop.trees, path, outcomes)


def _following(sandbox: Path, groups: Sequence[Group], begin: Callable[[str], None]) -> Callable[[], None]:
    """What tells, whenever it is called, which group a session is at, by how many the driver has had its last word on."""
    begun = 0

    def look() -> None:
        nonlocal begun
        if begun >= len(groups):
            return
        with contextlib.suppress(OSError):
            told = (sandbox / "reports" / RESULTS).read_bytes().count(b"\n")
            for group in groups[begun:told]:
                begin(group.name)
            begun = max(begun, told)

    return look


def _left_on(card: Card, group: Group, sandbox: Path) -> dict[str, Any]:
    """What a run on a card left: the card as it was, memory in use before and after, and the kernels compiled."""
    if group.gate == "emulated":
        list_ptx(sandbox / "cache")
    after = next((c.used_bytes for c in read_cards() if c.uuid == card.uuid), 0)
    cubins = [c.as_dict() for c in collect_cubins(sandbox / "cache")]
    return {"card": card.as_dict(), "memory": {"before": card.used_bytes, "after": after}, "cubins": cubins}


def _job(shop: Workshop, path: Path, sandbox: Path, seen: Path, groups: Sequence[Group]) -> Path:
    for name in ("home", "tmp", "cache", "reports"):
        (sandbox / name).mkdir()
    reports = sandbox / "reports"
    job = {
        "tree": str(path),
        "freeze": shop.isolation.tree,
        "loopback": shop.isolation.network,
        "preload": shop.environment.preload,
        "memory": shop.limits.memory,
        "results": str(reports / RESULTS),
        "groups": [
            {
                "name": g.name,
                "limit": g.limit,
                "report": str(reports / f"{number}.jsonl"),
                "log": str(reports / f"{number}.log"),
                "args": [
                    *PYTEST_OPTIONS,
                    f"--rootdir={path}",
                    f"--basetemp={seen / 'tmp' / f'pytest-{number}'}",
                    *g.tests,
                ],
            }
            for number, g in enumerate(groups)
        ],
    }
    file = reports / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    return file


def _read(sandbox: Path, group: Group, said: str) -> Outcome:
    reports = sandbox / "reports"
    job = json.loads((reports / "job.json").read_bytes())
    place = next(g for g in job["groups"] if g["name"] == group.name)
    facts: dict[str, Any] | None = None
    results = reports / RESULTS
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
