"""patchq bundle: tests for a machine with a card and without network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, Json, PatchIds, Stack, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.series.patch import Gate
    from patchq.testing.plan import Mode


def bundle(
    context: typer.Context,
    ids: PatchIds = None,
    gate: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="G", help="The level; may be repeated: gpu, emulated, native."),
    ] = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new directory.")] = Path("bundle"),
    base: BaseName = None,
    stack: Stack = False,
    prove: Annotated[bool, typer.Option("--prove", help="Also without the production files.")] = False,
    target: Target = None,
    split: Annotated[
        str | None, typer.Option(metavar="SIZE", help="In parts no larger than this, such as 60M.")
    ] = None,
    python_version: Annotated[
        str | None, typer.Option(metavar="X.Y", help="The Python there; the one here by default.")
    ] = None,
    have: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Distributions that are there already, one a line, as pip freeze gives them."
        ),
    ] = None,
    no_wheels: Annotated[
        bool, typer.Option("--no-wheels", help="Without any wheel: all of it is there already.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a directory that holds patches' tests and all they need; bash DIR/run there needs only Python and torch."""
    from patchq.commands.lanes import open_lane
    from patchq.gpu.bundle import check_out, write_bundle
    from patchq.gpu.wheels import fetch_wheels, without
    from patchq.testing.plan import plan_tasks
    from patchq.ui.output import print_json, print_line, print_table
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store
    from patchq.vllm.device import ensure_kit, pinned_distributions

    gates, lines = _gates(gate), _lines(have)
    python = _python(python_version)
    size = _bytes(split)
    check_out(out.absolute(), size)
    series = load(context)
    store, progress = Store(), make_progress()
    with store.objects() as objects:
        lane = open_lane(series, store, objects, series.base(base)[0])
        series = series.on(lane.base)
        mode: Mode = "stack" if stack else "alone"
        tasks = [
            task
            for level in gates
            for task in plan_tasks(series, objects, lane, ids or (), mode=mode, gate=level, target=target)
            if task.own.tests
        ]
        _refuse_none(tasks, gates)
        tree = lane.stack.base_tree
        kit = ensure_kit(lane.base, series.lock.bases[lane.base], objects, tree, progress)
        _refuse_plain(kit.compiled, gates)
        pins = () if no_wheels else pinned_distributions(objects, tree, python, progress)
        wheels = fetch_wheels(without(pins, lines), python, progress)
        written = write_bundle(
            objects,
            lane,
            tasks,
            kit,
            wheels,
            out.absolute(),
            mode=mode,
            prove=prove,
            split=size,
            progress=progress,
        )
    if json:
        print_json(
            {
                "base": lane.base,
                "id": written.id,
                "out": str(out),
                "parts": [str(p) for p in written.parts],
                "bytes": written.bytes,
                "results": [
                    {
                        "id": r["patch"],
                        "base": lane.base,
                        **{k: r[k] for k in ("tree", "gate", "target", "role")},
                    }
                    for r in written.runs
                ],
            }
        )
        return
    print_table(
        ["patch", "gate", "target", "run", "tree"],
        [[r["patch"], r["gate"], r["target"], r["role"], r["tree"][:12]] for r in written.runs],
    )
    in_parts = f" in {len(written.parts)} parts" if size else ""
    print_line(f"{out}: bundle {written.id}, {written.bytes / 1e6:.0f} MB{in_parts}")
    print_line(f"there: bash {out.name}/run; then here: patchq evidence import RESULT")


def _gates(given: list[str] | None) -> list[Gate]:
    from patchq.errors import InputError
    from patchq.series.patch import GATES

    for name in given or ():
        if name not in GATES:
            raise InputError(f"there is no gate {name!r}.", f"Use one of: {', '.join(GATES)}.")
    if not given:
        raise InputError("a bundle is for a gate.", "Name it with --gate, such as --gate gpu.")
    return [gate for gate in GATES if gate in given]


def _python(given: str | None) -> str:
    import sys

    from patchq.errors import InputError

    version = given or f"{sys.version_info.major}.{sys.version_info.minor}"
    if not re.fullmatch(r"3\.\d{1,2}", version):
        raise InputError(f"{version!r} is not a version of Python.", "Give two numbers, such as 3.12.")
    return version


def _bytes(text: str | None) -> int | None:
    from patchq.errors import InputError

    if text is None:
        return None
    found = re.fullmatch(r"(\d+)([KMG]?)B?", text, re.IGNORECASE)
    if not found:
        raise InputError(f"{text!r} is not a size.", "Give a number with K, M or G, such as 60M.")
    return int(found[1]) * {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}[found[2].upper()]


def _lines(file: Path | None) -> list[str]:
    from patchq.errors import InputError

    if file is None:
        return []
    try:
        return [line for line in file.read_text("utf-8").splitlines() if not line.startswith("#")]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{file} cannot be read: {error}.", "Name a file with one distribution a line."
        ) from None


def _refuse_none(tasks: Sequence[object], gates: Sequence[str]) -> None:
    from patchq.errors import InputError

    if not tasks:
        raise InputError(
            f"no patch that was asked for has tests at the gate {', '.join(gates)}.",
            "patchq test shows which gates there are.",
        )


def _refuse_plain(compiled: bool, gates: Sequence[str]) -> None:
    """Extensions for cards are no place for tests that are meant to run without one."""
    from patchq.errors import InputError

    plain = [g for g in gates if g in {"cpu", "compile"}]
    if compiled and plain:
        raise InputError(
            f"the gate {plain[0]} needs no card, and so no bundle.",
            f"Run it here: patchq test --gate {plain[0]}.",
        )
