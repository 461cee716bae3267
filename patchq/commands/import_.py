"""patchq import: patches from outside become patches of the series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.options import BaseName, DryRun, Json

if TYPE_CHECKING:
    from patchq.commands.editing import Desk
    from patchq.engine.incoming import Incoming
    from patchq.git.checkout import Checkout


def import_(
    context: typer.Context,
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A patch file or mailbox; or, with --repo, a commit, branch or A..B."
        ),
    ],
    repo: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--repo", metavar="DIR", help="The clone or checkout that has the commits."),
    ] = None,
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--name", metavar="NAME", help="What to call it, where it is one; made of its title by default."
        ),
    ] = None,
    base: BaseName = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Take patches in at the end of the series: one for each mail or commit, authors and messages kept.

    A branch gives the commits that it has above the base or the series. Each patch must apply strictly, and gets a
    patch.yaml that says what is to be filled in; its dependencies are found by building without each earlier patch.
    """
    from patchq.commands.editing import at_desk, finish
    from patchq.engine.importing import bring_in
    from patchq.engine.incoming import from_file
    from patchq.engine.journal import working_on

    if repo is None:
        found = from_file(Path(source))
        with at_desk(context, "importing") as desk:
            chosen = desk.series.base(base)[0]
            edited, made = bring_in(desk.series, desk.draft, desk.bench, chosen, found, name)
            finish(desk, edited, f"import {source}", dry_run=dry_run, json=json, made=made)
        return
    with (
        working_on(repo, "importing from") as checkout,
        at_desk(context, "importing", checkout.object_dir) as desk,
    ):
        chosen = desk.series.base(base)[0]
        commits = _commits(desk, checkout, source)
        edited, made = bring_in(desk.series, desk.draft, desk.bench, chosen, commits, name)
        finish(desk, edited, f"import {source} --repo {repo}", dry_run=dry_run, json=json, made=made)


def _commits(desk: Desk, checkout: Checkout, source: str) -> list[Incoming]:
    from patchq.engine.incoming import from_commits

    bases = {b.tree for b in desk.series.lock.bases.values() if b.tree}
    steps = {s.tree for lane in desk.series.lock.lanes.values() for s in lane}
    return from_commits(checkout, desk.bench.objects, source, bases | steps)
