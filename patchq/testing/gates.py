"""Hardware levels, and which of them this machine reaches."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchq.series.patch import Gate

EMULATING = (9, 0)
"""The card on which the code path of an older one is run (facts: Humming's SM86 path on an SM90 card)."""


@dataclass(frozen=True)
class Card:
    """An accelerator: its name and compute capability."""

    name: str
    capability: tuple[int, int]

    @property
    def target(self) -> str:
        """As compilers name it."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


@functools.cache
def find_cards() -> tuple[Card, ...]:
    """The NVIDIA cards that the driver shows."""
    if shutil.which("nvidia-smi") is None:
        return ()
    query = ["nvidia-smi", "--query-gpu=name,compute_cap", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:
        return ()
    found = re.findall(r"^(.+), (\d+)\.(\d+)$", done.stdout.decode("utf-8", "replace"), re.MULTILINE)
    return tuple(Card(name.strip(), (int(major), int(minor))) for name, major, minor in found)


def needs(gate: Gate, target: str) -> str:
    """What a gate asks for, in the words of `not run: needs …`."""
    return {
        "cpu": "a CPU",
        "compile": f"a compiler for {target}",
        "gpu": "a GPU",
        "emulated": f"emulated {target} (a GPU of capability {EMULATING[0]}.{EMULATING[1]} or above)",
        "native": f"native {target}",
    }[gate]


def lacking(
    gate: Gate, target: str, cards: tuple[Card, ...], cuda: str, programs: tuple[str, ...] = ()
) -> str:
    """Why tests of a gate cannot be run here; empty where they can.

    Args:
        gate: the level that they need.
        target: the architecture it is about.
        cards: this machine's.
        cuda: the CUDA version of the environment's torch; empty for none.
        programs: what they need to find on PATH.
    """
    absent = [program for program in programs if shutil.which(program) is None]
    if absent:
        return f"{needs(gate, target)} ({', '.join(absent)} is not on PATH)"
    if gate == "cpu":
        return ""
    if gate == "compile":
        return "" if sys.platform == "linux" else needs(gate, target)
    fits = {
        "gpu": bool(cards),
        "emulated": any(c.capability >= EMULATING for c in cards),
        "native": any(c.target == target.removesuffix("a") for c in cards),
    }[gate]
    if not fits:
        return needs(gate, target)
    return "" if cuda else f"{needs(gate, target)} and an environment with CUDA (name one with --python)"


def device_of(gate: Gate, cards: tuple[Card, ...]) -> str:
    """What a result of a gate ran on, for the evidence."""
    if gate in {"cpu", "compile"} or not cards:
        import platform

        return f"{platform.system()} {platform.machine()} CPU"
    return cards[0].name
