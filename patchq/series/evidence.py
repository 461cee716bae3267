"""evidence.jsonl: the recorded results of a patch's tests, one a line, newest last; it stands beside the patch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from patchq.errors import InputError
from patchq.jsontext import parse_json
from patchq.series.patch import GATES
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from patchq.series.series import Series

NAME = "evidence.jsonl"
STOCK = "stock"
"""The `mode` of a record of tests on a stock base."""


@dataclass(frozen=True)
class Counts:
    """Tests by outcome; an expected failure counts as skipped, since it proves nothing."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    errors: int = 0

    def __str__(self) -> str:
        return ", ".join(f"{n} {name}" for name, n in asdict(self).items() if n) or "no tests"

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.errors + other.errors,
        )


def read_evidence(path: Path) -> list[dict[str, Any]]:
    """The records of one evidence.jsonl, oldest first; none where there is no file.

    Raises:
        InputError: a line is not a JSON object; file and line are named.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{SERIES_NAME}/{path.parent.name}/{NAME} cannot be read: {error}.",
            "Restore the file from version control.",
        ) from None
    records = []
    for number, line in enumerate(lines, start=1):
        where = f"{SERIES_NAME}/{path.parent.name}/{NAME}:{number}"
        try:
            record = parse_json(line)
        except ValueError:
            raise InputError(
                f"{where}: this is not JSON.", "Restore the file from version control."
            ) from None
        if not isinstance(record, dict) or not {"id", "base", "tree", "gate"} <= record.keys():
            raise InputError(
                f"{where}: this is not a record of evidence.", "Restore the file from version control."
            )
        records.append(record)
    return records


def list_evidence(series: Series, ids: Iterable[str]) -> list[dict[str, Any]]:
    """All records of some patches, each with whether it still is about the patch's bytes and tree on that base.

    `current` is by the lock: the body has the recorded hash, and a stock base the recorded tree. A record of an older body stays for its history.
    """
    found = []
    for patch in ids:
        steps = {lane: step for lane in series.lock.lanes if (step := series.locked(lane).get(patch))}
        for record in read_evidence(series.root / SERIES_NAME / patch / NAME):
            name = str(record["base"])
            stock = record.get("mode") == STOCK
            bodies = {s.sha256 for lane, s in steps.items() if stock or lane == name}
            there = series.lock.bases.get(name)
            tree = record["tree"] if not stock else there.tree if there else ""
            current = record.get("patch_sha256") in bodies and record["tree"] == tree
            found.append({**record, "current": current})
    return found


def list_unproven(
    series: Series, ids: Iterable[str], records: Iterable[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The gates of each patch's tests at which the patch as it stands was not run anywhere, weakest first.

    A record at another gate or for another target counts for nothing here, nor does one of a stock base.

    Args:
        series: the series.
        ids: the patches.
        records: what `list_evidence` gives of them.
    """
    run: dict[tuple[str, str, str], bool] = {}
    for r in records:
        if r.get("mode") != STOCK:
            key = (str(r["id"]), str(r["gate"]), _about(r["gate"], str(r.get("target") or "")))
            run[key] = run.get(key, False) or bool(r["current"])
    found = []
    for patch in (series.find(name) for name in ids):
        groups = [*patch.tests, *(g for own in patch.bases.values() for g in own.tests or ())]
        for gate in sorted({g.gate for g in groups}, key=GATES.index):
            done = run.get((patch.id, gate, _about(gate, patch.target)))
            if not done:
                why = "not run" if done is None else "an older body was run, this one was not"
                found.append({"id": patch.id, "gate": gate, "target": patch.target, "why": why})
    return found


def _about(gate: str, target: str) -> str:
    """The target that a gate is about; tests at `cpu` and `gpu` are the same whatever it is."""
    return "" if gate in {"cpu", "gpu"} else target
