"""Evidence: recorded results, bound to patch bytes, tree, toolchain and device."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from patchq.gpu.judge import summary
from patchq.gpu.limits import target_of
from patchq.series.evidence import NAME, read_evidence
from patchq.series.series import SERIES_NAME
from patchq.testing.gates import device_of, find_cards
from patchq.testing.stock import findings

if TYPE_CHECKING:
    from patchq.engine.lane import Lane
    from patchq.series.series import Series
    from patchq.testing.environment import Environment
    from patchq.testing.outcome import Outcome
    from patchq.testing.prove import Verdict
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
    "unable",
    "why",
)
"""What makes two records the same result; the newer one is not written then."""
SHOWN = 4
"""Failures quoted in a record."""


def with_evidence(series: Series, lane: Lane, answer: Answer, command: str) -> dict[str, bytes]:
    """What each patch's evidence.jsonl becomes with what was proved or passed behind it, newest last.

    A result that stands there already, with the same patch, tree, toolchain and counts, is not written again.

    Args:
        series: the series.
        lane: the lane.
        answer: the verdicts and their environment.
        command: what a person would type to get them but for the patches.

    Returns:
        The files that change, by path relative to the project.
    """
    if answer.environment is None:
        return {}
    hashes = {b.id: b.sha256 for b in lane.bodies}
    written: dict[str, bytes] = {}
    for verdict in answer.verdicts:
        if verdict.status not in {"proved", "passed"} or verdict.after is None:
            continue
        sha256 = hashes[verdict.task.patch.id]
        record = {
            **_identity(verdict, answer.environment, lane.base, sha256),
            "tree": verdict.task.trees.after,
            "proved": verdict.proved,
            "before": asdict(verdict.before.counts) if verdict.before else None,
            "before_output": failures(verdict.before) if verdict.before else [],
            "after": asdict(verdict.after.counts),
            "before_passed": _passed(verdict.before) if verdict.before else None,
            "neighbours": verdict.same,
            **_card_facts(verdict),
        }
        _append(written, series, record, verdict, command)
    return written


def with_stock(series: Series, base: str, base_tree: str, answer: Answer, command: str) -> dict[str, bytes]:
    """What each patch's evidence.jsonl becomes with what its tests said of a stock base behind it, as `with_evidence` does.

    What could not be put on the base, or could not run there, is recorded as just that.

    Args:
        series: the series.
        base: the base's name.
        base_tree: its tree, which is what the result is about.
        answer: the verdicts, their environment, and what was put on the base.
        command: what a person would type to get them.

    Returns:
        The files that change, by path relative to the project.
    """
    if answer.environment is None:
        return {}
    written: dict[str, bytes] = {}
    for verdict in answer.verdicts:
        if verdict.status == "not run":
            continue
        tests = answer.stock[verdict.task.patch.id]
        record = {
            **_identity(verdict, answer.environment, base, tests.sha256),
            "tree": base_tree,
            "tests_tree": verdict.task.trees.after,
            "proved": None,
            "before": None,
            **findings(tests, verdict.task, verdict.after),
            "after_output": failures(verdict.after) if verdict.after else [],
        }
        _append(written, series, record, verdict, command)
    return written


def _identity(verdict: Verdict, environment: Environment, base: str, sha256: str) -> dict[str, Any]:
    """What every record says of what was run, and where."""
    task = verdict.task
    return {
        "id": task.patch.id,
        "base": base,
        "patch_sha256": sha256,
        "tree": "",
        "mode": verdict.mode,
        "gate": task.gate,
        "target": task.target,
        "device": _device(verdict),
        "toolchain": {"key": environment.key, **environment.facts},
    }


def _passed(outcome: Outcome) -> list[str]:
    return sorted(name for name, got in outcome.tests.items() if got == "passed")


def _append(
    files: dict[str, bytes], series: Series, record: dict[str, Any], verdict: Verdict, command: str
) -> None:
    """Put a record behind a patch's evidence, unless the same result stands there; a patch that has left has none."""
    patch = verdict.task.patch.id
    where = f"{SERIES_NAME}/{patch}/{NAME}"
    path = series.root / where
    if not path.parent.is_dir():
        return
    if any(all(old.get(k) == record.get(k) for k in IDENTITY) for old in read_evidence(path)):
        return
    whole = {
        **record,
        "command": f"{command} {patch}",
        "log_sha256": verdict.after.log_sha256 if verdict.after else None,
        "before_log_sha256": verdict.before.log_sha256 if verdict.before else None,
        "seconds": verdict.seconds,
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
    }
    before = files.get(where, path.read_bytes() if path.exists() else b"")
    files[where] = before + (json.dumps(whole, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def failures(outcome: Outcome) -> list[str]:
    """Some tests that did not pass and the line that says why, one for each reason before a second of any."""
    reasons = {test: why for test, why in outcome.reasons.items() if outcome.tests.get(test) != "passed"}
    reasons = reasons or outcome.collect_errors
    first = {why: test for test, why in reversed(reasons.items())}
    others = list(reversed(first.values()))
    others += [test for test in reasons if test not in others]
    lines = [f"{test}: {reasons[test]}" for test in others[:SHOWN]]
    return lines or ([f"{outcome.problem} {outcome.detail}"] if outcome.problem else [])


def _card_facts(verdict: Verdict) -> dict[str, Any]:
    """What is recorded beside of a run on a card: its capability, driver, memory and kernels, and what was measured."""
    facts: dict[str, Any] = {}
    on = verdict.after.on if verdict.after is not None else None
    if on is not None:
        card = on["card"]
        facts = {"capability": target_of(tuple(card["capability"])), "driver": card["driver"]}
        facts |= {"memory": on["memory"], "cubins": summary(on["cubins"])}
    if verdict.after is not None and verdict.after.measured:
        facts["measured"] = verdict.after.measured
    return facts


def _device(verdict: Verdict) -> str:
    """What it ran on: the card that the run itself names, else what this machine has."""
    on = verdict.after.on if verdict.after is not None else None
    return str(on["card"]["name"]) if on is not None else device_of(verdict.task.gate, find_cards())
