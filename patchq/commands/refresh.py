"""patchq refresh: the series from the commits of a checkout."""

from __future__ import annotations

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, CheckoutPath, Json


def refresh(context: typer.Context, path: CheckoutPath, base: BaseName = None, json: Json = False) -> None:
    """Write the series anew from a checkout's commits: one per patch, titled as in its patch.yaml."""
    from patchq.engine.journal import working_on
    from patchq.engine.record import bodies_from_commits, record_lane
    from patchq.git.checkout import read_head
    from patchq.git.objects import read_commit
    from patchq.ui.output import print_json, print_line
    from patchq.ui.progress import make_progress
    from patchq.upstream.fetch import fetch_base
    from patchq.upstream.store import Store

    series = load(context)
    name, found = series.base(base)
    commit = fetch_base(name, found, make_progress())
    with working_on(path, "reading") as checkout, Store().objects(checkout.object_dir) as objects:
        head = read_head(checkout)
        tree = read_commit(objects, commit).tree
        bodies = bodies_from_commits(series, name, objects, checkout.git_dir, head.commit, tree)
        done = record_lane(series, name, objects, tree, bodies)
    if json:
        print_json(
            {
                "base": name,
                "tree": done.stack.tree,
                "written": list(done.written),
                "patches": [{"id": s.id, "tree": s.tree} for s in done.stack.steps],
            },
        )
        return
    what = ", ".join(done.written) if done.written else "nothing; every body is as it was"
    print_line(f"written for {name}: {what}")
    print_line(f"{len(bodies)} patches, tree {done.stack.tree}")
