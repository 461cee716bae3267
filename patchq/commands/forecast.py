"""patchq forecast: what becomes of each patch on each base."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import Json, PatchIds, SomeBases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.engine.verdict import Cell
    from patchq.series.patch import PatchMeta
    from patchq.ui.output import Reason

Matrix = dict[str, dict[str, "Cell"]]


def forecast(
    context: typer.Context,
    ids: PatchIds = None,
    bases: SomeBases = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Every base whose tree is known; those not in the store are fetched."),
    ] = False,
    watch: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            metavar="REF",
            help="A base, or a branch, tag or commit of a git source: exit 1 where a verdict is worse there.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Tell what becomes of each patch on each base, each with what it depends on; no checkout is touched.

    Without --base and --all: every base that is in the store.
    With --watch, REF is compared with the base that --base names; without --base, with the base before it where REF
    is a base, else with the base from whose source it is fetched.
    """
    from patchq.commands.grounds import choose_bases, open_forecast, watched
    from patchq.engine.verdict import is_worse
    from patchq.ui.output import print_json, print_line
    from patchq.upstream.store import Store

    series = load(context)
    store = Store()
    patches = [series.find(name) for name in ids] if ids else list(series.patches)
    begun = [p.id for p in series.patches if not series.has_body(p.id)]
    patches = [p for p in series.patches if p in patches and (ids or p.id not in begun)]
    with store.objects_of(series.lock.bases.values()) as objects:
        if watch is None:
            chosen = choose_bases(series, store, bases or (), every=all_)
            matrix = _matrix(open_forecast(series, store, objects, chosen), patches, chosen)
            watching = None
        else:
            named = choose_bases(series, store, bases, every=False) if bases else []
            ref, against, ground = watched(series, objects, named, watch)
            chosen = list(dict.fromkeys([against, *named, ref]))
            opened = open_forecast(series, store, objects, chosen, [ground] if ground else [])
            matrix = _matrix(opened, patches, chosen)
            worse = [
                {"id": p, "was": cells[against].verdict, "now": cells[ref].verdict}
                for p, cells in matrix.items()
                if is_worse(cells[ref].verdict, cells[against].verdict)
            ]
            watching = {"ref": ref, "against": against, "worse": worse}
    titles = {p.id: p.title for p in patches}
    if json:
        document: dict[str, Any] = {
            "bases": chosen,
            "patches": [
                {"id": p, "title": titles[p], "cells": {b: c.as_dict() for b, c in cells.items()}}
                for p, cells in matrix.items()
            ],
        }
        print_json(document | ({"watch": watching} if watching else {}))
    else:
        _print(matrix, chosen, watching)
        if begun and not ids:
            print_line(f"left out, as no lane has a body of it yet: {', '.join(begun)}")
    if watching and watching["worse"]:
        raise typer.Exit(1)


def _matrix(opened: Any, patches: list[PatchMeta], bases: list[str]) -> Matrix:
    return {p.id: {base: opened.cell(p, base) for base in bases} for p in patches}


def _print(matrix: Matrix, bases: list[str], watching: dict[str, Any] | None) -> None:
    from patchq.ui.output import print_line, print_matrix, print_reasons

    print_matrix("patch", bases, [(p, [c.verdict for c in cells.values()]) for p, cells in matrix.items()])
    print_reasons(
        [(p, list(_reasons(cells))) for p, cells in matrix.items()],
        "all of it: patchq forecast ID, or --json",
    )
    if watching is not None:
        for row in watching["worse"]:
            print_line(
                f"{row['id']} got worse: {row['was']} on {watching['against']}, {row['now']} on {watching['ref']}"
            )
        if not watching["worse"]:
            print_line(f"no verdict on {watching['ref']} is worse than on {watching['against']}")


def _reasons(cells: dict[str, Cell]) -> Iterator[Reason]:
    """For each base where there is something to say: the base, the verdict, and why."""
    for base, cell in cells.items():
        if cell.verdict != "clean" or cell.disagreement:
            yield base, cell.verdict, cell.detail
        if cell.disagreement:
            yield base, "disagreement", cell.disagreement
