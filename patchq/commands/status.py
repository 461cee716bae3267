"""patchq status: the series, and how far a checkout has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from patchq.commands.context import load, on_checkout
from patchq.commands.options import BaseName, Json, MaybeCheckoutPath

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.series.series import Series
    from patchq.upstream.store import Store


def status(
    context: typer.Context, path: MaybeCheckoutPath = None, base: BaseName = None, json: Json = False
) -> None:
    """Show the series; for a checkout, which base it is on and which patches it has."""
    from patchq.series.moves import read_moves
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    look = _series(series, store, base) if path is None else _checkout(series, store, path, base)
    document, verdicts, tree = look
    moves = {p.id: read_moves(series.root, p.id).to(document["base"]) for p in series.patches}
    left = {i: move.verdict for i, move in moves.items() if move is not None and not move.carried}
    document["patches"] = [
        {
            "id": p.id,
            "title": p.title,
            "verdict": verdicts.get(p.id, left.get(p.id)),
            "applied": p.id in document["applied"],
        }
        for p in series.on(document["base"]).patches
    ]
    _show(document, str(path) if path else None, tree, json=json)


def _series(
    series: Series, store: Store, base: str | None
) -> tuple[dict[str, Any], dict[str, str], str | None]:
    """The document's beginning, how each patch applied, and the lane's tree."""
    from patchq.engine.lane import load_lane

    name, found = series.base(base)
    verdicts: dict[str, str] = {}
    if name in series.lock.lanes:
        series.lane(name)
        if store.commit(name, found) is not None:
            with store.objects() as objects:
                lane = load_lane(series, store, objects, name)
            verdicts = {s.id: s.verdict for s in lane.stack.steps}
        verdicts |= {p.id: "no body yet" for p in series.patches if not series.has_body(p.id)}
    return {"base": name, "applied": []}, verdicts, None


def _checkout(
    series: Series, store: Store, path: Path, base: str | None
) -> tuple[dict[str, Any], dict[str, str], str | None]:
    with on_checkout(series, store, path, "reading", base) as (_, _, standing):
        head, lane, position = standing.head, standing.lane, standing.position
    document = {
        "base": lane.base,
        "match": position.match,
        "applied": list(position.ids),
        "head": head.commit,
        "branch": head.branch,
        "dirty": list(head.dirty),
        "own_commits": list(position.extras),
    }
    return document, {s.id: s.verdict for s in lane.stack.steps}, lane.stack.tree


def _show(document: dict[str, Any], path: str | None, tree: str | None, *, json: bool) -> None:
    from patchq.text import listed
    from patchq.ui.output import print_json, print_line, print_table

    if json:
        print_json(document)
        return
    rows = []
    for patch in document["patches"]:
        verdict = patch["verdict"] or ("not fetched" if path is None else "no body here")
        rows.append(
            [patch["id"], *([["-", "applied"][patch["applied"]]] if path else []), verdict, patch["title"]]
        )
    print_table(["patch", *(["checkout"] if path else []), "on " + document["base"], "title"], rows)
    if path is None:
        print_line(f"{len(rows)} patches; base {document['base']}")
        return
    count = f"{len(document['applied'])} of {len(rows)} patches applied on {document['base']}"
    where = document["branch"] or f"detached at {document['head'][:12]}"
    print_line(f"{path}: {count}, on {where}")
    if document["dirty"]:
        print_line(f"not committed: {listed(document['dirty'])}")
    if document["own_commits"]:
        print_line(f"commits of your own on it: {len(document['own_commits'])}")
    if tree and len(document["applied"]) < len(rows):
        print_line(f"to apply the rest: patchq apply {path}")
