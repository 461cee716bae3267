"""patchq export pr: one branch for each patch, ready to be pushed by a person."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, DryRun, Json, PatchIds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.export.branches import Branch
    from patchq.export.pr import Exported
    from patchq.git.checkout import Checkout


def pr(
    context: typer.Context,
    repo: Annotated[Path, typer.Option("--repo", metavar="CLONE", help="Your clone of upstream.")],
    ids: PatchIds = None,
    base: BaseName = None,
    onto: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="REF", help="The commit to go on; the base as the clone has it by default."),
    ] = None,
    as_: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--as", metavar="'NAME <MAIL>'", help="Who signs off; git's user there by default."),
    ] = None,
    assisted_by: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="TOOL", help="An AI that had a part in it; may be repeated."),
    ] = None,
    prove: Annotated[
        bool, typer.Option("--prove", help="Run the tests on each branch's own tree first.")
    ] = False,
    python: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="EXE", help="For --prove: an interpreter that has what the base needs."),
    ] = None,
    extensions: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="VERSION", help="For --prove: compiled CPU extensions of another release."),
    ] = None,
    limit: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N", min=1, help="Pull requests that you may have open; upstream's rule by default."
        ),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", help="Where to write the descriptions; under the cache by default."),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make a branch for each patch in your clone, with its description. Nothing is pushed; the commands are printed."""
    from patchq.commands.lanes import open_lane
    from patchq.commands.test import Wanted, default_jobs, environment_maker
    from patchq.engine.journal import working_on
    from patchq.errors import InputError
    from patchq.export.pr import Request, export_branches
    from patchq.ui.output import print_json
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store

    if (python or extensions) and not prove:
        raise InputError("--python and --extensions are for --prove.", "Add --prove.")
    wanted = Wanted(None, python, extensions)
    wanted.check()
    series = load(context)
    store = Store()
    progress = make_progress()
    with working_on(repo, "exporting to") as checkout, store.objects(checkout.object_dir) as objects:
        lane = open_lane(series, store, objects, series.base(base)[0])
        series = series.on(lane.base)
        maker = environment_maker(series, objects, lane.base, lane.stack.base_tree, wanted, progress)
        request = Request(tuple(ids or ()), onto, as_, tuple(assisted_by or ()), limit, out, default_jobs())
        done = export_branches(
            series, checkout, objects, lane, request, (maker, progress) if prove else None, dry_run=dry_run
        )
    if json:
        print_json(_document(done, checkout, lane.base, dry_run=dry_run))
    else:
        _print(done, checkout, dry_run=dry_run)


def _document(done: Exported, checkout: Checkout, base: str, *, dry_run: bool) -> dict[str, Any]:
    return {
        "base": base,
        "onto": {"name": done.onto.name, "commit": done.onto.commit, "match": done.onto.match},
        "as": str(done.who),
        "branches": [
            {
                "name": b.name,
                "id": b.patch.id,
                "title": b.patch.title,
                "tree": b.tree,
                "commit": b.commit,
                "patches": list(b.ids),
                "proved": done.proved,
                "status": b.status,
                "was": b.was or None,
                "changes": [{"id": i or None, "difference": words} for i, words in b.changes],
                "open": list(done.open[b.patch.id]),
                "body": done.bodies[b.patch.id],
                "file": str(done.files[b.patch.id]),
                "push": push_command(checkout, b),
            }
            for b in done.branches
        ],
        "files": [] if dry_run else [str(path) for path in done.files.values()],
    }


def push_command(checkout: Checkout, branch: Branch) -> str:
    """What a person types to push a branch to a fork."""
    force = ["--force-with-lease"] if branch.status == "updated" else []
    return shlex.join(["git", "-C", str(checkout.top), "push", *force, "FORK", branch.name])


def _print(done: Exported, checkout: Checkout, *, dry_run: bool) -> None:
    from patchq.ui.output import print_line, print_table

    rows = [[b.name, "would be " + b.status if dry_run else b.status, b.patch.title] for b in done.branches]
    print_table(["branch", "", "title"], rows)
    for branch in done.branches:
        if len(branch.ids) > 1:
            print_line(f"{branch.name}: stacked on {', '.join(branch.ids[:-1])}")
        for patch, words in branch.changes:
            print_line(": ".join(filter(None, [branch.name, patch, words])))
        for heading in done.open[branch.patch.id]:
            print_line(f"{branch.name}: the template's section {heading!r} is left for you")
    for patch in done.held:
        print_line(f"{patch}: its patch.yaml says that it is to be held back")
    where = f"{done.onto.name} ({done.onto.commit[:12]})"
    count = len(done.branches)
    print_line(
        f"{count} {'branch' if count == 1 else 'branches'} on {where}, signed off by {done.who}; {_proved(done)}"
    )
    if not dry_run:
        print_line("")
        _print_next(done.branches, done.files, checkout)


def _proved(done: Exported) -> str:
    if done.proved:
        return "their trees are proved"
    return "NOT proved on these trees (add --prove)"


def _print_next(branches: Sequence[Branch], files: dict[str, Path], checkout: Checkout) -> None:
    from patchq.ui.output import print_line

    print_line(
        "read them, then push each to your fork (FORK is its remote), and open the pull requests yourself:"
    )
    for branch in branches:
        print_line(f"  {push_command(checkout, branch)}")
        print_line(f"    {files[branch.patch.id]}")
