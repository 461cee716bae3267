"""patchq refresh: the series from a checkout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.context import editing
from patchq.commands.options import BaseName, CheckoutPath, DryRun, Json, patch_names

if TYPE_CHECKING:
    from patchq.engine.draft import Bench
    from patchq.engine.gathered import Gathered
    from patchq.engine.stack import Stack
    from patchq.git.checkout import Checkout, Head
    from patchq.git.switch import Switch
    from patchq.series.series import Series
    from patchq.upstream.store import Store


def refresh(
    context: typer.Context,
    path: CheckoutPath,
    into: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--into", metavar="ID", help="The patch that gets every change.", autocompletion=patch_names
        ),
    ] = None,
    base: BaseName = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Write the series anew from a checkout: its commits, and what was changed on top of them.

    A commit with a patch's title is that patch. Other commits, and changes that are not committed, go into the patch
    that owns the lines or the file; `fixup! TITLE` commits into the patch of that title. Where that is not clear, the
    candidates are named and nothing is written. A branch of patchq's is brought up to date with it; yours stays.
    """
    from patchq.commands.lanes import open_bench
    from patchq.engine.gathered import untracked
    from patchq.engine.journal import working_on
    from patchq.engine.record import record_lane
    from patchq.engine.refreshing import gather
    from patchq.engine.stale import refuse_stale
    from patchq.git.checkout import read_head, refuse_underway
    from patchq.ui.output import print_json, print_line
    from patchq.upstream.store import Store

    with editing(context, "refreshing") as (project, series):
        name = series.base(base)[0]
        store = Store()
        target = series.find(into).id if into else None
        with (
            working_on(path, "refreshing from") as checkout,
            open_bench(series, store, checkout.object_dir) as bench,
        ):
            head = read_head(checkout)
            refuse_underway(checkout)
            base_tree = bench.ground(name)
            lane = _lane(series, store, bench, name)
            found = gather(series, name, bench.objects, checkout, head, base_tree, lane, target)
            done = record_lane(series, name, bench.objects, base_tree, found.bodies, "refreshing")
            refuse_stale(project.log.entries(), checkout.top, f"refresh {path}", name, done.written)
            switch = _switch(checkout, head, bench, found)
            left = untracked(checkout)
            if not dry_run:
                what = f"refresh {path}" + (f" --into {target}" if target else "")
                project.commit(what, done.files, moved=(checkout, switch) if switch else None)
    notes = list(found.notes)
    notes += [f"not tracked, and not taken: {', '.join(left[:5])} (git add them)"] if left else []
    if found.on_top and switch is None and not dry_run:
        notes.append("the checkout stays as it is: HEAD is on a branch of your own")
    if json:
        print_json(
            {
                "base": name,
                "tree": done.stack.tree,
                "written": list(done.written),
                "folded": list(found.on_top),
                "head": switch.new_commit if switch else head.commit,
                "patches": [{"id": s.id, "tree": s.tree} for s in done.stack.steps],
                "notes": notes,
            },
        )
        return
    what = ", ".join(done.written) if done.written else "nothing; every body is as it was"
    print_line(f"{'would be ' if dry_run else ''}written for {name}: {what}")
    print_line(f"{len(done.stack.steps)} patches, tree {done.stack.tree}")
    for note in notes:
        print_line(note)


def _lane(series: Series, store: Store, bench: Bench, base: str) -> Stack | None:
    """The lane as it is, where it holds; one that does not is what a refresh mends."""
    from patchq.engine.lane import load_lane
    from patchq.errors import PatchqError

    try:
        return load_lane(series, store, bench.objects, base).stack
    except (PatchqError, KeyError):
        return None


def _switch(checkout: Checkout, head: Head, bench: Bench, found: Gathered) -> Switch | None:
    """What brings a branch of patchq's to the commits of the refreshed patches; no file of the work tree changes."""
    from patchq.engine.gathered import index_switch

    return index_switch(checkout, head, bench.objects, found) if found.on_top and found.slots else None
