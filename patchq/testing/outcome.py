"""What a run of tests came to: each test's outcome, and the one word for a run that did not come to its end."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from patchq.jsontext import parse_json
from patchq.series.evidence import Counts

if TYPE_CHECKING:
    from pathlib import Path

Result = Literal["passed", "failed", "error", "skipped", "xfailed"]
Problem = Literal[
    "",
    "hang",
    "crash",
    "out of memory",
    "collection error",
    "collected nothing",
    "all skipped",
    "wrote into its tree",
    "not started",
]
EXIT_INTERNAL, EXIT_USAGE = 3, 4
"""pytest's exit statuses for a mistake of its own, and for arguments that it does not take."""
TRANSIENT: tuple[Problem, ...] = ("hang", "crash", "out of memory", "not started")
"""Ends that may have to do with the machine's load; they are not remembered."""
MISSING = re.compile(r"(?:file or directory not found|not found): (\S+)")


@dataclass(frozen=True)
class Outcome:
    """One group of tests, run on one tree.

    Attributes:
        tests: each test's result, by node id.
        reasons: why a test did not pass, its last line, by node id.
        collect_errors: why a file could not be collected, by path.
        problem: what kept the run from its end; empty where nothing did.
        detail: the place, in words: the test it hung in, the signal, the file written.
        seconds: that it took.
        peak_bytes: private memory of all its processes at the highest.
        log_sha256: hash of the whole log.
        measured: what tests recorded with pytest's `record_property`, by node id and name.
        on: of a run on a card: `card`, `memory` before and after, and the `cubins` that were compiled.
    """

    tests: dict[str, Result] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    collect_errors: dict[str, str] = field(default_factory=dict)
    problem: Problem = ""
    detail: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    log_sha256: str = ""
    measured: dict[str, dict[str, Any]] = field(default_factory=dict)
    on: dict[str, Any] | None = None

    @property
    def counts(self) -> Counts:
        """Tests by outcome; files that could not be collected are errors."""
        results = list(self.tests.values())
        return Counts(
            passed=results.count("passed"),
            failed=results.count("failed"),
            skipped=results.count("skipped") + results.count("xfailed"),
            errors=results.count("error") + len(self.collect_errors),
        )

    @property
    def green(self) -> bool:
        """At least one passed, and nothing else happened."""
        counts = self.counts
        return (
            not self.problem and counts.passed > 0 and not (counts.failed or counts.skipped or counts.errors)
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def from_dict(data: dict[str, Any]) -> Outcome:
    """What `Outcome.as_dict` gave."""
    return Outcome(**data)


def last_line(text: str) -> str:
    """The line of a failure that a person would quote: pytest's first `E` line, else the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = [line[1:].strip() for line in lines if line.startswith("E ")]
    return (marked[0] if marked else lines[-1] if lines else "")[:300]


def read_outcome(
    report: Path, facts: dict[str, Any] | None, log: bytes, log_sha256: str, limit: int
) -> Outcome:
    """The outcome of a group from what the driver left.

    Args:
        report: the recorder's events.
        facts: the driver's last word on the group; None where it gave none.
        log: what the tests printed.
        log_sha256: its hash.
        limit: seconds that the group had.
    """
    tests: dict[str, Result] = {}
    reasons: dict[str, str] = {}
    collect_errors: dict[str, str] = {}
    measured: dict[str, dict[str, Any]] = {}
    running, finished, skipped_files = "", False, 0
    for event in _events(report):
        kind, name = event["event"], event.get("id", "")
        if kind == "collect_error":
            collect_errors[name] = last_line(event["why"])
        elif kind == "collect_skip":
            skipped_files += 1
            reasons[name] = last_line(event["why"])
        elif kind == "start":
            running = name
        elif kind == "report":
            _note(event, tests, reasons)
            if event["when"] == "teardown":
                running = ""
                if event.get("properties"):
                    measured[name] = dict(event["properties"])
        elif kind == "finish":
            finished = True
    base = Outcome(tests, reasons, collect_errors, log_sha256=log_sha256)
    problem, detail = _problem(
        base, facts, finished, running, skipped_files, log.decode("utf-8", "replace"), limit
    )
    return Outcome(
        tests,
        reasons,
        collect_errors,
        problem,
        detail,
        (facts or {}).get("seconds", 0.0),
        (facts or {}).get("peak_bytes", 0),
        log_sha256,
        measured,
    )


def _events(report: Path) -> list[dict[str, Any]]:
    events = []
    try:
        lines = report.read_text("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return []
    for line in lines:
        try:
            event = parse_json(line)
        except ValueError:
            continue
        if _is_event(event):
            events.append(event)
    return events


def _is_event(event: Any) -> bool:
    """Whether it is one of the recorder's: what a bundle brings back may hold anything."""
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return False
    wanted = {
        "collect_error": ("id", "why"),
        "collect_skip": ("id", "why"),
        "start": ("id",),
        "report": ("id", "when", "outcome", "why"),
    }.get(event["event"], ())
    measured = event.get("properties") or []
    pairs = isinstance(measured, list) and all(
        isinstance(p, list) and len(p) == 2 and isinstance(p[0], str)  # noqa: PLR2004
        for p in measured
    )
    return pairs and all(isinstance(event.get(name), str) for name in wanted)


def _note(event: dict[str, Any], tests: dict[str, Result], reasons: dict[str, str]) -> None:
    name, when, outcome = event["id"], event["when"], event["outcome"]
    result: Result | None = None
    if outcome == "failed":
        result = "failed" if when == "call" else "error"
    elif outcome == "skipped":
        result = "xfailed" if event.get("xfail") else "skipped"
    elif when == "call":
        result = "passed"
    if result is not None and tests.get(name) != "failed":
        tests[name] = result
        if result != "passed":
            reasons[name] = last_line(event["why"])


def _problem(  # noqa: PLR0911
    seen: Outcome,
    facts: dict[str, Any] | None,
    finished: bool,
    running: str,
    skipped_files: int,
    log: str,
    limit: int,
) -> tuple[Problem, str]:
    at = f"in {running}" if running else "after its last test" if seen.tests else "while collecting"
    if facts is None:
        return "not started", last_line(log) or "the driver ended without a word"
    if facts["killed"] == "time":
        return "hang", f"{at}: not done after {limit} s"
    if facts["killed"] == "memory":
        return "out of memory", f"{at}: {facts['peak_bytes'] / 1e9:.1f} GB"
    if any(reason.startswith("MemoryError") for reason in seen.reasons.values()):
        first = next(name for name, reason in seen.reasons.items() if reason.startswith("MemoryError"))
        return "out of memory", f"in {first}: MemoryError"
    if not finished:
        return _unfinished(facts, at, log)
    if seen.collect_errors:
        path, why = next(iter(seen.collect_errors.items()))
        return "collection error", f"{path}: {why}"
    if not seen.tests:
        if missing := MISSING.search(log):
            return "collected nothing", f"{missing[1]} does not exist"
        return (
            ("all skipped", next(iter(seen.reasons.values())))
            if skipped_files
            else ("collected nothing", "no test was selected")
        )
    if set(seen.tests.values()) <= {"skipped", "xfailed"}:
        return "all skipped", next(iter(seen.reasons.values()), "")
    return "", ""


def _unfinished(facts: dict[str, Any], at: str, log: str) -> tuple[Problem, str]:
    import signal

    if facts["signal"]:
        name = signal.Signals(facts["signal"]).name
        if facts["signal"] == signal.SIGKILL:
            return "out of memory", f"{at}: killed by the system ({name})"
        return "crash", f"{at}: {name}"
    if facts["code"] in {EXIT_INTERNAL, EXIT_USAGE}:
        missing = MISSING.search(log)
        if missing:
            return "collected nothing", f"{missing[1]} does not exist"
    return "crash", f"{at}: the interpreter left with status {facts['code']}"
