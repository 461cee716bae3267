"""Evidence: recorded results, bound to patch bytes, tree, toolchain and device."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from patchq.cache import write_atomically
from patchq.series.evidence import NAME, read_evidence
from patchq.series.series import SERIES_NAME
from patchq.testing.gates import device_of, find_cards

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.engine.apply import Lane
    from patchq.series.series import Series
    from patchq.testing.outcome import Outcome
    from patchq.testing.session import Answer

IDENTITY = (
    "id",
    "base",
    "patch_sha256",
    "tree",
    "mode",
    "gate",
    "target",
    "device",
    "toolchain",
    "proved",
    "before",
    "after",
)
"""What makes two records the same result; the newer one is not written then."""
SHOWN = 4
"""Failures quoted in a record."""


def record_evidence(series: Series, lane: Lane, answer: Answer, command: str) -> list[str]:
    """Append what was proved or passed to each patch's evidence.jsonl, newest last.

    A result that stands there already, with the same patch, tree, toolchain and counts, is not written again.

    Args:
        series: the series.
        lane: the lane.
        answer: the verdicts and their environment.
        command: what a person would type to get them.

    Returns:
        The files that were written, relative to the project.
    """
    if answer.environment is None:
        return []
    hashes = {b.id: b.sha256 for b in lane.bodies}
    written: list[str] = []
    for verdict in answer.verdicts:
        if verdict.status not in {"proved", "passed"} or verdict.after is None:
            continue
        task = verdict.task
        record = {
            "id": task.patch.id,
            "base": lane.base,
            "patch_sha256": hashes[task.patch.id],
            "tree": task.trees.after,
            "mode": verdict.mode,
            "gate": task.gate,
            "target": task.target,
            "device": device_of(task.gate, find_cards()),
            "toolchain": {"key": answer.environment.key, **answer.environment.facts},
            "proved": verdict.proved,
            "before": asdict(verdict.before.counts) if verdict.before else None,
            "before_output": failures(verdict.before) if verdict.before else [],
            "after": asdict(verdict.after.counts),
            "neighbours": verdict.same,
            "command": f"{command} {task.patch.id}",
            "log_sha256": verdict.after.log_sha256,
            "before_log_sha256": verdict.before.log_sha256 if verdict.before else None,
            "seconds": verdict.seconds,
            "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        }
        path = series.root / SERIES_NAME / task.patch.id / NAME
        old = read_evidence(path)
        if any(all(o.get(k) == record[k] for k in IDENTITY) for o in old):
            continue
        line = json.dumps(record, ensure_ascii=False) + "\n"
        text = path.read_text("utf-8") if path.exists() else ""
        write_atomically(path, (text + line).encode())
        where = f"{SERIES_NAME}/{task.patch.id}/{NAME}"
        if where not in written:
            written.append(where)
    return written


def failures(outcome: Outcome) -> list[str]:
    """Some tests that did not pass and the line that says why, one for each reason before a second of any."""
    reasons = {test: why for test, why in outcome.reasons.items() if outcome.tests.get(test) != "passed"}
    reasons = reasons or outcome.collect_errors
    first = {why: test for test, why in reversed(reasons.items())}
    others = list(reversed(first.values()))
    others += [test for test in reasons if test not in others]
    lines = [f"{test}: {reasons[test]}" for test in others[:SHOWN]]
    return lines or ([f"{outcome.problem} {outcome.detail}"] if outcome.problem else [])


def list_evidence(series: Series, ids: Iterable[str]) -> list[dict[str, Any]]:
    """All records of some patches, each with whether it still is about the patch's bytes and tree on that base.

    `current` is by the lock: the body has the recorded hash. A record of an older body stays for its history.
    """
    found = []
    for patch in ids:
        for record in read_evidence(series.root / SERIES_NAME / patch / NAME):
            step = series.locked(str(record["base"])).get(patch)
            current = step is not None and step.sha256 == record.get("patch_sha256")
            found.append({**record, "current": current})
    return found
