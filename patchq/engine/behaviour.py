"""What a patch's own tests say of a base that does not have the patch: the evidence that decides what landed.

The results are read from the patch's evidence.jsonl, where `patchq test --stock --record` puts them: `mode` is `stock`,
`tree` is the base's tree, `patch_sha256` that of the body whose tests were put on it, `after` the counts. What they are
held against is the `before` of a proof on the patch's own base: tests that pass there without the patch prove nothing
by passing elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from patchq.series.evidence import STOCK, Counts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Says = Literal["absent", "landed", "partial", "cannot run"]


@dataclass(frozen=True)
class Behaviour:
    """What the tests say.

    Attributes:
        says: `landed` all pass; `absent` none passes that did not before; `partial` some more pass; `cannot run` they
            could not be put there or begin, which says nothing of the feature.
        counts: what came of them on the stock base.
        gate: the hardware levels they ran at.
        unable: tests that failed over what the patch does not bring: an import or a name that moved.
        why: what kept tests from running, in words.
        tests_only: whether the tests are all that the patch is, so that their passing is not its landing.
        torch: the version of torch they ran with; empty where nobody wrote it down.
    """

    says: Says
    counts: Counts
    gate: str
    unable: int = 0
    why: tuple[str, ...] = ()
    tests_only: bool = False
    torch: str = ""


@dataclass(frozen=True)
class Origin:
    """Where a patch comes to a base from: the lane, and the hash of its body there."""

    lane: str
    sha256: str


def find_behaviour(
    records: Sequence[dict[str, Any]], bodies: Sequence[str], origin: Origin, base_tree: str
) -> Behaviour | None:
    """The newest results of a patch's tests on a stock base, or None where they were not run there.

    Args:
        records: the patch's evidence, oldest first.
        bodies: hashes of the bodies whose tests count, the ones that count most first.
        origin: where the patch comes to that base from; its proof there is what is compared with.
        base_tree: the stock base's tree.
    """
    stock = [r for r in records if r.get("mode") == STOCK and r.get("tree") == base_tree]
    for sha256 in bodies:
        newest = {str(r.get("gate")): r for r in stock if r.get("patch_sha256") == sha256}
        if newest:
            proofs = {gate: find_proof(records, origin, gate) for gate in newest}
            return _together([behaviour_of(r, proofs[gate]) for gate, r in newest.items()])
    return None


def was_heard(records: Iterable[dict[str, Any]], base: str) -> bool:
    """Whether a patch's tests were ever run on a stock base of that name."""
    return any(r.get("mode") == STOCK and r.get("base") == base for r in records)


def find_proof(records: Iterable[dict[str, Any]], origin: Origin, gate: str) -> dict[str, Any] | None:
    """The newest proof of a patch where it comes from, at a gate: its `before` is what the tests give without it."""
    found = [
        r
        for r in records
        if (r.get("patch_sha256"), r.get("base"), r.get("gate")) == (origin.sha256, origin.lane, gate)
        and r.get("before")
        and r.get("mode") != STOCK
    ]
    return found[-1] if found else None


def behaviour_of(record: dict[str, Any], proof: dict[str, Any] | None) -> Behaviour:
    """What one record of a stock base says, held against a proof."""
    counts = _counts(record.get("after"))
    before = _counts(proof["before"]) if proof else Counts(0, 0, 0, 0)
    unable = int(record.get("unable") or 0)
    newly = None
    if proof and isinstance(proof.get("before_passed"), list):
        known = {_short(name) for name in proof["before_passed"]}
        newly = sum(_short(name) not in known for name in record.get("passed") or ())
    if record.get("placed") is False:
        says: Says = "cannot run"
    else:
        says = "absent" if record.get("as_before") else judge(counts, before, unable=unable, newly=newly)
    chain = record.get("toolchain")
    return Behaviour(
        says,
        counts,
        str(record.get("gate")),
        unable,
        tuple(map(str, record.get("why") or ())),
        record.get("kind") == "test-only",
        str(chain.get("torch") or "") if isinstance(chain, dict) else "",
    )


def judge(counts: Counts, before: Counts, *, unable: int = 0, newly: int | None = None) -> Says:
    """What counts on a stock base say, held against those on the patch's own base without the patch.

    Skipped tests, and those that could not run, say nothing: with any of them, not all have passed.

    Args:
        counts: on the stock base.
        before: at home without the patch.
        unable: how many of those that failed could not run.
        newly: how many passed that do not pass at home without the patch; by the counts alone where nobody knows.
    """
    if counts.passed and not counts.failed + counts.errors + counts.skipped:
        return "landed"
    if (max(counts.passed - before.passed, 0) if newly is None else newly) > 0:
        return "partial"
    return "absent" if counts.failed > unable else "cannot run"


def _together(found: list[Behaviour]) -> Behaviour:
    """What the tests of several gates say: those that could not run say nothing beside those that could."""
    first = found[0]
    if len(found) == 1:
        return first
    told = {b.says for b in found} - {"cannot run"}
    says: Says = "cannot run" if not told else "partial" if len(told) > 1 else next(iter(told))
    return Behaviour(
        says,
        sum((b.counts for b in found[1:]), first.counts),
        ", ".join(b.gate for b in found),
        sum(b.unable for b in found),
        tuple(dict.fromkeys(why for b in found for why in b.why)),
        all(b.tests_only for b in found),
        found[-1].torch,
    )


def _short(name: str) -> str:
    """A test's node id without its directory, which may be another on each base."""
    path, colons, test = name.partition("::")
    return path.rpartition("/")[2] + colons + test


def _counts(data: Any) -> Counts:
    values = data if isinstance(data, dict) else {}
    return Counts(*(int(values.get(k) or 0) for k in ("passed", "failed", "skipped", "errors")))
