"""Exporting branches for upstream: what is asked is weighed first, then everything is written, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.cache import write_atomically
from patchq.engine.journal import Record
from patchq.errors import EnvironmentLacksError, InputError, RefusedError
from patchq.export.body import Ground, parts_of
from patchq.export.branches import make_branch, write_branches
from patchq.export.onto import find_onto
from patchq.export.proof import Proof, proofs_of, recorded_proof
from patchq.export.signing import find_exporter
from patchq.vllm.pull_request import fill_template
from patchq.vllm.rules import CONTRIBUTING, open_pr_limit, pr_template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from patchq.engine.lane import Lane
    from patchq.export.branches import Branch
    from patchq.export.onto import Onto
    from patchq.export.signing import Person
    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Series
    from patchq.testing.environment import Environment

    Prover = tuple[Callable[[], Environment], Progress]


@dataclass(frozen=True)
class Request:
    """What a person asks for.

    Attributes:
        ids: the patches; all of the lane where empty.
        onto: a revision of the clone; None for the lane's base there.
        who: `Name <mail>`; None for git's user there.
        helpers: AI tools that had a part.
        limit: how many pull requests may be open; None for upstream's rule.
        out: where descriptions go; None for the cache.
        jobs: runs at one time, where tests are run.
    """

    ids: tuple[str, ...] = ()
    onto: str | None = None
    who: str | None = None
    helpers: tuple[str, ...] = ()
    limit: int | None = None
    out: Path | None = None
    jobs: int = 1


@dataclass(frozen=True)
class Exported:
    """What was made.

    Attributes:
        onto: what the branches are on.
        who: who signed off.
        branches: in order of the series.
        bodies: the descriptions, by patch.
        open: the sections of the template that nothing is known for, by patch.
        files: where the descriptions are, by patch.
        held: patches whose patch.yaml says that they are not to be sent yet.
        proved: whether the results are about the branches' own trees.
    """

    onto: Onto
    who: Person
    branches: tuple[Branch, ...]
    bodies: dict[str, str]
    open: dict[str, tuple[str, ...]]
    files: dict[str, Path]
    held: tuple[str, ...]
    proved: bool


def export_branches(
    series: Series,
    checkout: Checkout,
    objects: Objects,
    lane: Lane,
    request: Request,
    prover: Prover | None,
    *,
    dry_run: bool,
) -> Exported:
    """Make the branches and their descriptions.

    Args:
        series: the series.
        checkout: the user's clone, locked.
        objects: the store's objects, with the clone's.
        lane: the lane that the patches are from.
        request: what is asked.
        prover: how to run tests on the branches' trees; None to go by the recorded evidence.
        dry_run: decide everything and write nothing.

    Raises:
        RefusedError: a patch is red, not proved or landed; too many would be open; a branch is not patchq's to move.
        InputError: no such patch or commit, or nobody to sign off.
    """
    for helper in request.helpers:
        if not helper.strip() or "\n" in helper:
            raise InputError(
                f"{helper!r} is not the name of a tool.", "Name it in one line: --assisted-by TOOL."
            )
    who = find_exporter(request.who, checkout)
    patches = _choose(series, lane, request.ids)
    onto = find_onto(checkout, objects, lane, request.onto)
    _refuse_too_many(series, objects, onto, patches, request.limit)
    recorded = {} if prover else _recorded(series, objects, lane, patches)
    branches = tuple(
        make_branch(series, checkout, objects, lane, onto, patch, who, request.helpers) for patch in patches
    )
    ground = Ground(lane.base, onto, ran_here=prover is not None)
    template = pr_template(objects, onto.tree)
    directory = request.out or Record(checkout).directory / "pr"
    bodies, left, files = {}, {}, {}
    for branch in branches:
        proof = _run(series, objects, branch, request.jobs, prover) if prover else recorded[branch.patch.id]
        parts = parts_of(branch, proof, ground, request.helpers)
        body, missing = fill_template(template, parts, assisted=bool(request.helpers))
        bodies[branch.patch.id], left[branch.patch.id] = body, missing
        files[branch.patch.id] = directory / f"{branch.patch.id}.md"
    if not dry_run:
        _write_bodies(directory, {files[i]: text for i, text in bodies.items()})
        write_branches(checkout, objects, branches)
    held = tuple(p.id for p in patches if p.upstream.intent == "hold")
    return Exported(onto, who, branches, bodies, left, files, held, ground.proved)


def _choose(series: Series, lane: Lane, ids: Sequence[str]) -> list[PatchMeta]:
    """The patches to export, in order; of all, those that are meant for this place alone are left out."""
    in_lane = [p for p in series.patches if p.id in lane.stack.ids]
    wanted = {series.find(name).id for name in ids} or {p.id for p in in_lane if p.upstream.intent != "local"}
    for patch in (series.find(i) for i in sorted(wanted)):
        if patch.id not in lane.stack.ids:
            raise InputError(
                f"{patch.id} has no body for {lane.base}.", f"The lane has: {', '.join(lane.stack.ids)}."
            )
        if patch.upstream.state == "merged":
            raise RefusedError(f"{patch.id} has landed: its patch.yaml says merged.", "Leave it out.")
        if patch.upstream.intent == "local":
            raise RefusedError(
                f"{patch.id} is not meant for upstream: the intent in its patch.yaml is local.",
                "Leave it out, or change that.",
            )
    if not wanted:
        raise InputError(f"the lane of {lane.base} has no patch for upstream.", "Name another: --base BASE.")
    return [p for p in in_lane if p.id in wanted]


def _refuse_too_many(
    series: Series, objects: Objects, onto: Onto, patches: Sequence[PatchMeta], limit: int | None
) -> None:
    ids = {p.id for p in patches} | {p.id for p in series.patches if p.upstream.state == "open"}
    allowed = limit or open_pr_limit(objects, onto.tree)
    if len(ids) > allowed:
        raise RefusedError(
            f"{len(ids)} pull requests would be open at once, and {allowed} may be ({CONTRIBUTING}).",
            f"Name fewer patches; or say that you may have so many: --limit {len(ids)}",
        )


def _recorded(series: Series, objects: Objects, lane: Lane, patches: Sequence[PatchMeta]) -> dict[str, Proof]:
    """The recorded proof of each patch, and of each that it depends on."""
    from patchq.engine.lane import substack

    bodies = {body.id: body for body in lane.bodies}
    found: dict[str, Proof] = {}
    for patch in series.closure(p.id for p in patches):
        if patch.id in bodies:
            ids = [p.id for p in series.closure([patch.id]) if p.id in bodies]
            tree = substack(objects, lane, ids).tree
            found[patch.id] = recorded_proof(series, lane.base, bodies[patch.id], patch, tree)
    return found


def _run(series: Series, objects: Objects, branch: Branch, jobs: int, prover: Prover | None) -> Proof:
    """Run the tests of a branch's patches on the branch's tree, and on those below."""
    from patchq.testing.session import Asked, prove_patches

    if prover is None:
        raise ValueError(branch.name)
    make, progress = prover
    answer = prove_patches(
        series, objects, branch.lane, Asked(branch.ids, prove=True, jobs=jobs), make, progress
    )
    return proofs_of(answer, branch.lane.base)[branch.patch.id]


def _write_bodies(directory: Path, texts: dict[Path, str]) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_atomically(path, text.encode())
    except OSError as error:
        raise EnvironmentLacksError(
            f"{directory} cannot be written: {error.strerror}.", "Name another place: --out DIR."
        ) from None
