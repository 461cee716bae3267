"""patchq verify: is this tree, or what this interpreter imports, the patched one?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, Json, MaybeCheckoutPath, Only, Upto

if TYPE_CHECKING:
    from patchq.engine.installed import Installed, Wanted
    from patchq.series.series import Series

SHOWN = 20
"""Files that no patch touches, in a table for a person."""


def verify(
    context: typer.Context,
    path: MaybeCheckoutPath = None,
    python: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="EXE", help="What this interpreter imports as vllm, from here, instead of a checkout."
        ),
    ] = None,
    script: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="FILE",
            help="Write a script that proves the same where there is no patchq, as in a container.",
        ),
    ] = None,
    base: BaseName = None,
    upto: Upto = None,
    only: Only = None,
    json: Json = False,
) -> None:
    """Prove that a checkout, or the vllm that an interpreter imports, is the base plus the patches; name every file that is not."""
    from patchq.errors import InputError

    if [path, python, script].count(None) != 2:  # noqa: PLR2004
        raise InputError(
            "verify takes a checkout, or --python, or --script.",
            "Name one: patchq verify CHECKOUT, or patchq verify --python EXE.",
        )
    series = load(context)
    if path is not None:
        _verify_checkout(series, path, base, upto, only or (), json=json)
        return
    choices = _wanted(series, base, upto, only or ())
    if script is not None:
        _write_script(script, choices[0], json=json)
    elif python is not None:
        _verify_python(python, choices, json=json)


def _verify_checkout(
    series: Series,
    path: Path,
    base: str | None,
    upto: str | None,
    only: list[str] | tuple[str, ...],
    *,
    json: bool,
) -> None:
    from patchq.commands.lanes import open_lane
    from patchq.engine.journal import working_on
    from patchq.engine.lane import choose
    from patchq.engine.verify import best_lane, verify_checkout
    from patchq.git.checkout import reading_head
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.upstream.store import Store

    store = Store()
    with (
        working_on(path, "verifying") as checkout,
        reading_head(checkout) as head,
        store.objects(checkout.object_dir) as objects,
    ):
        names = [series.base(base)[0]] if base else list(series.lock.lanes)
        lanes = (open_lane(series, store, objects, name) for name in names or [series.base()[0]])
        lane = best_lane(objects, head(), lanes)
        ids = choose(series, lane, upto, only)
        found = verify_checkout(checkout, head(), objects, lane, ids)
    if json:
        print_json(
            {
                "ok": not found.wrong,
                "base": lane.base,
                "match": found.match,
                "tree": found.tree,
                "expected": found.expected,
                "patches": [{"id": i} for i in ids],
                "files": [{"path": p, "problem": w} for p, w in found.wrong],
            },
        )
    elif found.wrong:
        print_table(["file", "problem"], [[p, w] for p, w in found.wrong])
        print_line(f"{path}: not {lane.base} with {len(ids)} patches: {len(found.wrong)} files differ")
    else:
        scope = (
            "by every tracked file"
            if found.match == "tree"
            else f"by the {found.checked} files that the patches touch"
        )
        print_line(f"{path}: ok, {scope}: {lane.base} with {len(ids)} patches, tree {found.tree}")
    if found.wrong:
        raise typer.Exit(1)


def _wanted(
    series: Series, base: str | None, upto: str | None, only: list[str] | tuple[str, ...]
) -> list[Wanted]:
    """What the package may be: the lane of the base that is named, else every lane, the pinned one first."""
    from patchq.commands.lanes import open_lane
    from patchq.engine.installed import wanted_package
    from patchq.engine.lane import choose
    from patchq.upstream.store import Store
    from patchq.vllm import PROJECT
    from patchq.vllm.layout import release_of

    store = Store()
    pinned = series.base(base)[0]
    names = [pinned] if base else sorted(series.lock.lanes, key=lambda name: name != pinned) or [pinned]
    with store.objects() as objects:
        lanes = [open_lane(series, store, objects, name) for name in names]
        return [
            wanted_package(
                objects,
                lane,
                choose(series, lane, upto, only),
                PROJECT,
                release_of(lane.base, series.lock.bases[lane.base]),
            )
            for lane in lanes
        ]


def _write_script(path: Path, wanted: Wanted, *, json: bool) -> None:
    from patchq.engine.installed import SCRIPT_MARK, script_of
    from patchq.export.directory import write_file
    from patchq.ui.output import print_json, print_line

    write_file(path, script_of(wanted).encode(), SCRIPT_MARK)
    if json:
        print_json({"ok": True, "base": wanted.base, "tree": wanted.tree, "script": str(path), "files": []})
    else:
        print_line(
            f"{path}: proves {wanted.base} with {len(wanted.ids)} patches; run it with the interpreter in question"
        )


def _verify_python(python: Path, choices: list[Wanted], *, json: bool) -> None:
    from patchq.engine.installed import examine_python
    from patchq.ui.output import print_json

    found = examine_python(python, choices)
    wanted = found.wanted
    if json:
        print_json(
            {
                "ok": found.ok,
                "base": wanted.base,
                "tree": wanted.tree if found.ok else "",
                "expected": wanted.tree,
                "python": found.python,
                "imported": found.places[0]["path"] if found.places else "",
                "places": list(found.places),
                "distributions": list(found.distributions),
                "patches": [{"id": i} for i in wanted.ids],
                "files": [
                    {"path": p, "problem": w, "patches": list(wanted.by.get(p, ()))} for p, w in found.wrong
                ],
                "checked": list(found.checked),
                "not_installed": list(found.absent),
                "notes": [{"path": p, "note": n} for p, n in found.notes],
            },
        )
    else:
        _say(python, found)
    if not found.ok:
        raise typer.Exit(1)


def _say(python: Path, found: Installed) -> None:
    from patchq.ui.output import print_line, print_table

    wanted = found.wanted
    shown = [(path, problem) for path, problem in found.wrong if path not in wanted.others]
    shown += [pair for pair in found.wrong if pair not in shown][:SHOWN]
    if found.wrong and found.places:
        print_table(
            ["file", "problem", "patches"], [[p, w, " ".join(wanted.by.get(p, ()))] for p, w in shown]
        )
        if len(shown) < len(found.wrong):
            print_line(f"… and {len(found.wrong) - len(shown)} more that no patch touches (--json lists all)")
    for path, note in found.notes:
        print_line(f"{path}: {note}")
    if found.absent:
        print_line(
            f"{len(found.absent)} files of the patches are not part of an install: {', '.join(found.absent)}"
        )
    if not found.places:
        print_line(f"{python} imports no {wanted.package}")
        return
    first, *rest = found.places
    for place in rest:
        patched = "patched" if place["patched"] else "not patched"
        print_line(
            f"{first['path']} ({first['how']}) hides {place['path']} ({place['how']}), which is {patched}"
        )
    if len(found.distributions) > 1:
        known = ", ".join(f"{d['version']} in {d['path']}" for d in found.distributions)
        print_line(f"{len(found.distributions)} distributions of {wanted.package} are installed: {known}")
    where = f"{first['path']} ({first['how']})"
    what = f"{wanted.base} with {len(wanted.ids)} patches"
    if found.ok:
        print_line(
            f"{where}: ok, by {len(found.checked)} files of the patches and {len(wanted.others)} others: {what}, tree {wanted.tree}"
        )
    else:
        print_line(f"{where}: not {what}: {len(found.wrong)} files are wrong")
