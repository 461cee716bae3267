"""What the commands that edit the series share: the bench they work at, writing the result, and saying what it is."""

from __future__ import annotations

import contextlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.commands.context import editing
from patchq.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer

    from patchq.engine.draft import Bench, Draft
    from patchq.engine.editing import Edited
    from patchq.engine.project import Project
    from patchq.series.series import Series


@dataclass(frozen=True)
class Desk:
    """What an edit works with: the project under its lock, its series, the same in memory, and where trees are made."""

    project: Project
    series: Series
    draft: Draft
    bench: Bench


@contextlib.contextmanager
def at_desk(context: typer.Context, what: str, *others: Path) -> Iterator[Desk]:
    """Open the project for an edit.

    Args:
        context: the call.
        what: what is being done, for whoever is kept waiting.
        others: object directories of repositories that are read as well.

    Raises:
        EnvironmentLacksError: another patchq is changing it.
        InputError: something in it is wrong.
    """
    from patchq.commands.lanes import open_bench
    from patchq.engine.draft import read_draft
    from patchq.upstream.store import Store

    with editing(context, what) as (project, series), open_bench(series, Store(), *others) as bench:
        yield Desk(project, series, read_draft(series), bench)


def finish(
    desk: Desk,
    edited: Edited,
    what: str,
    *,
    dry_run: bool,
    json: bool,
    made: tuple[str, ...] = (),
) -> None:
    """Write what a series has become, all at once, and print it.

    Args:
        desk: where it was edited.
        edited: what it has become.
        what: the command, as a person would type it; the log has it.
        dry_run: whether to write nothing.
        json: whether to print the document.
        made: patches that are new.

    Raises:
        InputError: it would not be a series that can be read again; nothing is written.
    """
    from patchq.engine.draft import differences
    from patchq.ui.output import print_json, print_line

    series = _read_back(edited.draft)
    files = differences(desk.draft, edited.draft)
    entry = None if dry_run else desk.project.commit(what, files)
    document: dict[str, Any] = {
        "command": what,
        "entry": entry.number if entry else None,
        "changed": bool(files) and not dry_run,
        "patches": _patches(series, edited, made),
        "lanes": _lanes(desk.draft, edited.draft),
        "files": sorted(files),
        "notes": list(edited.notes),
    }
    if json:
        print_json(document)
        return
    for patch in document["patches"]:
        if patch["was"] is not None:
            print_line(f"{patch['was']} is now {patch['id']}")
        if patch["new"]:
            print_line(f"{patch['id']}: {patch['title']}")
            if patch["unfilled"]:
                print_line(f"  fill in {', '.join(patch['unfilled'])} in series/{patch['id']}/patch.yaml")
    for lane in document["lanes"]:
        state = "as it was" if lane["untouched"] else f"{lane['patches']} patches, tree {lane['tree']}"
        print_line(f"lane {lane['base']}: {state}")
    for note in edited.notes:
        print_line(note)
    if not files:
        print_line("nothing to change")
    elif entry is None:
        print_line(f"{len(files)} files would change; nothing was written")
    else:
        print_line(f"{len(files)} files changed; to take it back: patchq undo")


def _read_back(draft: Draft) -> Series:
    """The series as the next command would read it.

    Raises:
        InputError: it would not read it.
    """
    from patchq.engine.draft import META
    from patchq.series.lock import format_lock
    from patchq.series.series import LOCK_NAME, SERIES_NAME, load_series

    with tempfile.TemporaryDirectory(prefix="patchq-") as name:
        root = Path(name)
        (root / SERIES_NAME).mkdir()
        (root / LOCK_NAME).write_text(format_lock(draft.lock), encoding="utf-8")
        for patch, files in draft.patches.items():
            (root / SERIES_NAME / patch).mkdir()
            (root / SERIES_NAME / patch / META).write_bytes(files[META])
        try:
            return load_series(root)
        except InputError as error:
            raise InputError(
                f"it would leave a series that does not hold: {error.message}", error.remedy
            ) from None


def _patches(series: Series, edited: Edited, made: tuple[str, ...]) -> list[dict[str, Any]]:
    from patchq.series.skeleton import unfilled

    was = {new: old for old, new in edited.ids.items()}
    return [
        {
            "id": p.id,
            "title": p.title,
            "was": was.get(p.id),
            "new": p.id in made,
            "unfilled": list(unfilled(p)) if p.id in made else [],
        }
        for p in series.patches
    ]


def _lanes(old: Draft, new: Draft) -> list[dict[str, Any]]:
    rows = []
    for base in dict.fromkeys((*old.lock.lanes, *new.lock.lanes)):
        before, after = old.lock.lanes.get(base, ()), new.lock.lanes.get(base, ())
        same = [(s.sha256, s.tree) for s in before] == [(s.sha256, s.tree) for s in after]
        tree = after[-1].tree if after else None
        rows.append({"base": base, "tree": tree, "patches": len(after), "untouched": same})
    return rows
