"""What a patch's own tests say of a base that does not have the patch: the evidence that decides what landed.

The results are read from the patch's evidence.jsonl. A record counts here if it says that the tests were put on the
stock base, without the patch's production code: `mode` is `stock`, `tree` is the base's tree, `patch_sha256` is that
of the body whose tests were taken, `after` holds the counts. What they are held against is the `before` of a proof on
the patch's own base: tests that pass there without the patch prove nothing by passing elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from patchq.series.evidence import NAME, read_evidence
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from pathlib import Path

Says = Literal["absent", "landed", "partial", "cannot run"]


@dataclass(frozen=True)
class Counts:
    """Outcomes of a run of tests."""

    passed: int
    failed: int
    skipped: int
    errors: int


@dataclass(frozen=True)
class Behaviour:
    """What the tests say.

    Attributes:
        says: `landed` all pass; `absent` none passes that did not before; `partial` some more pass; `cannot run` none
            could even begin, which says nothing of the feature.
        counts: what came of them on the stock base.
        gate: the hardware level they ran at.
    """

    says: Says
    counts: Counts
    gate: str


def read_behaviour(root: Path, patch: str, patch_sha256: str, base_tree: str) -> Behaviour | None:
    """The newest result of a patch's tests on a stock base, or None where they were not run there.

    Args:
        root: the project.
        patch: the patch.
        patch_sha256: of the body whose tests count.
        base_tree: the stock base's tree.

    Raises:
        InputError: evidence.jsonl is not what it should be, at file:line.
    """
    records = read_evidence(root / SERIES_NAME / patch / NAME)
    ours = [r for r in records if r.get("patch_sha256") == patch_sha256]
    stock = [r for r in ours if r.get("mode") == "stock" and r.get("tree") == base_tree]
    if not stock:
        return None
    record = stock[-1]
    gate = str(record.get("gate"))
    proofs = [r for r in ours if r.get("before") and r.get("gate") == gate and r.get("mode") != "stock"]
    known = _counts(proofs[-1]["before"]) if proofs else Counts(0, 0, 0, 0)
    counts = _counts(record.get("after"))
    return Behaviour(judge(counts, known), counts, gate)


def judge(counts: Counts, before: Counts) -> Says:
    """What counts on a stock base say, held against those on the patch's own base without the patch.

    Skipped tests say nothing: with any of them, not all have passed.
    """
    if counts.passed + counts.failed == 0:
        return "cannot run"
    if counts.failed + counts.errors + counts.skipped == 0:
        return "landed"
    return "partial" if counts.passed > before.passed else "absent"


def _counts(data: Any) -> Counts:
    values = data if isinstance(data, dict) else {}
    return Counts(*(int(values.get(k) or 0) for k in ("passed", "failed", "skipped", "errors")))
