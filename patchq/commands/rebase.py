"""patchq rebase: the series carried to another base."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from patchq.commands.context import editing, load
from patchq.commands.options import Json

if TYPE_CHECKING:
    from patchq.engine.rebase import Pass
    from patchq.engine.rebasing import Journal

SHOWN = 8
"""Lines that are printed of a file's changed edits; --json has all."""


def rebase(
    context: typer.Context,
    onto: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="BASE", help="The base whose lane to make, or to bring up to date."),
    ] = None,
    go_on: Annotated[bool, typer.Option("--continue", help="The conflict is resolved; go on.")] = False,
    skip: Annotated[bool, typer.Option("--skip", help="Leave the patch that waits out of the lane.")] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Give up; the project stays as it was.")] = False,
    again: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="ID", help="Ask again about a patch that was skipped; may be repeated."),
    ] = None,
    status: Annotated[bool, typer.Option("--status", help="How far it is, and what waits.")] = False,
    json: Json = False,
) -> None:
    """Carry the series to a base: one pass in memory, then its lane is written; other lanes stay as they are.

    Patches that go on move by themselves; those that upstream has leave the lane, with a record. A conflict stops it
    (exit code 1) with a work tree of its own under the cache; no checkout is touched.
    """
    from patchq.commands.grounds import open_forecast
    from patchq.engine import rebasing
    from patchq.errors import InputError
    from patchq.ui.output import print_json
    from patchq.upstream.store import Store

    if sum([onto is not None, go_on, skip, abort, status]) != 1:
        raise InputError(
            "name one of --onto BASE, --continue, --skip, --abort and --status.",
            "Begin with patchq rebase --onto BASE.",
        )
    if again and onto is None:
        raise InputError("--again goes with --onto BASE.", "Name the base that the patch was skipped on.")
    with contextlib.ExitStack() as held:
        project = None
        if status or abort:
            series = load(context)
        else:
            project, series = held.enter_context(editing(context, "rebasing"))
        journal = held.enter_context(rebasing.rebasing(series.root))
        asked = tuple(series.find(name).id for name in again or ())
        if status and journal.read() is None:
            _say_none(json=json)
            return
        state = rebasing.begun(journal, series.base(onto)[0] if onto else None, asked)
        if abort:
            rebasing.abort(journal, state)
            _say_aborted(state.onto, json=json)
            return
        store = Store()
        with journal.objects(store.objects_of(series.lock.bases.values())) as objects:
            opened = open_forecast(series, store, objects, [state.onto])
            if project is None:
                done = rebasing.look(series, opened, objects, state)
            else:
                if go_on or skip:
                    rebasing.settle(project, series, opened, objects, journal, state, skip=skip)
                done = rebasing.advance(project, series, opened, objects, journal, state)
    document = {"base": state.onto, **rebasing.describe(done, journal)}
    if json:
        print_json(document)
    else:
        _print(document, done, journal, finished=not status and done.pending is None)
    if done.pending is not None and not status:
        raise typer.Exit(1)


def _say_none(*, json: bool) -> None:
    from patchq.ui.output import print_json, print_line

    if json:
        print_json({"base": None, "patches": [], "pending": None, "waiting": []})
    else:
        print_line("no rebase is under way")


def _say_aborted(base: str, *, json: bool) -> None:
    from patchq.ui.output import print_json, print_line

    if json:
        print_json({"base": base, "patches": [], "pending": None, "waiting": [], "aborted": True})
    else:
        print_line(f"the rebase onto {base} is given up; conflicts resolved in it are kept for the next one")


def _print(document: dict[str, Any], done: Pass, journal: Journal, *, finished: bool) -> None:
    from patchq.ui.output import print_line, print_table

    rows = [
        [
            o.id,
            o.move.verdict,
            "carried" if o.move.carried else "left",
            o.difference.words if o.difference else o.move.reason,
        ]
        for o in done.outcomes
    ]
    print_table(["patch", "verdict", "lane", "difference, or why it left"], rows)
    for outcome in done.outcomes:
        for edits in outcome.difference.edits if outcome.difference else ():
            print_line(f"{outcome.id}: {edits.file}: edits that are others than in {outcome.move.lane}:")
            for mark, lines in (("was", edits.before), ("is ", edits.after)):
                for line in lines[:SHOWN]:
                    print_line(f"  {mark}  {line}")
                if len(lines) > SHOWN:
                    print_line(f"  {mark}  … and {len(lines) - SHOWN} lines more")
    carried = len(done.bodies)
    if done.pending is None:
        what = "is written" if finished else "can be written: patchq rebase --continue"
        print_line(
            f"the lane of {document['base']} {what}: {carried} patches carried, "
            f"{len(rows) - carried} left, tree {done.tree}"
        )
        return
    pending = done.pending
    print_line(f"{pending.id} does not go on by itself: {pending.verdict}")
    for trouble in pending.placed.troubles:
        print_line(f"  {trouble.file} {trouble.reason}")
    for old, new in pending.placed.moved:
        print_line(f"  {old} is {new} here")
    print_line(f"resolve it in {journal.work}")
    print_line(
        f"  git show :1:FILE is what the patch was made on, :2:FILE {document['base']} with the patches before it, "
        ":3:FILE what the patch makes of it"
    )
    print_line("then: git add (or git rm) there, and patchq rebase --continue; or --skip, or --abort")
    if done.waiting:
        print_line(f"after it: {', '.join(done.waiting)}")
