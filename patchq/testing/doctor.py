"""Looking a machine over: tools, room, what the kernel lets tests be shut into, which gates can be run."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir
from patchq.errors import PatchqError
from patchq.git.run import OLDEST_GIT, git_version
from patchq.series.patch import GATES
from patchq.testing.gates import find_cards, lacking
from patchq.testing.isolate import find_isolation
from patchq.testing.schedule import total_memory
from patchq.vllm.environment import environment_state

if TYPE_CHECKING:
    from patchq.series.series import Series
    from patchq.upstream.store import Store

ROOM = 8 * 10**9
"""Bytes that a store, an environment and trees take."""


@dataclass(frozen=True)
class Check:
    """One thing looked at: what was found, and what to do where it is missing."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""
    needed: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Examination:
    """All that was found; `gates` says per gate what is lacking, empty for nothing."""

    checks: tuple[Check, ...]
    gates: dict[str, str]
    environments: list[dict[str, str]]


def examine(series: Series, store: Store) -> Examination:
    """Look this machine over; nothing is changed or fetched."""
    isolation = find_isolation()
    cards = find_cards()
    free = shutil.disk_usage(cache_dir()).free
    git = ".".join(map(str, git_version()))
    none = "tests run all the same; results say so"
    checks = (
        Check(
            "git",
            git_version() >= OLDEST_GIT,
            git,
            f"Install git {'.'.join(map(str, OLDEST_GIT))} or newer.",
            needed=True,
        ),
        Check(
            "python",
            sys.version_info >= (3, 10),
            platform.python_version(),
            "Run patchq with Python 3.10 or newer.",
            needed=True,
        ),
        Check(
            "disk",
            free >= ROOM,
            f"{free / 1e9:.0f} GB free in {cache_dir()}",
            "Make room, or set PATCHQ_CACHE.",
        ),
        Check("memory", total_memory() >= 8 * 10**9, f"{total_memory() / 1e9:.0f} GB", "Use -j 1."),
        Check("processors", ok=True, detail=str(os.cpu_count())),
        Check(
            "tests without network",
            isolation.network,
            isolation.why_not or "yes, loopback only",
            f"Allow namespaces; {none}.",
        ),
        Check(
            "trees that cannot be written",
            isolation.tree,
            isolation.why_not or "yes, mounted read-only",
            f"Allow namespaces; {none}.",
        ),
        _tool("C++ compiler", ("g++", "clang++"), "Install g++: torch.compile on the CPU needs it."),
        _tool(
            "nvcc", ("nvcc",), "Install the CUDA toolkit: compiling Humming's kernels for a card needs it."
        ),
        Check(
            "GPU",
            bool(cards),
            ", ".join(f"{c.name} ({c.target})" for c in cards) or "none",
            "The gates gpu and above need one.",
        ),
    )
    targets = sorted({p.target for p in series.patches}) or ["sm_86"]
    gates: dict[str, str] = {gate: lacking(gate, targets[0], cards, cuda="any") for gate in GATES}
    return Examination(checks, gates, _environments(series, store))


def _tool(name: str, commands: tuple[str, ...], remedy: str) -> Check:
    found = next((path for c in commands if (path := shutil.which(c))), None)
    return Check(name, found is not None, found or "not on PATH", remedy)


def _environments(series: Series, store: Store) -> list[dict[str, str]]:
    rows = []
    for name in series.lock.lanes:
        try:
            commit = store.commit(name, series.lock.bases[name])
        except PatchqError as error:
            rows.append({"base": name, "state": error.message})
            continue
        if commit is None:
            state = f"unknown: the base is not in the store (patchq upstream fetch {name})"
        else:
            with store.objects() as objects:
                state = environment_state(objects, store.tree_of(commit))
        rows.append({"base": name, "state": state})
    return rows
