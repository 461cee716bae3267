"""patchq build: from a patched checkout to an interpreter that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import typer

from patchq.commands.context import load, on_checkout
from patchq.commands.options import BaseName, CheckoutPath, Json

if TYPE_CHECKING:
    from patchq.engine.installed import Installed
    from patchq.engine.lane import Lane
    from patchq.engine.locate import Standing
    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects
    from patchq.series.series import Series
    from patchq.vllm.build import Ground, Plan

Device = Literal["empty", "cpu", "cuda"]


def build(
    context: typer.Context,
    path: CheckoutPath,
    device: Annotated[
        Optional[Device],  # noqa: UP045
        typer.Option(help="What it is to run on; cuda where this machine has an NVIDIA driver, else cpu."),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what must be rebuilt and why, and do nothing.")
    ] = False,
    python: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            metavar="EXE", help="Install for this interpreter, instead of in an environment of its own."
        ),
    ] = None,
    no_deps: Annotated[bool, typer.Option("--no-deps", help="Install nothing beside it.")] = False,
    compile_: Annotated[
        bool, typer.Option("--compile", help="Compile even where the release's extensions fit.")
    ] = False,
    base: BaseName = None,
    json: Json = False,
) -> None:
    """Rebuild what the patches of a checkout oblige to, and install it: compiled parts they leave alone come from the release."""
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store
    from patchq.vllm.build import carry_out, own_environment, plan_build

    series = load(context)
    store = Store()
    progress = make_progress()
    with on_checkout(series, store, path, "building", base) as (checkout, objects, standing):
        lane = standing.lane
        ground = _ground(series, objects, checkout, standing, device or _device_here())
        decided = plan_build(objects, ground, own_build=compile_, dependencies=not no_deps)
        record = found = None
        if not (plan or decided.refused):
            exe = python or own_environment(checkout, ground.device, progress)
            record = carry_out(objects, checkout, decided, exe, progress)
            found = _look(objects, lane, ground, exe)
    imported = found.places[0]["path"] if found is not None and found.places else ""
    right = found is None or Path(imported) == checkout.top / "vllm"
    document = {
        "ok": right and not decided.refused,
        "class": decided.kind,
        "base": ground.base,
        "tree": ground.tree,
        "device": ground.device,
        "patches": [{"id": i} for i in ground.patches],
        "steps": [
            {"name": s.name, "what": s.what, "why": s.why, "files": list(s.files), "done": record is not None}
            for s in decided.steps
        ],
        "refused": [{"path": t.path, "why": t.why} for t in decided.refused],
        "files": [
            {"path": t.path, "class": t.kind, "why": t.why, "patches": _who(lane, t.path)}
            for t in decided.touched
        ],
        "python": str(exe) if record is not None else "",
        "imported": imported,
        "built": record or {},
    }
    _show(document, path, lane, decided, found, json=json)
    if not document["ok"]:
        raise typer.Exit(1)


def _ground(
    series: Series, objects: Objects, checkout: Checkout, standing: Standing, device: Device
) -> Ground:
    """What the checkout is, and every file of it that is not as in the base, committed or not."""
    from patchq.git.checkout import untracked_files
    from patchq.git.commits import read_commit
    from patchq.git.trees import diff_trees
    from patchq.vllm.build import Ground, changed_paths
    from patchq.vllm.layout import release_of

    head, lane = standing.head, standing.lane
    tree = read_commit(objects, head.commit).tree
    committed = [c.path for c in diff_trees(objects, lane.stack.base_tree, tree)]
    return Ground(
        lane.base,
        release_of(lane.base, series.lock.bases[lane.base]),
        lane.stack.base_tree,
        tree,
        standing.position.ids,
        changed_paths([committed, head.dirty, head.unmerged, untracked_files(checkout)]),
        device,
    )


def _device_here() -> Device:
    return "cuda" if Path("/dev/nvidiactl").exists() else "cpu"


def _look(objects: Objects, lane: Lane, ground: Ground, python: Path) -> Installed:
    from patchq.engine.installed import examine_python, wanted_package
    from patchq.vllm import PROJECT

    return examine_python(python, [wanted_package(objects, lane, ground.patches, PROJECT, ground.version)])


def _who(lane: Lane, path: str) -> list[str]:
    return [step.id for step in lane.stack.steps if path in step.changes]


def _show(
    document: dict[str, Any], path: Path, lane: Lane, decided: Plan, found: Installed | None, *, json: bool
) -> None:
    from patchq.ui.output import print_json, print_line, print_table

    if json:
        print_json(document)
        return
    told = [t for t in decided.touched if t.kind not in {"nothing", "python"}]
    if told:
        print_table(["file", "class", "why"], [[t.path, t.kind, t.why] for t in told])
    for refused in decided.refused:
        who = " ".join(_who(lane, refused.path)) or "no patch of the series"
        print_line(f"{refused.path} ({who}) cannot be built: {refused.why}")
    print_line(f"{path}: {decided.kind}: {len(decided.touched)} files differ from {document['base']}")
    for step in decided.steps:
        print_line(f"{step.name}: {step.what}, because {step.why}")
    if found is not None:
        if not document["ok"]:
            where = f"{document['imported']} ({found.places[0]['how']})" if found.places else "nothing"
            print_line(f"installed, but {document['python']} imports {where}; see patchq verify --python")
        else:
            print_line(f"built; run it with {document['python']}")
