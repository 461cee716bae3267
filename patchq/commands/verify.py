"""patchq verify: is this tree the patched one?"""

from __future__ import annotations

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, CheckoutPath, Json, Only, Upto


def verify(
    context: typer.Context,
    path: CheckoutPath,
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """Prove that a checkout is the base plus the patches, and name every file that is not."""
    from patchq.commands.lanes import open_lane
    from patchq.engine.apply import choose
    from patchq.engine.journal import working_on
    from patchq.engine.verify import best_lane, verify_checkout
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    with working_on(path, "verifying") as checkout, store.objects(checkout.object_dir) as objects:
        names = [series.base(base)[0]] if base else list(series.lock.lanes)
        lanes = [open_lane(series, store, objects, name) for name in names or [series.base()[0]]]
        lane = best_lane(objects, checkout, lanes)
        ids = choose(series, lane, upto, only or ())
        found = verify_checkout(checkout, objects, lane, ids)
    if json:
        print_json(
            {
                "ok": not found.wrong,
                "base": lane.base,
                "match": found.match,
                "tree": found.tree,
                "expected": found.expected,
                "patches": [{"id": i} for i in ids],
                "files": [{"path": p, "problem": w} for p, w in found.wrong],
            },
        )
    elif found.wrong:
        print_table(["file", "problem"], [[p, w] for p, w in found.wrong])
        print_line(f"{path}: not {lane.base} with {len(ids)} patches: {len(found.wrong)} files differ")
    else:
        scope = (
            "by every tracked file"
            if found.match == "tree"
            else f"by the {found.checked} files that the patches touch"
        )
        print_line(f"{path}: ok, {scope}: {lane.base} with {len(ids)} patches, tree {found.tree}")
    if found.wrong:
        raise typer.Exit(1)
