"""Results that a bundle brought back: checked against the bundle and the lane, and judged as if they had been run here."""

from __future__ import annotations

import base64
import hashlib
import lzma
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, write_atomically
from patchq.errors import InputError, RefusedError
from patchq.gpu.bundle import bundles_dir
from patchq.gpu.remote import FORMAT
from patchq.gpu.signature import is_signed
from patchq.jsontext import parse_json
from patchq.testing.environment import Environment, key_of_facts
from patchq.testing.outcome import Outcome, read_outcome
from patchq.testing.plan import plan_tasks
from patchq.testing.prove import Verdict, judge, wants_of
from patchq.testing.schedule import Known
from patchq.testing.seam.check import check_seams
from patchq.testing.session import Answer
from patchq.testing.shapes import check_plan, check_result

if TYPE_CHECKING:
    from patchq.engine.lane import Lane
    from patchq.git.objects import Objects
    from patchq.series.series import Series
    from patchq.testing.plan import Mode, Task

LARGEST = 64 * 1024 * 1024
"""Bytes of a result file; a larger one is none of ours."""


@dataclass(frozen=True)
class Result:
    """A result file that is what a bundle of ours wrote.

    Attributes:
        plan: the bundle's, as it was written here.
        document: what the machine with the card says.
    """

    plan: dict[str, Any]
    document: dict[str, Any]


def read_result(file: Path, bundle: Path | None) -> Result:
    """Read a result file and hold it against the bundle that it was made with.

    Args:
        file: what `run` wrote.
        bundle: the bundle's directory, where it was written by another cache than this one.

    Raises:
        InputError: it cannot be read, is no result, or its bundle is not known here.
        RefusedError: it does not say what it said when it was signed.
    """
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise InputError(
                f"{file} is larger than {LARGEST} bytes.", "Name the result.json that run wrote."
            )
        document = parse_json(data)
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read: {error}.", "Name the result.json that run wrote.") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or "bundle" not in document:
        raise InputError(f"{file} is no result of a bundle.", "Name the result.json that run wrote.")
    check_result(document, str(file))
    plan = _plan(document["bundle"], bundle)
    if not is_signed(document, plan["key"]):
        raise RefusedError(
            f"{file} is not what bundle {plan['id']} wrote: its signature does not hold.",
            "Take the result.json as run wrote it; nothing was recorded.",
        )
    return Result(plan, document)


def _plan(name: str, bundle: Path | None) -> dict[str, Any]:
    places = [bundles_dir() / f"{Path(name).name}.json"]
    if bundle is not None:
        places = [bundle / "bundle.json", *bundle.glob("part-*/bundle.json")]
    for place in places:
        try:
            plan: dict[str, Any] = parse_json(place.read_bytes())
        except (OSError, ValueError):
            continue
        if isinstance(plan, dict) and plan.get("id") == name:
            check_plan(plan, str(place))
            return plan
    raise InputError(
        f"bundle {name} was not written here.",
        "Name its directory with --bundle, or import where it was written.",
    )


def judge_result(series: Series, objects: Objects, lane: Lane, result: Result) -> Answer:
    """The verdicts on a result's runs, by the same rules as on runs of this machine.

    Args:
        series: the series.
        objects: where trees are read and made.
        lane: the lane of the base that the result names.
        result: the result.

    Raises:
        RefusedError: a run is of another patch body, of other tests or of another tree than the lane has, or files of
            the tree that was tested were not the tree's.
    """
    runs: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for run in result.document["runs"]:
        runs.setdefault((run["patch"], run["gate"]), {})[run["role"]] = run
    hashes = {b.id: b.sha256 for b in lane.bodies}
    mode = result.plan["mode"]
    verdicts = []
    for (patch, _), roles in runs.items():
        if "after" not in roles:
            raise _other(f"the result has no run with {patch}, only without it")
        if patch not in hashes or any(r["patch_sha256"] != hashes[patch] for r in roles.values()):
            raise _other(f"the result is about another body of {patch} than the lane of {lane.base} has")
        task = _task(series, objects, lane, mode, roles["after"])
        verdicts.append(_judge(objects, task, mode, roles))
    for planned in result.plan["runs"]:
        if planned["role"] == "after" and "after" not in runs.get((planned["patch"], planned["gate"]), {}):
            task = _task(series, objects, lane, mode, planned)
            why = result.document["refused"].get(planned["name"], "it was left out when the bundle was run")
            verdicts.append(Verdict(task, mode, "not run", notes=(f"not run: {why}",)))
    return Answer(tuple(verdicts), _environment(result))


