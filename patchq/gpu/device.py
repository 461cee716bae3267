"""The cards of a machine, and what a gate asks of one; standard library only, since it also goes into bundles."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import asdict, dataclass
from typing import Any

from patchq.gpu.limits import capability_of, target_of

EMULATING = (9, 0)
"""The card on which the code path of an older one is run (facts: Humming's SM86 path on an SM90 card)."""
IDLE_BYTES = 1 << 30
"""Memory that may be in use on an idle card: a display, or the driver's own."""
IDLE_PERCENT = 5
_QUERY = "uuid,name,compute_cap,driver_version,memory.total,memory.used,utilization.gpu"
_MIB = 1 << 20


@dataclass(frozen=True)
class Card:
    """An accelerator as its driver shows it.

    Attributes:
        name: the product's name.
        capability: its compute capability.
        uuid: names this very card.
        driver: the driver's version.
        memory_bytes: its memory.
        used_bytes: how much of it is in use now, by anybody.
        utilization: percent of the last moment in which something ran on it.
        processes: ids of the processes that compute on it.
    """

    name: str
    capability: tuple[int, int]
    uuid: str = ""
    driver: str = ""
    memory_bytes: int = 0
    used_bytes: int = 0
    utilization: int = 0
    processes: tuple[int, ...] = ()

    @property
    def target(self) -> str:
        """As compilers name it."""
        return target_of(self.capability)

    @property
    def busy(self) -> str:
        """What it is busy with, in words; empty where it is idle."""
        if self.processes:
            return f"{len(self.processes)} processes compute on it (first: {self.processes[0]})"
        if self.used_bytes > IDLE_BYTES:
            return f"{self.used_bytes / 1e9:.1f} GB of its memory are in use"
        if self.utilization > IDLE_PERCENT:
            return f"it is {self.utilization} % busy"
        return ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def read_cards() -> tuple[Card, ...]:
    """The NVIDIA cards that the driver shows now; none where there is no driver."""
    if shutil.which("nvidia-smi") is None:
        return ()
    working: dict[str, list[int]] = {}
    for uuid, pid in _rows("--query-compute-apps=gpu_uuid,pid", 2):
        working.setdefault(uuid, []).append(_number(pid))
    cards = []
    for uuid, name, capability, driver, total, used, busy in _rows(f"--query-gpu={_QUERY}", 7):
        major, _, minor = capability.partition(".")
        if not (major.isdigit() and minor.isdigit()):
            continue
        sizes = (_number(total) * _MIB, _number(used) * _MIB)
        pids = tuple(working.get(uuid, ()))
        cards.append(Card(name, (int(major), int(minor)), uuid, driver, *sizes, _number(busy), pids))
    return tuple(cards)


def _rows(query: str, fields: int) -> list[list[str]]:
    command = ["nvidia-smi", query, "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    rows = [
        [cell.strip() for cell in line.split(",")]
        for line in done.stdout.decode("utf-8", "replace").splitlines()
    ]
    return [row for row in rows if len(row) == fields]


def _number(cell: str) -> int:
    return int(cell) if cell.isdigit() else 0


def fitting_card(gate: str, target: str, cards: tuple[Card, ...]) -> Card | None:
    """The first card on which tests of a gate can be run for a target."""
    wanted = capability_of(target)
    for card in cards:
        fits = {
            "gpu": True,
            "emulated": card.capability >= EMULATING,
            "native": card.capability == wanted,
        }
        if fits.get(gate):
            return card
    return None


def refusal(gate: str, target: str, cards: tuple[Card, ...]) -> str:
    """Why tests of a gate must not be run on these cards, in words; empty where they may.

    `native` asks for exactly the target's capability, and for a card on which nothing else runs.
    """
    card = fitting_card(gate, target, cards)
    if card is None:
        have = ", ".join(f"{c.name} ({c.target})" for c in cards) or "no GPU"
        return f"this machine has {have}"
    if gate == "native" and card.busy:
        return f"{card.name} is not idle: {card.busy}"
    return ""
