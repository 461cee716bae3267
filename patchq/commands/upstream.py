"""patchq upstream: bases and their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from patchq.commands.context import group, load
from patchq.commands.options import BaseNames, Json

app = group("Bases and their sources: list, fetch, add.", no_args_is_help=True)


@app.command("list")
def list_(context: typer.Context, json: Json = False) -> None:
    """List the bases, where each comes from, and whether it is in the store."""
    from patchq.ui.output import print_json, print_table
    from patchq.upstream.store import Store

    rows = _rows(load(context), Store())
    if json:
        print_json({"bases": rows})
        return
    print_table(
        ["base", "role", "tree", "source", "in the store"],
        [
            [
                r["name"],
                r["role"] or "",
                r["tree"][:12] if r["tree"] else "unverified",
                r["title"],
                "yes" if r["present"] else "no",
            ]
            for r in rows
        ],
    )


@app.command()
def fetch(
    context: typer.Context,
    names: BaseNames = None,
    all_: Annotated[bool, typer.Option("--all", help="Every base whose tree is known.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Fetch even what is there.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="For git sources, also what the commit descends from.")
    ] = False,
    json: Json = False,
) -> None:
    """Bring bases into the store; the pinned one where none is named."""
    from patchq.ui.output import print_json, print_line
    from patchq.ui.progress import make_progress
    from patchq.upstream.fetch import fetch_base
    from patchq.upstream.store import Store

    series = load(context)
    wanted = [series.base(name) for name in (names or [None])]  # type: ignore[list-item]
    if all_:
        wanted = [(name, base) for name, base in series.lock.bases.items() if base.verified]
    progress = make_progress()
    for name, base in wanted:
        fetch_base(name, base, progress, again=again, history=history)
        if not json:
            print_line(f"{name}: tree {base.tree or 'unverified'} is in the store")
    if json:
        chosen = {name for name, _ in wanted}
        print_json({"bases": [r for r in _rows(series, Store()) if r["name"] in chosen]})


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What to call it, such as v0.28.0.")],
    sdist: Annotated[
        str | None, typer.Option(metavar="VERSION", help="A release on the package index.")
    ] = None,
    git: Annotated[Optional[str], typer.Option(metavar="URL", help="A git remote; with --rev.")] = None,  # noqa: UP045
    clone: Annotated[Path | None, typer.Option(metavar="DIR", help="A local git clone; with --rev.")] = None,
    directory: Annotated[Optional[Path], typer.Option(metavar="DIR", help="A plain directory.")] = None,  # noqa: UP045
    rev: Annotated[
        str, typer.Option(metavar="REV", help="Commit, branch or tag, for --git and --clone.")
    ] = "HEAD",
    json: Json = False,
) -> None:
    """Fetch a new base, and record its source and tree id in upstream.lock."""
    from patchq.ui.output import print_json, print_line
    from patchq.ui.progress import make_progress
    from patchq.upstream.add import add_base
    from patchq.upstream.store import Store

    series = load(context)
    series, base = add_base(
        series, name, make_progress(), sdist=sdist, git=git, clone=clone, directory=directory, rev=rev
    )
    if json:
        print_json({"bases": [r for r in _rows(series, Store()) if r["name"] == name]})
    else:
        print_line(f"{name}: tree {base.tree}, from {base.source}, is in the store and in upstream.lock")


def _rows(series: Any, store: Any) -> list[dict[str, Any]]:
    present = store.refs()
    return [
        {
            "name": name,
            "role": base.role or None,
            "tree": base.tree or None,
            "verified": base.verified,
            "source": base.source.as_dict(),
            "title": str(base.source),
            "present": name in present,
            "lane": name in series.lock.lanes,
        }
        for name, base in series.lock.bases.items()
    ]
