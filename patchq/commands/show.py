"""patchq show: one patch as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from patchq.commands.context import load
from patchq.commands.options import Json, PatchId, SomeBases

if TYPE_CHECKING:
    from collections.abc import Iterator

Part = tuple[str, list[str]]


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
    for base, size in patch["sizes"].items():
        lines = f"{len(patch['files'][base])} files, +{size['added']} -{size['removed']}"
        yield f"on {base}", [lines, *(f"  {file}" for file in patch["files"][base])]
    for base, left in patch["left"].items():
        yield f"not on {base}", [f"{left['verdict']}: {left['reason']}"]
    yield "needs", [_need(patch, name) for name in patch["depends"]] or ["nothing"]
    yield "tests", [line for gate in patch["gates"] for line in _gate(gate)] or ["none"]
    yield (
        "verdicts",
        [
            f"{base}: {c['verdict']}{': ' + c['detail'] if c['detail'] else ''}"
            for base, c in patch["cells"].items()
        ]
        or ["none"],
    )
    if patch["limits"]:
        yield "does not do", [f"- {limit}" for limit in patch["limits"]]
    related = ", ".join(patch["upstream"]["related"])
    yield (
        "upstream",
        [
            f"{patch['upstream']['state']}; intent: {patch['upstream']['intent']}{'; ' + related if related else ''}"
        ],
    )
    yield "drop when", [patch["drop_when"].strip()]


def _need(patch: dict[str, Any], name: str) -> str:
    because = patch["because"].get(name)
    return f"{name}: {because.strip()}" if because else name


def _gate(gate: dict[str, Any]) -> Iterator[str]:
    if gate["state"] == "not run":
        yield f"{gate['gate']}: not run"
    else:
        told = [
            f"{gate['gate']}: {gate['state']}",
            str(gate["device"] or ""),
            str(gate["date"] or "")[:10],
            str(gate["base"]),
        ]
        yield ", ".join(t for t in told if t)
        for what, counts in (("with the patch", gate["after"]), ("without", gate["before"])):
            if counts:
                yield f"  {what}: " + ", ".join(f"{n} {k}" for k, n in counts.items() if n)
    yield from (f"  {test}" for test in gate["tests"])
