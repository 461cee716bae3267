"""patchq apply and unapply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from patchq.commands.context import load, on_checkout
from patchq.commands.options import BaseName, CheckoutPath, DryRun, Json, Only, Upto

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.engine.apply import Outcome
    from patchq.series.series import Series
    from patchq.upstream.store import Store


def apply(
    context: typer.Context,
    path: CheckoutPath,
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="The branch to use; patchq/BASE by default.")
    ] = None,
    create: Annotated[
        bool, typer.Option("--create", help="Make the checkout where the path does not exist.")
    ] = False,
    three_way: Annotated[
        bool,
        typer.Option("--three-way", help="Merge where the checkout is not quite the base; each is reported."),
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Put the patches on a checkout: one commit each, on a branch of its own, all or nothing."""
    from patchq.errors import InputError
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    empty = path.is_dir() and not any(path.iterdir())
    if create and (empty or not path.exists()):
        outcome = _create(series, store, path, base, upto, only or (), branch, dry_run=dry_run)
    else:
        if create and not path.is_dir():
            raise InputError(f"{path} exists and is not a directory.", "Name another path.")
        with on_checkout(series, store, path, "applying to", base, three_way=three_way) as found:
            from patchq.engine.apply import apply_to
            from patchq.engine.journal import Note
            from patchq.engine.lane import choose

            checkout, objects, standing = found
            ids = choose(series.on(standing.lane.base), standing.lane, upto, only or ())
            note = Note(str(series.root), f"apply {path}")
            outcome = apply_to(checkout, objects, standing, ids, branch, dry_run=dry_run, note=note)
    series = series.on(outcome.base)
    if json:
        from patchq.ui.output import print_json

        print_json(_document(series, outcome, dry_run=dry_run))
    else:
        _print(series, str(path), outcome, dry_run=dry_run)


def _create(
    series: Series,
    store: Store,
    path: Path,
    base: str | None,
    upto: str | None,
    only: Sequence[str],
    branch: str | None,
    *,
    dry_run: bool,
) -> Outcome:
    from patchq.commands.lanes import open_lane
    from patchq.engine.apply import Outcome, branch_for
    from patchq.engine.create import create_checkout
    from patchq.engine.journal import Note
    from patchq.engine.lane import choose

    with store.objects() as objects:
        lane = open_lane(series, store, objects, series.base(base)[0])
        ids = choose(series.on(lane.base), lane, upto, only)
        if not dry_run:
            note = Note(str(series.root), f"apply --create {path}")
            return create_checkout(path, store, objects, lane, ids, branch, note)
        steps = tuple(s for s in lane.stack.steps if s.id in ids)
        target = branch_for(lane.base, branch)
        return Outcome(lane.base, "tree", "", "", target, steps, changed=True, created=True)


def unapply(
    context: typer.Context,
    path: CheckoutPath,
    base: BaseName = None,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Take the patches off a checkout again: back to the base, on the branch it came from."""
    from patchq.ui.output import print_json, print_line
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    with on_checkout(series, store, path, "unapplying from", base) as (checkout, objects, standing):
        from patchq.engine.apply import unapply as take_off
        from patchq.engine.journal import Note

        note = Note(str(series.root), f"unapply {path}")
        outcome = take_off(checkout, objects, standing, dry_run=dry_run, note=note)
    if json:
        print_json(_document(series, outcome, dry_run=dry_run))
    elif not outcome.changed:
        print_line(f"{path}: no patch is applied; it stands on {outcome.base}")
    else:
        where = outcome.branch or f"detached at {outcome.head[:12]}"
        would = "would be" if dry_run else "is"
        print_line(
            f"{path}: {would} back on {outcome.base} ({where}), {len(outcome.files)} files changed back"
        )


def _document(series: Series, outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    titles = {p.id: p.title for p in series.patches}
    return {
        "base": outcome.base,
        "match": outcome.match,
        "tree": outcome.tree or None,
        "head": outcome.head or None,
        "branch": outcome.branch,
        "changed": outcome.changed and not dry_run,
        "would_change": outcome.changed,
        "created": outcome.created and not dry_run,
        "files": list(outcome.files),
        "own_commits": list(outcome.extras),
        "patches": [
            {
                "id": step.id,
                "title": titles[step.id],
                "verdict": step.verdict,
                "tree": step.tree,
                "offsets": [{"file": o.file, "hunk": o.hunk, "lines": o.lines} for o in step.offsets],
            }
            for step in outcome.steps
        ],
    }


def _print(series: Series, path: str, outcome: Outcome, *, dry_run: bool) -> None:
    from patchq.text import listed
    from patchq.ui.output import print_line, print_table

    count = f"{len(outcome.steps)} of {len(series.lock.lanes[outcome.base])} patches"
    if not outcome.changed:
        print_line(
            f"{path}: already applied: {count} on {outcome.base}, tree {outcome.tree[:12]}; nothing to do"
        )
        if outcome.extras:
            print_line(
                f"beside them it has commits that no patch of the lane is, and they stay: {listed(outcome.extras)}"
            )
        return
    titles = {p.id: p.title for p in series.patches}
    rows = []
    for step in outcome.steps:
        moved = ", ".join(f"{o.file} hunk {o.hunk} by {o.lines:+d} lines" for o in step.offsets)
        rows.append([step.id, step.verdict, titles[step.id] + (f" ({moved})" if moved else "")])
    print_table(["patch", "verdict", "title"], rows)
    if dry_run:
        print_line(f"{path}: {count} would be applied on {outcome.base}; nothing was written")
        return
    made = "made; " if outcome.created else ""
    how = "" if outcome.match == "tree" else ", matched by the files that the patches touch"
    print_line(f"{path}: {made}{count} applied on {outcome.base}{how}")
    print_line(f"branch {outcome.branch}, commit {outcome.head[:12]}, tree {outcome.tree}")
