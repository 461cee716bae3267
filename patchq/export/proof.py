"""What is proved of a patch that goes upstream: by its recorded evidence, or by a run on the branch itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patchq.errors import RefusedError
from patchq.series.evidence import NAME, read_evidence
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.series.patch import PatchMeta, TestGroup
    from patchq.series.series import Body, Series
    from patchq.testing.session import Answer


@dataclass(frozen=True)
class Result:
    """One group of tests that was run.

    Attributes:
        gate: the hardware level.
        device: what it ran on.
        toolchain: the environment, as evidence has it.
        after: tests by outcome with the patch.
        before: the same without its production files; None where that was not run.
        before_output: some of the failures without them, one a line.
        neighbours: upstream's tests that ended alike with and without it; None where none were run.
        command: what gives the result.
    """

    gate: str
    device: str
    toolchain: dict[str, Any]
    after: dict[str, int]
    before: dict[str, int] | None
    before_output: tuple[str, ...]
    neighbours: int | None
    command: str


@dataclass(frozen=True)
class Proof:
    """What is proved of one patch.

    Attributes:
        patch: the patch.
        tree: the tree that its tests ran on.
        results: what was run, one for each gate.
        missing: its tests that were not run.
    """

    patch: PatchMeta
    tree: str
    results: tuple[Result, ...]
    missing: tuple[TestGroup, ...] = field(default=())


def recorded_proof(series: Series, base: str, body: Body, patch: PatchMeta, tree: str) -> Proof:
    """The proof that a patch's evidence.jsonl holds about these very bytes on this very tree.

    Args:
        series: the series.
        base: the base of the lane.
        body: the patch's body there.
        patch: the patch.
        tree: that base with what the patch depends on and the patch.

    Raises:
        RefusedError: there is none, or it is red.
    """
    newest: dict[str, dict[str, Any]] = {}
    for record in read_evidence(series.root / SERIES_NAME / patch.id / NAME):
        about = (record["base"], record.get("patch_sha256"), record["tree"], record.get("mode"))
        if about == (base, body.sha256, tree, "alone"):
            newest[str(record["gate"])] = record
    again = f"Run: patchq test --prove --record --base {base} {patch.id}"
    for gate, record in newest.items():
        after = record.get("after") or {}
        if record.get("proved") is False or after.get("failed") or after.get("errors"):
            raise RefusedError(f"{patch.id} is red at the gate {gate}.", again)
    if not any(record.get("proved") for record in newest.values()):
        raise RefusedError(f"{patch.id} is not proved as it stands on {base}.", again)
    results = tuple(
        Result(
            gate,
            str(record.get("device", "")),
            dict(record.get("toolchain") or {}),
            dict(record.get("after") or {}),
            record.get("before"),
            tuple(record.get("before_output") or ()),
            record.get("neighbours"),
            str(record.get("command", "")),
        )
        for gate, record in newest.items()
    )
    return Proof(patch, tree, results, _missing(patch, [r.gate for r in results]))


def proofs_of(answer: Answer, base: str) -> dict[str, Proof]:
    """The proofs that a run of tests gave, by patch.

    Raises:
        RefusedError: a patch is not proved there; what speaks against it is said.
    """
    from dataclasses import asdict

    from patchq.testing.evidence import failures
    from patchq.testing.gates import device_of, find_cards

    toolchain = answer.environment.facts if answer.environment else {}
    found: dict[str, Proof] = {}
    for patch in dict.fromkeys(v.task.patch.id for v in answer.verdicts):
        own = [v for v in answer.verdicts if v.task.patch.id == patch]
        bad = [v for v in own if not v.ok]
        if bad or not any(v.proved for v in own):
            why = next((a for v in bad for a in v.against), next((n for v in own for n in v.notes), ""))
            raise RefusedError(
                f"{patch} is not proved on the branch's tree {own[0].task.trees.after[:12]}: {why}.",
                "Port the patch, or name another --onto.",
            )
        results = tuple(
            Result(
                v.task.gate,
                device_of(v.task.gate, find_cards()),
                dict(toolchain),
                asdict(v.after.counts),
                asdict(v.before.counts) if v.before else None,
                tuple(failures(v.before)) if v.before else (),
                v.same,
                f"patchq export pr --base {base} --prove {patch}",
            )
            for v in own
            if v.after is not None
        )
        meta, tree = own[0].task.patch, own[0].task.trees.after
        found[patch] = Proof(meta, tree, results, _missing(meta, [r.gate for r in results]))
    return found


def _missing(patch: PatchMeta, gates: Sequence[str]) -> tuple[TestGroup, ...]:
    return tuple(group for group in patch.tests if group.gate not in gates)
