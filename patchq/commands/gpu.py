"""patchq gpu: what can be said of a card without it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from patchq.commands.context import group, load
from patchq.commands.options import BaseName, Json, PatchIds

app = group("What can be said of a card without it.")


@app.callback()
def gpu() -> None:
    """What can be said of a card without it."""


@app.command()
def check(
    context: typer.Context,
    ids: PatchIds = None,
    base: BaseName = None,
    target: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="T", help="An architecture such as sm_86; may be repeated. The patches' own by default."
        ),
    ] = None,
    stock: Annotated[
        bool, typer.Option("--stock", help="On the base without the patches, as vLLM released it.")
    ] = False,
    python: Annotated[
        Path | None,
        typer.Option(metavar="EXE", help="An interpreter of yours that has the compilers."),
    ] = None,
    json: Json = False,
) -> None:
    """Compile the kernels that patches declare for a card that is not here, and hold them against its limits."""
    from patchq.commands.lanes import open_lane
    from patchq.engine.lane import substack
    from patchq.errors import InputError
    from patchq.gpu.check import Wanted, check_kernels
    from patchq.gpu.limits import SHARED_BYTES, plain
    from patchq.testing.environment import given_environment
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store
    from patchq.vllm.environment import ensure_interpreter

    for name in target or ():
        if plain(name) not in SHARED_BYTES:
            raise InputError(
                f"{name!r} is no target that patchq knows.", f"Use one of: {', '.join(SHARED_BYTES)}."
            )
    series = load(context)
    store, progress = Store(), make_progress()
    with store.objects() as objects:
        lane = open_lane(series, store, objects, series.base(base)[0])
        series = series.on(lane.base)
        chosen = [series.find(name) for name in ids or ()] or [
            p for p in series.patches if p.id in lane.stack.ids
        ]
        tree = lane.stack.base_tree if stock else lane.stack.tree
        if ids and not stock:
            closure = [p.id for p in series.closure([p.id for p in chosen]) if p.id in lane.stack.ids]
            tree = substack(objects, lane, closure).tree
        wanted = [Wanted(p.id, kernel, tree) for p in chosen for kernel in p.kernels]
        if not wanted:
            raise InputError(
                "zero kernels to compile: no patch that was asked for declares any.",
                "Declare them in its patch.yaml, under kernels.",
            )
        targets = list(dict.fromkeys(target or (p.target for p in chosen if p.kernels)))
        environment = (
            given_environment(python, {})
            if python
            else ensure_interpreter(objects, lane.stack.base_tree, progress)
        )
        checked = check_kernels(objects, wanted, targets, environment, progress)
    bad = [c for c in checked if not c.ok and c.status != "not run"]
    if json:
        print_json(
            {
                "base": lane.base,
                "tree": tree,
                "stock": stock,
                "ok": all(c.ok for c in checked),
                "kernels": [c.as_dict() for c in checked],
            }
        )
    else:
        print_table(
            ["patch", "kernel", "target", "shared", "limit", "registers", "stack", "result"],
            [
                [
                    c.patch,
                    c.name,
                    c.target,
                    *(
                        "" if n is None else f"{n:,}"
                        for n in (c.shared_bytes, c.limit_bytes, c.registers, c.stack_bytes)
                    ),
                    c.detail if c.ok and c.stack_bytes else c.status,
                ]
                for c in checked
            ],
        )
        for c in checked:
            if not c.ok:
                print_line(
                    f"{c.patch}: {c.name} for {c.target}: {c.status}{f': {c.detail}' if c.detail else ''}"
                )
        fine = sum(c.ok for c in checked)
        left = len(checked) - fine - len(bad)
        where = f"{lane.base} as released" if stock else f"{lane.base} with the patches"
        print_line(f"{where}: {fine} of {len(checked)} kernels within their cards' limits, {left} not run")
    if bad:
        raise typer.Exit(1)
    if not all(c.ok for c in checked):
        raise typer.Exit(3)
