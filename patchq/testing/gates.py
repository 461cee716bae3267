"""Hardware levels, and which of them this machine reaches."""

from __future__ import annotations

import functools
import shutil
import sys
from typing import TYPE_CHECKING

from patchq.gpu.device import EMULATING, Card, read_cards, refusal

if TYPE_CHECKING:
    from patchq.series.patch import Gate

find_cards = functools.cache(read_cards)
"""The NVIDIA cards that the driver shows, as they were when first asked for."""


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
    why = refusal(gate, target, cards)
    if why:
        return f"{needs(gate, target)} ({why})"
    return "" if cuda else f"{needs(gate, target)} and an environment with CUDA (name one with --python)"


def device_of(gate: Gate, cards: tuple[Card, ...]) -> str:
    """What a result of a gate ran on, for the evidence."""
    if gate in {"cpu", "compile"} or not cards:
        import platform

        return f"{platform.system()} {platform.machine()} CPU"
    return cards[0].name
