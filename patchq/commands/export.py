"""patchq export: hand the patches on."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from patchq.commands.context import group, load
from patchq.commands.export_pr import pr
from patchq.commands.options import BaseName, Json, Only, Upto

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from patchq.engine.lane import Lane
    from patchq.engine.stack import Stack
    from patchq.git.objects import Objects
    from patchq.series.series import Series

app = group("Hand the patches on: branches, overlay, quilt, mailbox.", no_args_is_help=True)
app.command(short_help="Make a branch for each patch in your clone.")(pr)
OutDirectory = Annotated[
    Path, typer.Option("--out", metavar="DIR", help="Where to write; empty, or written by this before.")
]


@app.command(short_help="Write the changed files alone, with an install.py.")
def overlay(
    context: typer.Context,
    out: OutDirectory,
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    tests: Annotated[bool, typer.Option("--tests", help="Have the patches' test files beside them.")] = False,
    json: Json = False,
) -> None:
    """Write the changed files of the package alone, with an install.py that puts them over an installed one."""
    from patchq.export.directory import write_directory
    from patchq.export.overlay import make_overlay
    from patchq.text import listed
    from patchq.ui.output import print_json, print_line

    series = load(context)
    with _stacked(series, base, upto, only or ()) as (objects, lane, stack):
        made = make_overlay(objects, lane, series.lock.bases[lane.base], stack, tests=tests)
        write_directory(out, made.files)
    if json:
        print_json(
            {
                **_document(lane, stack),
                "version": made.manifest["version"] or None,
                "files": list(made.paths),
                "left_out": list(made.left_out),
            }
        )
        return
    of = f"{made.manifest['package']} {made.manifest['version']}".rstrip()
    print_line(f"{out}: {len(made.paths)} files of {of} with {len(stack.ids)} patches")
    if made.left_out:
        print_line(f"left out, as an installed package has nothing of it: {listed(made.left_out)}")
    print_line(f"put them on: python {out}/install.py   (--check, --undo, --mounts DIR)")


@app.command()
def quilt(
    context: typer.Context,
    out: OutDirectory,
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """Write the patches as a directory that quilt takes."""
    from patchq.export.bodies import bodies_of, quilt_of
    from patchq.export.directory import write_directory
    from patchq.ui.output import print_json, print_line

    series = load(context)
    with _stacked(series, base, upto, only or ()) as (objects, lane, stack):
        files = quilt_of(bodies_of(objects, lane, stack))
        write_directory(out, files)
    if json:
        print_json({**_document(lane, stack), "files": list(files)})
        return
    print_line(f"{out}: {len(stack.ids)} patches for {lane.base}")
    print_line(f"in a tree of {lane.base}: QUILT_PATCHES={out.absolute()} quilt push -a --fuzz=0")


@app.command()
def mbox(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The mailbox to write.")],
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """Write the patches as one mailbox that git am takes."""
    from patchq.errors import InputError
    from patchq.export.bodies import bodies_of, mbox_of
    from patchq.export.directory import write_file
    from patchq.series.series import SERIES_NAME
    from patchq.ui.output import print_json, print_line

    series = load(context)
    if (series.root / SERIES_NAME) in out.resolve().parents:
        raise InputError(f"{out} is among the series' own files.", "Name a file elsewhere with --out.")
    with _stacked(series, base, upto, only or ()) as (objects, lane, stack):
        data = mbox_of(bodies_of(objects, lane, stack))
        write_file(out, data, b"From ")
    if json:
        print_json({**_document(lane, stack), "files": [str(out)]})
        return
    print_line(f"{out}: {len(stack.ids)} patches for {lane.base}, giving tree {stack.tree}")
    print_line(f"in a checkout of {lane.base}: git am --keep-non-patch --keep-cr {out}")


@contextlib.contextmanager
def _stacked(
    series: Series, base: str | None, upto: str | None, only: Sequence[str]
) -> Iterator[tuple[Objects, Lane, Stack]]:
    """The patches that a person asks for, built on their base."""
    from patchq.commands.lanes import open_lane
    from patchq.engine.lane import choose, substack
    from patchq.upstream.store import Store

    store = Store()
    with store.objects() as objects:
        lane = open_lane(series, store, objects, series.base(base)[0])
        yield objects, lane, substack(objects, lane, choose(series.on(lane.base), lane, upto, only))


def _document(lane: Lane, stack: Stack) -> dict[str, object]:
    return {"base": lane.base, "tree": stack.tree, "patches": [{"id": i} for i in stack.ids]}
