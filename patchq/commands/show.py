"""patchq show: one patch as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from patchq.commands.context import load
from patchq.commands.options import Json, PatchId, SomeBases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.ui.output import Part, Reason


def show(context: typer.Context, patch: PatchId, bases: SomeBases = None, json: Json = False) -> None:
    """Show one patch: why it is carried, what it changes, its tests and what they proved, its verdict on each base."""
    from patchq.commands.report import gathered
    from patchq.ui.output import print_json, print_page

    series = load(context)
    found = series.find(patch)
    overview = gathered(series, bases or (), [found.id])
    shown = overview.patches[0]
    if json:
        edges = [e for e in overview.edges if found.id in {e["from"], e["to"]}]
        print_json({"patches": [shown], "bases": list(overview.chosen), "edges": edges})
        return
    print_page(f"{found.id}: {found.title}", list(_parts(shown)))


def _parts(patch: dict[str, Any]) -> Iterator[Part]:
    """Headings and what stands under each."""
    yield "why", [patch["why"].strip()]
    yield "changes", [patch["changes"].strip()]
    yield "needs", [_need(patch, name) for name in patch["depends"]] or ["nothing"]
    for base, size in patch["sizes"].items():
        count = len(patch["files"][base])
        lines = [f"{count} {'file' if count == 1 else 'files'}, +{size['added']} -{size['removed']}"]
        yield f"on {base}", [*lines, *(f"  {file}" for file in patch["files"][base]), *_other(patch, base)]
    for base, left in patch["left"].items():
        yield f"not on {base}", [("", left["verdict"], left["reason"])]
    yield "tests", [part for gate in patch["gates"] for part in _gate(gate)] or ["none"]
    yield "verdicts", [(base, c["verdict"], _why(c)) for base, c in patch["cells"].items()] or ["none"]
    if patch["limits"]:
        yield "does not do", [f"- {limit}" for limit in patch["limits"]]
    related = ", ".join(patch["upstream"]["related"])
    state = f"{patch['upstream']['state']}; intent: {patch['upstream']['intent']}"
    yield "upstream", [f"{state}{'; ' + related if related else ''}"]
    yield "drop when", [patch["drop_when"].strip()]


def _need(patch: dict[str, Any], name: str) -> str:
    because = patch["because"].get(name)
    return f"{name}: {because.strip()}" if because else name


def _other(patch: dict[str, Any], base: str) -> Iterator[str]:
    """What the patch is on this base in other words than on the others."""
    there = patch["bases"].get(base) or {}
    for key, heading in (("why", "why"), ("changes", "changes"), ("drop_when", "drop when")):
        if there.get(key):
            yield f"{heading}, there: {there[key].strip()}"


def _why(cell: dict[str, Any]) -> str:
    told = [cell["detail"], f"disagreement: {cell['disagreement']}" if cell["disagreement"] else ""]
    return "; ".join(filter(None, told))


def _gate(gate: dict[str, Any]) -> Iterator[str | Reason]:
    told = [", ".join(filter(None, [gate["device"], (gate["date"] or "")[:10]]))]
    for what, counts in (("with the patch", gate["after"]), ("without", gate["before"])):
        if counts:
            told.append(f"{what}: " + ", ".join(f"{n} {k}" for k, n in counts.items() if n))
    yield f"{gate['base']} {gate['gate']}", gate["state"], "; ".join(filter(None, told))
    yield from (f"  {test}" for test in gate["tests"])
