"""patchq log and undo: what was done to the series and to checkouts, and taking it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from patchq.commands.context import load, root_of
from patchq.commands.options import Json

if TYPE_CHECKING:
    from patchq.engine.log import Entry
    from patchq.series.series import Series


def log(
    context: typer.Context,
    limit: Annotated[
        int, typer.Option("-n", "--limit", min=1, metavar="N", help="How many, newest first.")
    ] = 20,
    json: Json = False,
) -> None:
    """Every command that changed the series or a checkout, newest first; each can be undone.

    They are kept under the cache, by the project's path: the last 500, with the files as they were before and after.
    """
    from patchq.engine.log import Log, in_effect
    from patchq.ui.output import print_json, print_line, print_table

    series = load(context)
    entries = Log(series.root).entries()
    undone = in_effect(entries)
    shown = entries[::-1][:limit]
    if json:
        print_json(
            {
                "entries": [_plain(e, undone[e.number]) for e in shown],
                "patches": [{"id": p.id, "title": p.title} for p in series.patches],
            }
        )
        return
    if not shown:
        print_line("nothing was done yet")
        return
    rows = []
    for entry in shown:
        state = f"undone by {undone[entry.number]}" if undone[entry.number] is not None else ""
        rows.append([str(entry.number), entry.when[:19].replace("T", " "), entry.what, state])
    print_table(["entry", "when (UTC)", "command", "state"], rows)


def undo(
    context: typer.Context,
    number: Annotated[
        Optional[int],  # noqa: UP045
        typer.Argument(
            metavar="[ENTRY]", help="An entry of patchq log; the last that stands where none is named."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Take a command back: files of the series and checkouts as they were before it.

    Again takes back the one before. An undo is an entry itself: name it to have its command again. Where a file or a
    checkout has changed since, it is named and nothing is done.
    """
    from patchq.engine.project import changing
    from patchq.engine.undo import undo as take_back
    from patchq.series.series import load_series
    from patchq.ui.output import print_json, print_line

    with changing(root_of(context), "undoing") as project:
        done = take_back(project, number)
        series: Series = load_series(project.root)
    if json:
        print_json(
            {
                "undone": _plain(done.target, done.entry.number),
                "entry": done.entry.number,
                "files": list(done.entry.paths),
                "patches": [{"id": p.id, "title": p.title} for p in series.patches],
            }
        )
        return
    again = f"patchq undo {done.entry.number}"
    count = len(done.entry.files)
    change = done.target.checkout
    if change is not None and change.made:
        again = f"patchq apply --create {change.path}"
        print_line(f"undone: {done.target.what}: {change.path} taken away; to have it again: {again}")
        return
    where = f", {change.path} put back" if change else ""
    print_line(f"undone: {done.target.what}: {count} files put back{where}; to have it again: {again}")


def _plain(entry: Entry, undone_by: int | None) -> dict[str, Any]:
    """An entry as plain data, without the contents of its files."""
    patches = sorted({p.split("/")[1] for p in entry.paths if p.count("/") > 1})
    return {
        "entry": entry.number,
        "command": entry.what,
        "when": entry.when,
        "undoes": entry.undoes,
        "undone_by": undone_by,
        "checkout": entry.checkout.path if entry.checkout else None,
        "files": list(entry.paths),
        "patches": [{"id": p} for p in patches],
    }
