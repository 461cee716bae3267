"""patchq deps: which patch needs which."""

from __future__ import annotations

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, Json


def deps(context: typer.Context, base: BaseName = None, json: Json = False) -> None:
    """Derive which patch needs which by building the lane without each; hold it against patch.yaml.

    Exit code 1 where a need is not declared, or a declared one is neither textual nor has a reason.
    """
    from patchq.commands.lanes import open_lane
    from patchq.engine.dependencies import derive
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    name = series.base(base)[0]
    with store.objects() as objects:
        lane = open_lane(series, store, objects, name)
        found = derive(objects, lane.stack.base_tree, lane.bodies, series.on(name).patches)
    if json:
        print_json(
            {
                "base": name,
                "agree": found.agree,
                "edges": [
                    {
                        "from": e.source,
                        "to": e.target,
                        "kind": e.kind,
                        "files": list(e.files),
                        "because": e.because or None,
                    }
                    for e in found.edges
                ],
                "commutes": [list(pair) for pair in found.commutes],
            },
        )
    else:
        print_table(
            ["patch", "needs", "kind", "why"],
            [[e.source, e.target, e.kind, e.because or ", ".join(e.files)] for e in found.edges],
        )
        count = len(lane.bodies)
        print_line(
            f"{len(found.edges)} needs among {count} patches; {len(found.commutes)} of {count * (count - 1) // 2} pairs commute",
        )
        for edge in found.edges:
            if edge.kind == "undeclared":
                print_line(
                    f"{edge.source} does not apply without {edge.target}: add it to depends in its patch.yaml"
                )
            elif edge.kind == "unfounded":
                print_line(
                    f"{edge.source} applies without {edge.target}: take it out of depends, or say why under because"
                )
    if not found.agree:
        raise typer.Exit(1)
