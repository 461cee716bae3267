"""patchq verdict: a person's ruling on what became of a patch."""

from __future__ import annotations

from typing import Annotated

import typer

from patchq.commands.context import editing, group, load
from patchq.commands.options import Json, PatchId

app = group("A person's rulings on what became of patches.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `set` a command of its own while it is the only one."""


@app.command("set")
def set_(
    context: typer.Context,
    patch: PatchId,
    verdict: Annotated[
        str,
        typer.Argument(
            help="clean, offset, merged, conflict, missing, landed, partial, reworked or reverted."
        ),
    ],
    base: Annotated[str, typer.Option("--base", metavar="BASE", help="The base that it is about.")],
    because: Annotated[
        str, typer.Option("--because", metavar="REASON", help="Why; it is kept beside the verdict.")
    ],
    json: Json = False,
) -> None:
    """Record what a patch is on a base, and why; it wins until the patch's bytes or the base's tree change."""
    import datetime

    from patchq.commands.grounds import open_forecast
    from patchq.errors import InputError
    from patchq.series.rulings import VERDICTS, Ruling, with_ruling
    from patchq.ui.output import print_json, print_line
    from patchq.upstream.store import Store

    series = load(context)
    meta = series.find(patch)
    name = series.base(base)[0]
    found = next((v for v in VERDICTS if v == verdict), None)
    if found is None:
        raise InputError(f"{verdict!r} is not a verdict.", f"Use one of: {', '.join(VERDICTS)}.")
    if not because.strip():
        raise InputError("a ruling needs a reason.", "Say why with --because.")
    store = Store()
    with store.objects_of(series.lock.bases.values()) as objects:
        opened = open_forecast(series, store, objects, [name])
        cell = opened.cell(meta, name)
        sha256, tree = opened.judged(meta.id, name)
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    ruling = Ruling(name, found, because.strip(), sha256, tree, today)
    with editing(context, "ruling") as (project, _):
        project.commit(
            f"verdict set {meta.id} {found} --base {name}", with_ruling(series.root, meta.id, ruling)
        )
    if json:
        print_json(
            {"id": meta.id, "base": name, "verdict": found, "reason": because.strip(), "was": cell.verdict}
        )
    else:
        print_line(f"{meta.id} on {name}: ruled {found}, was {cell.verdict}: {because.strip()}")