def _other(what: str) -> RefusedError:
    return RefusedError(f"{what}.", "Bundle the patch as it stands, and run that; nothing was recorded.")


def _task(series: Series, objects: Objects, lane: Lane, mode: Mode, run: dict[str, Any]) -> Task:
    """What is planned now for the patch and gate of a run; upstream's own tests are for the CPU, and not in bundles."""
    asked = {"gate": run["gate"], "target": run["target"]}
    tasks = plan_tasks(series, objects, lane, [run["patch"]], mode=mode, **asked)
    if not tasks or tasks[0].own.tests != tuple(run["tests"]):
        raise _other(
            f"the result of {run['patch']} is of other tests than its patch.yaml names for {run['gate']}"
        )
    return replace(tasks[0], neighbours=None)


def _judge(objects: Objects, task: Task, mode: Mode, roles: dict[str, dict[str, Any]]) -> Verdict:
    prove = "before" in roles
    known = Known()
    for want, role in zip(wants_of(task, prove=prove), ("after", "before"), strict=False):
        run = roles[role]
        for name in ("tree", "tree_before", "tree_after"):
            if run[name] != want.tree:
                raise _other(
                    f"the result of {task.patch.id} is of tree {run[name][:12]} ({role} the patch), and the lane "
                    f"makes {want.tree[:12]}"
                )
        known.outcomes[want] = _outcome(run)
    trees = task.trees
    seams = check_seams(objects, trees.without, trees.after, trees.production)
    return judge(task, mode, known, tuple(s.as_dict() for s in seams), prove=prove)


def _outcome(run: dict[str, Any]) -> Outcome:
    log, events = _unpacked(run["log"]), _unpacked(run["events"])
    digest = hashlib.sha256(log).hexdigest()
    if digest != run["log_sha256"]:
        raise RefusedError(
            f"the log of {run['name']} is not the one that its hash is of.", "Nothing was recorded."
        )
    logs = cache_dir() / "logs"
    logs.mkdir(exist_ok=True)
    write_atomically(logs / f"{digest}.log", log)
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        Path(file.name).write_bytes(events)
        outcome = read_outcome(Path(file.name), run["facts"], log, digest, run["limit"])
    on = {name: run[name] for name in ("card", "memory", "cubins")} if run["card"] is not None else None
    return replace(outcome, on=on)


def _unpacked(text: str) -> bytes:
    """What a run printed; what would unpack to more than `LARGEST` is refused before it does."""
    try:
        packed = lzma.LZMADecompressor(memlimit=2 * LARGEST)
        data = packed.decompress(base64.b64decode(text), LARGEST)
    except (lzma.LZMAError, ValueError, TypeError):
        raise RefusedError("a log in the result cannot be unpacked.", "Nothing was recorded.") from None
    if not packed.eof:
        raise RefusedError(
            f"a log in the result is cut off, or holds more than {LARGEST} bytes.", "Nothing was recorded."
        )
    return data


def _environment(result: Result) -> Environment:
    """What the tests ran in there, as evidence has it."""
    found = result.document["toolchain"]
    versions = dict(d.split("==", 1) for d in found["distributions"])
    cards = result.document["machine"]["cards"]
    facts = {
        "kind": "bundle",
        "bundle": result.plan["id"],
        "python": found["python"],
        "torch": found.get("torch", ""),
        "cuda": found.get("cuda", ""),
        "triton": versions.get("triton", ""),
        "humming": versions.get("humming-kernels", ""),
        "nvcc": found.get("nvcc", ""),
        "driver": cards[0]["driver"] if cards else "",
        "extensions_sha256": key_of_facts(result.plan["extensions"]),
        "distributions_sha256": key_of_facts(found["distributions"]),
    }
    return Environment(Path(), key_of_facts(facts), facts, cuda=found.get("cuda", ""))
