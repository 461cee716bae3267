"""All that is known of a series, gathered for showing: bases, patches, verdicts, needs, and what is proved where.

Everything comes from the lock, patch.yaml and the records beside it, and the forecast; nothing is kept here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from patchq.engine.dependencies import derive
from patchq.engine.verdict import LEAVES, MOVES
from patchq.git.mail import parse_mail
from patchq.series.evidence import STOCK, list_evidence
from patchq.series.moves import read_moves

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchq.engine.forecast import Forecast
    from patchq.git.mail import MailPatch
    from patchq.git.objects import Objects
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Series


@dataclass(frozen=True)
class Overview:
    """What there is to show; plain data throughout, in series and lock order.

    Attributes:
        bases: name, role, date, tree, source and whether it is in the store, of each base.
        chosen: the names of the bases that the matrix has.
        patches: each with what patch.yaml says, its size, its cells by base, its lanes, and its evidence by
            lane and gate.
        edges: which patch needs which, and why.
        commutes: how many of how many pairs commute.
        next: on the current release, what still needs a person (id, verdict, detail, files), and what moves by itself,
            leaves, or is in its lane already.
        lanes: name, top tree and how many patches of each.
    """

    bases: tuple[dict[str, Any], ...]
    chosen: tuple[str, ...]
    patches: tuple[dict[str, Any], ...]
    edges: tuple[dict[str, Any], ...]
    commutes: dict[str, int]
    next: dict[str, Any]
    lanes: tuple[dict[str, Any], ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def gather(
    series: Series,
    objects: Objects,
    forecast: Forecast,
    chosen: Sequence[str],
    present: Mapping[str, str],
    ids: Sequence[str] | None = None,
) -> Overview:
    """Gather what is known.

    Args:
        series: the series.
        objects: the store's objects.
        forecast: opened over every base of `chosen` and of the lanes.
        chosen: the bases of the matrix, by name.
        present: the commits of the bases in the store, by name.
        ids: the patches to tell of; all where None.

    Raises:
        PatchqError: a lane does not build, or a record is damaged.
    """
    pinned = series.base()[0]
    lanes = {name: {b.id: b for b in series.lane(name)} for name in series.lock.lanes if name in present}
    patches = []
    for meta in series.patches:
        if ids is None or meta.id in ids:
            bodies = {
                name: parse_mail(lane[meta.id].data, lane[meta.id].where)
                for name, lane in lanes.items()
                if meta.id in lane
            }
            cells = {base: forecast.cell(meta, base).as_dict() for base in chosen} if bodies else {}
            patches.append(_patch(series, meta, bodies, cells))
    edges: tuple[dict[str, Any], ...] = ()
    commutes = {"pairs": 0, "of": 0}
    if pinned in lanes:
        bodies_there = tuple(lanes[pinned].values())
        found = derive(objects, series.lock.bases[pinned].tree, bodies_there, series.patches)
        edges = tuple(
            {"from": e.source, "to": e.target, "kind": e.kind, "files": list(e.files), "because": e.because}
            for e in found.edges
        )
        count = len(bodies_there)
        commutes = {"pairs": len(found.commutes), "of": count * (count - 1) // 2}
    return Overview(
        tuple(
            {
                "name": name,
                "role": base.role,
                "date": base.date,
                "tree": base.tree,
                "source": str(base.source),
                "present": name in present,
            }
            for name, base in series.lock.bases.items()
        ),
        tuple(chosen),
        tuple(patches),
        edges,
        commutes,
        _next(series, chosen, patches),
        tuple(
            {
                "name": name,
                "patches": len(steps),
                "tree": steps[-1].tree if steps else series.lock.bases[name].tree,
            }
            for name, steps in series.lock.lanes.items()
        ),
    )


def _patch(
    series: Series, meta: PatchMeta, bodies: Mapping[str, MailPatch], cells: dict[str, Any]
) -> dict[str, Any]:
    records = list_evidence(series, [meta.id])
    moves = read_moves(series.root, meta.id)
    sizes = {base: _size(mail) for base, mail in bodies.items()}
    return {
        **asdict(meta),
        "number": meta.number,
        "name": meta.name,
        "sizes": sizes,
        "files": {base: list(mail.paths) for base, mail in bodies.items()},
        "lanes": {
            base: {"sha256": step.sha256, "tree": step.tree}
            for base, steps in series.lock.lanes.items()
            for step in steps
            if step.id == meta.id
        },
        "left": {
            base: {"verdict": move.verdict, "reason": move.reason}
            for base in series.lock.bases
            if (move := moves.to(base)) is not None and not move.carried
        },
        "cells": cells,
        "gates": [
            _gate(base, gate, meta.on(base), records)
            for base in [
                name for name, steps in series.lock.lanes.items() if any(s.id == meta.id for s in steps)
            ]
            for gate in dict.fromkeys(group.gate for group in meta.on(base).tests)
        ],
        "evidence": records,
    }


def _gate(base: str, gate: str, meta: PatchMeta, records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The best that is recorded at one gate on one base: current before stale, proved before passed, newest last."""
    found = [r for r in records if (r["base"], r["gate"]) == (base, gate) and r.get("mode") != STOCK]
    best = max(
        enumerate(found),
        key=lambda item: (item[1]["current"], bool(item[1].get("proved")), item[0]),
        default=(0, None),
    )[1]
    state = "not run"
    if best is not None:
        state = ("proved" if best.get("proved") else "passed") if best["current"] else "stale"
    kept = ("device", "target", "date", "before", "after", "before_output", "command", "mode")
    return {
        "base": base,
        "gate": gate,
        "state": state,
        "tests": [t for g in meta.tests if g.gate == gate for t in g.run],
        **{key: best.get(key) if best else None for key in kept},
    }


def _size(mail: MailPatch) -> dict[str, int]:
    """Files, and lines added and removed; a binary file has no lines."""
    hunks = [hunk for change in mail.changes for hunk in change.hunks]
    return {
        "files": len(mail.changes),
        "added": sum(hunk.added for hunk in hunks),
        "removed": sum(hunk.removed for hunk in hunks),
    }


def _next(series: Series, chosen: Sequence[str], patches: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What asks for a person on the current release, and what moves or leaves by itself."""
    current = series.lock.with_role("current")
    if current is None or current not in chosen:
        return {"base": current, "needs": [], "moves": [], "leaves": [], "carried": []}
    carried = [p["id"] for p in patches if current in p["lanes"]]
    left = [p["id"] for p in patches if current in p["left"]]
    rows = [
        (p["id"], p["cells"][current])
        for p in patches
        if current in p["cells"] and p["id"] not in {*carried, *left}
    ]
    return {
        "base": current,
        "needs": [
            {"id": i, "verdict": c["verdict"], "detail": c["detail"], "files": list(c["files"])}
            for i, c in rows
            if c["verdict"] not in MOVES | LEAVES
        ],
        "moves": [i for i, c in rows if c["verdict"] in MOVES],
        "leaves": left + [i for i, c in rows if c["verdict"] in LEAVES],
        "carried": carried,
    }
