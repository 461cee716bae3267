"""patchq new, rename, move, drop, fold and split: the series edited, every lane of it, all or nothing."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from patchq.commands.options import DryRun, Json, PatchId, patch_names

NewTitle = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--title", metavar="TITLE", help="The commit's subject, with upstream's tags."),
]
Beside = Optional[str]  # noqa: UP045


def new(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name such as rope-bound, or a whole id.")],
    title: NewTitle = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Begin a patch: a directory with a patch.yaml that says what is to be filled in.

    Its body comes from a checkout: patchq refresh CHECKOUT --into ID, or a commit with its title there.
    """
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import importing

    with at_desk(context, "beginning a patch") as desk:
        edited = importing.new(desk.series, desk.draft, name, title)
        made = tuple(i for i in edited.draft.patches if i not in desk.draft.patches)
        finish(desk, edited, f"new {made[0]}", dry_run=dry_run, json=json, made=made)


def rename(
    context: typer.Context,
    patch: PatchId,
    name: Annotated[str, typer.Argument(metavar="NEWNAME", help="The new name, without the number.")],
    title: NewTitle = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Call a patch otherwise; its number stays, and what names it by id follows: depends, because, lock and evidence."""
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import editing

    with at_desk(context, "renaming") as desk:
        meta = desk.series.find(patch)
        edited = editing.rename(desk.draft, desk.bench, meta.id, name, title)
        finish(desk, edited, f"rename {meta.id} {name}", dry_run=dry_run, json=json)


def move(
    context: typer.Context,
    patch: PatchId,
    before: Annotated[
        Beside,
        typer.Option("--before", metavar="ID", help="Put it before this one.", autocompletion=patch_names),
    ] = None,
    after: Annotated[
        Beside,
        typer.Option("--after", metavar="ID", help="Put it behind this one.", autocompletion=patch_names),
    ] = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Put a patch elsewhere in the order, in every lane.

    Directories are numbered in the order of the series, so those between its old and its new place are renumbered;
    what names them by id follows.
    """
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import editing
    from patchq.errors import InputError

    if (before is None) == (after is None):
        raise InputError("name one of --before ID and --after ID.", "As in: patchq move 5 --before 2.")
    with at_desk(context, "moving a patch") as desk:
        meta = desk.series.find(patch)
        beside = desk.series.find(before or after or "").id
        place = {"before": beside} if before else {"after": beside}
        edited = editing.move(desk.series, desk.draft, desk.bench, meta.id, **place)
        what = f"move {meta.id} {'--before' if before else '--after'} {beside}"
        finish(desk, edited, what, dry_run=dry_run, json=json)


def drop(context: typer.Context, patch: PatchId, dry_run: DryRun = False, json: Json = False) -> None:
    """Take a patch out of the series, in every lane; refused where another needs it."""
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import editing

    with at_desk(context, "dropping a patch") as desk:
        meta = desk.series.find(patch)
        edited = editing.drop(desk.series, desk.draft, desk.bench, meta.id)
        finish(desk, edited, f"drop {meta.id}", dry_run=dry_run, json=json)


def fold(
    context: typer.Context,
    patch: PatchId,
    into: Annotated[
        str,
        typer.Option(
            "--into", metavar="ID", help="The patch it becomes part of.", autocompletion=patch_names
        ),
    ],
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make one patch part of another, in every lane; the other keeps its place, title and author."""
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import editing

    with at_desk(context, "folding patches") as desk:
        one, two = desk.series.find(patch).id, desk.series.find(into).id
        edited = editing.fold(desk.series, desk.draft, desk.bench, one, two)
        finish(desk, edited, f"fold {one} --into {two}", dry_run=dry_run, json=json)


def split(
    context: typer.Context,
    patch: PatchId,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the new patch is called.")],
    files: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--files", metavar="PATTERN", help="Files that go into it, as in 'tests/*'; may be repeated."
        ),
    ] = None,
    hunks: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("--hunks", metavar="PATH:1,3-5", help="Hunks that go into it; may be repeated."),
    ] = None,
    title: NewTitle = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Make two patches of one, in every lane: what is chosen goes into a new one right behind it."""
    from patchq.commands.editing import at_desk, finish
    from patchq.engine import splitting

    choice = splitting.parse_choice(files or (), hunks or ())
    with at_desk(context, "splitting a patch") as desk:
        meta = desk.series.find(patch)
        called = splitting.title_for(meta, name, title)
        edited, made = splitting.split(desk.series, desk.draft, desk.bench, meta.id, choice, name, called)
        finish(desk, edited, f"split {meta.id} --name {name}", dry_run=dry_run, json=json, made=(made,))
