"""patchq report: a page of it all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import Json, PatchIds, SomeBases

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.overview import Overview
    from patchq.series.series import Series


def report(
    context: typer.Context,
    ids: PatchIds = None,
    bases: SomeBases = None,
    html: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--html", metavar="OUT", help="Write one HTML file that needs nothing else."),
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown on stdout.")] = False,
    json: Json = False,
) -> None:
    """Show what is carried, why, what is proved and what the next release breaks, on one page.

    Every base whose tree is known is on it; --base chooses some. Without --html and --json, Markdown on stdout.
    """
    from patchq.errors import InputError
    from patchq.export.directory import write_file
    from patchq.ui.output import print_json, print_text
    from patchq.ui.report import REPORT_MARK, render_html, render_markdown

    if sum([html is not None, markdown, json]) > 1 and not (html and json):
        raise InputError("--markdown and --html or --json do not go together.", "Ask for one at a time.")
    overview = gathered(load(context), bases or (), ids)
    if html is not None:
        page = render_html(overview).encode()
        write_file(html, page, REPORT_MARK)
        if not json:
            kilobytes = -(-len(page) // 1000)
            print_text(
                f"{html}: {len(overview.patches)} patches, {len(overview.chosen)} bases, {kilobytes:,} kB\n"
            )
    if json:
        print_json(overview.as_dict() | ({"files": [str(html)]} if html else {}))
    elif html is None:
        print_text(render_markdown(overview))


def gathered(series: Series, bases: Sequence[str], ids: Sequence[str] | None = None) -> Overview:
    """The overview of a series over some bases; all that are known where none is named."""
    from patchq.commands.grounds import choose_bases, open_forecast
    from patchq.engine.overview import gather
    from patchq.upstream.store import Store

    store = Store()
    wanted = [series.find(name).id for name in ids] if ids else None
    with store.objects_of(series.lock.bases.values()) as objects:
        chosen = choose_bases(series, store, bases, every=not bases)
        opened = open_forecast(series, store, objects, chosen)
        return gather(series, objects, opened, chosen, store.refs(), wanted)
