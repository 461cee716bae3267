"""What the compiled kernels of a run say against it: a result never claims more than its cubins show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from patchq.gpu.limits import SHARED_BYTES, plain, target_of

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 3
RESERVED_BYTES = 1024
"""Of shared memory that the system keeps in each block. It is not in a card's limit for one block; in cubins from sm_90 on
it is in a kernel's size (nvcc 13 gives an empty kernel 1,024 bytes there, and none for sm_80 and sm_86)."""
RESERVED_FROM = 90


def contradictions(
    gate: str, target: str, card: dict[str, Any] | None, cubins: Sequence[dict[str, Any]]
) -> list[str]:
    """What the kernels of a run say against its gate, in words.

    - every gate on a card: the card is there, and each kernel is compiled for its capability.
    - `native`: that capability is the target's.
    - `emulated`: Humming compiled at least one kernel; each was assembled from PTX of the target, keeps within the
      target's shared memory and uses no instruction that the target lacks. Other kernels see the real card.
    """
    if gate in {"cpu", "compile"}:
        return []
    if card is None:
        return [f"{gate}: no card was used"]
    capability = target_of(tuple(card["capability"]))
    found = [
        f"a cubin of another target: {c['origin']} {c['name']} is for {c['target']}, the card is {capability}"
        for c in cubins
        if plain(c["target"]) != capability
    ]
    if gate == "native" and capability != plain(target):
        found.append(f"native: the card is {capability}, not {target}")
    if gate == "emulated":
        own = [c for c in cubins if c["origin"] == "humming"]
        if not own:
            found.append("zero kernels compiled: Humming made none, so no code path was emulated")
        for cubin in own:
            found += _beyond(target, cubin)
    return found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def _beyond(target: str, cubin: dict[str, Any]) -> list[str]:
    """In what a kernel goes beyond the card that it stands for."""
    name, limit = f"Humming's {cubin['name']} ({cubin['sha256'][:8]})", SHARED_BYTES.get(plain(target))
    if limit is None:
        return [f"{name}: how much shared memory {target} has is not known"]
    found = []
    if plain(cubin["ptx_target"]) != plain(target):
        found.append(f"{name}: its PTX is for {cubin['ptx_target'] or 'an unknown target'}, not {target}")
    asked = cubin["shared_bytes"] - (RESERVED_BYTES if _counts_reserved(cubin["target"]) else 0)
    if asked > limit:
        found.append(f"{name}: {asked} bytes of shared memory, above {limit} of {target}")
    if cubin["newer"]:
        found.append(f"{name}: {target} has no {', '.join(cubin['newer'][:SHOWN])}")
    return found


def _counts_reserved(target: str) -> bool:
    return int(plain(target).removeprefix("sm_")) >= RESERVED_FROM


def summary(cubins: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A run's kernels in short, for the evidence: how many, for what, the most that one takes, and a hash of all."""
    import hashlib

    targets: dict[str, int] = {}
    for cubin in cubins:
        targets[cubin["target"]] = targets.get(cubin["target"], 0) + 1
    listed = "\n".join(sorted(f"{c['sha256']} {c['target']}" for c in cubins))
    return {
        "count": len(cubins),
        "targets": targets,
        "ptx_targets": sorted({c["ptx_target"] for c in cubins if c["ptx_target"]}),
        "shared_bytes": max((c["shared_bytes"] for c in cubins), default=0),
        "registers": max((c["registers"] for c in cubins), default=0),
        "stack_bytes": max((c["stack_bytes"] for c in cubins), default=0),
        "sha256": hashlib.sha256(listed.encode()).hexdigest(),
    }
