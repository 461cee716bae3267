"""What `bash DIR/run` does where a bundle was carried to: Python's standard library only, and the driver of tests.

It gathers the bundle's parts from wherever they were put, unpacks them into a work directory, makes the trees and
checks their git tree ids, runs what the bundle plans on the card that each gate asks for, and writes one signed
result file. What came and what was run is kept in the work directory: a killed run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import datetime
import json
import lzma
import os
import platform
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from patchq.gpu.cubin import collect_cubins
from patchq.gpu.device import Card, fitting_card, read_cards, refusal
from patchq.gpu.listing import list_ptx
from patchq.gpu.parcel import Parcel, sha256_of
from patchq.gpu.signature import sign
from patchq.gpu.treeid import make_tree, tree_id

OK, RED, BAD, LACKING = 0, 1, 2, 3
FORMAT = 1
SLACK = 120
_PROBE = """
import json
from importlib import metadata
dists = sorted({f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions() if d.metadata['Name']})
found = {"torch": "", "cuda": "", "distributions": dists}
try:
    import torch
    found.update(torch=torch.__version__, cuda=torch.version.cuda or "")
except ImportError:
    pass
print(json.dumps(found))
"""


_running: set[subprocess.Popen[bytes]] = set()
"""What has to end when this ends."""


class Stop(Exception):  # noqa: N818
    """The run cannot go on: an exit status, and a sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def main(arguments: list[str]) -> int:
    """Run the bundle that this file came in; the exit status: 0 all green, 1 something red, 3 something is missing."""
    home = Path(__file__).resolve().parents[3]
    asked = _arguments(arguments, home)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGINT, _leave)
    try:
        return _run(home, asked)
    except Stop as stop:
        print(f"run: {stop}", file=sys.stderr)
        return stop.status


def _leave(number: int, _frame: object) -> None:
    """End with all that was started: each driver has its group of processes, and each group of tests its own below it."""
    for process in list(_running):
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text("ascii").split()
            for pid in (*map(int, children), process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
    os._exit(128 + number)


def _arguments(arguments: list[str], home: Path) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="run", description="Run the tests of this bundle.")
    parser.add_argument(
        "--parts", action="append", default=[], metavar="DIR", help="where else parts lie; may be repeated"
    )
    parser.add_argument("--work", metavar="DIR", help="where to unpack and run; kept between calls")
    parser.add_argument(
        "--report", metavar="DIR", help="where the result file goes; new, or of an unfinished run"
    )
    parser.add_argument("--gate", action="append", default=[], metavar="G", help="only these gates")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="only these patches")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="trees at one time (native: always one)"
    )
    parser.add_argument(
        "--unpack", action="store_true", help="take in the parts that are here, and run nothing"
    )
    parser.add_argument(
        "--python", default=sys.executable, metavar="EXE", help="the interpreter that has torch"
    )
    asked = parser.parse_args(arguments)
    asked.work = Path(asked.work or home / "work").absolute()
    asked.report = Path(asked.report or asked.work / "report").absolute()
    return asked


def _run(home: Path, asked: argparse.Namespace) -> int:
    plan = json.loads((home / "bundle.json").read_bytes())
    parcel = Parcel(plan, asked.work)
    parcel.take([home, *(Path(p) for p in asked.parts)])
    parcel.unpack()
    lacking = parcel.missing()
    if lacking:
        raise Stop(
            LACKING,
            f"missing: {', '.join(lacking)} of {parcel.parts} parts. Put them beside this one, or name their "
            f"directory with --parts, and run this again with --work {asked.work}; what came is kept there.",
        )
    if asked.unpack:
        print(f"run: all {parcel.parts} parts are unpacked in {asked.work}")
        return OK
    runs = [
        r
        for r in plan["runs"]
        if (not asked.gate or r["gate"] in asked.gate) and (not asked.only or r["patch"] in asked.only)
    ]
    if not runs:
        raise Stop(BAD, "no test of this bundle is at that gate or of that patch.")
    cards = read_cards()
    why_not = {r["name"]: _refused(r, cards) for r in runs}
    possible = [r for r in runs if not why_not[r["name"]]]
    document = {
        "format": FORMAT,
        "bundle": plan["id"],
        "base": plan["base"],
        "mode": plan["mode"],
        "refused": {name: why for name, why in why_not.items() if why},
    }
    for name, why in document["refused"].items():
        print(f"run: {name}: not run: {why}", flush=True)
    if not possible:
        raise Stop(LACKING, "nothing of this bundle can be run here; no result was written.")
    _claim(asked.report, plan["id"], native=any(r["gate"] == "native" for r in possible))
    site = parcel.site()
    document["toolchain"] = _toolchain(asked.python, site, needs_torch=bool(plan["torch"]))
    trees: dict[str, list[dict[str, Any]]] = {}
    for run in possible:
        trees.setdefault(run["tree"], []).append(run)
    done: list[dict[str, Any]] = []
    jobs = 1 if any(r["gate"] == "native" for r in possible) else max(1, asked.jobs)
    with ThreadPoolExecutor(jobs) as pool:
        futures = [
            pool.submit(_session, plan, parcel, asked, tree, group, cards, site)
            for tree, group in trees.items()
        ]
        for future in futures:
            done += future.result()
    document["runs"] = done
    document["machine"] = {"system": platform.platform(), "cards": [c.as_dict() for c in cards]}
    document["date"] = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    document["signature"] = sign(document, plan["key"])
    result = asked.report / "result.json"
    draft = result.with_suffix(".new")
    draft.write_text(json.dumps(document, indent=1), encoding="utf-8")
    draft.replace(result)
    red = [r["name"] for r in done if r["role"] == "after" and not r["green"]]
    print(
        f"run: {len(done)} runs, {len(red)} of the patches' own not green, {len(document['refused'])} not run: {result}"
    )
    return RED if red else OK if not document["refused"] else LACKING


def _refused(run: dict[str, Any], cards: tuple[Card, ...]) -> str:
    import shutil

    absent = [p for p in run["needs"] if shutil.which(p) is None]
    if absent:
        return f"{', '.join(absent)} is not on PATH"
    return "" if run["gate"] in {"cpu", "compile"} else refusal(run["gate"], run["target"], cards)


def _claim(report: Path, bundle: str, *, native: bool) -> None:
    """Take a report directory: a new one, or, but for `native`, that of an unfinished run of this bundle.

    Raises:
        Stop: it was used.
    """
    note = report / "bundle"
    if report.exists() and any(report.iterdir()):
        mine = note.is_file() and note.read_text("ascii") == bundle
        if native or not mine or (report / "result.json").exists():
            raise Stop(BAD, f"{report} was used already. Name a new directory with --report.")
    report.mkdir(parents=True, exist_ok=True)
    note.write_text(bundle, "ascii")


def _toolchain(python: str, site: list[Path], *, needs_torch: bool) -> dict[str, Any]:
    """What the tests run with.

    Raises:
        Stop: the interpreter has no torch.
    """
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, site))}
    done = subprocess.run([python, "-c", _PROBE], capture_output=True, check=False, env=env, cwd="/")
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise Stop(
            LACKING, f"{python} does not run ({said[-1] if said else 'no word'}). Name another with --python."
        )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if needs_torch and not found["torch"]:
        raise Stop(LACKING, f"{python} has no torch. Name an interpreter that has one with --python.")
    found["python"] = platform.python_version()
    try:
        version = subprocess.run(["nvcc", "--version"], capture_output=True, check=False).stdout.decode()
    except OSError:
        version = ""
    found["nvcc"] = version.strip().splitlines()[-1] if version else ""
    return found


def _session(
    plan: dict[str, Any],
    parcel: Parcel,
    asked: argparse.Namespace,
    tree: str,
    runs: list[dict[str, Any]],
    cards: tuple[Card, ...],
    site: list[Path],
) -> list[dict[str, Any]]:
    """The runs of one tree, one after the other; those that were done before are read back."""
    folder = asked.report / tree[:12]
    folder.mkdir(exist_ok=True)
    results = []
    path = asked.work / "trees" / tree
    for number, run in enumerate(runs):
        note = folder / f"{run['name'].replace(':', '-')}.json"
        if note.is_file():
            results.append(json.loads(note.read_bytes()))
            continue
        manifest = parcel.manifest(tree)
        if not path.is_dir():
            make_tree(manifest, parcel.blobs, path, parcel.overlay())
        before = tree_id(path, set(parcel.overlay()), manifest)
        result = _one(plan, asked, path, folder / str(number), run, cards, site)
        result["tree_before"], result["tree_after"] = before, tree_id(path, set(parcel.overlay()), manifest)
        draft = note.with_suffix(".new")
        draft.write_text(json.dumps(result), encoding="utf-8")
        draft.replace(note)
        results.append(result)
        print(
            f"run: {run['name']} ({run['role']}): {result['summary']}, {result['seconds']:.0f} s", flush=True
        )
    return results


def _one(
    plan: dict[str, Any],
    asked: argparse.Namespace,
    tree: Path,
    sandbox: Path,
    run: dict[str, Any],
    cards: tuple[Card, ...],
    site: list[Path],
) -> dict[str, Any]:
    from patchq.testing import driver

    for name in ("home", "tmp", "cache", "reports"):
        (sandbox / name).mkdir(parents=True, exist_ok=True)
    reports = sandbox / "reports"
    places = {n: reports / n for n in ("results.jsonl", "events.jsonl", "log", "job.json", "driver.log")}
    for file in places.values():
        file.unlink(missing_ok=True)
    job = {
        "tree": str(tree),
        "freeze": False,
        "loopback": False,
        "preload": [],
        "memory": 1 << 50,
        "results": str(places["results.jsonl"]),
        "groups": [
            {
                "name": run["name"],
                "limit": run["limit"],
                "report": str(places["events.jsonl"]),
                "log": str(places["log"]),
                "args": [
                    *plan["options"],
                    f"--rootdir={tree}",
                    f"--basetemp={sandbox / 'tmp' / 'pytest'}",
                    *run["tests"],
                ],
            }
        ],
    }
    places["job.json"].write_text(json.dumps(job), encoding="utf-8")
    card = fitting_card(run["gate"], run["target"], cards)
    env = {k: v.replace("{sandbox}", str(sandbox)) for k, v in plan["variables"].items()}
    env["PATH"] = os.environ.get("PATH", os.defpath)
    env["PYTHONPATH"] = os.pathsep.join([str(tree), *map(str, site)])
    env["PYTHONPYCACHEPREFIX"] = str(asked.work / "bytecode")
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("LD_LIBRARY_PATH", "CUDA_HOME"):
        if name in os.environ:
            env[name] = os.environ[name]
    env["CUDA_VISIBLE_DEVICES"] = card.uuid if card is not None else ""
    memory = _used(card)
    with places["driver.log"].open("wb") as said:
        process = subprocess.Popen(
            [asked.python, driver.__file__, str(places["job.json"])],
            cwd=tree,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        _running.add(process)
        try:
            process.wait(run["limit"] + SLACK)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            _running.discard(process)
    if run["gate"] == "emulated":
        list_ptx(sandbox / "cache")
    return _result(run, card, sandbox, places, memory)


def _used(card: Card | None) -> int:
    """Bytes of the card's memory that are in use now."""
    return next((c.used_bytes for c in read_cards() if card is not None and c.uuid == card.uuid), 0)


def _result(
    run: dict[str, Any], card: Card | None, sandbox: Path, places: dict[str, Path], memory: int
) -> dict[str, Any]:
    def text(name: str) -> bytes:
        return places[name].read_bytes() if places[name].exists() else b""

    facts = None
    for line in text("results.jsonl").decode().splitlines():
        found = json.loads(line)
        facts = found if found.get("name") == run["name"] else facts
    log = text("driver.log") + text("log")
    events = text("events.jsonl")
    counts = _count(events)
    cubins = collect_cubins(sandbox / "cache")
    return {
        **{
            k: run[k]
            for k in ("name", "patch", "patch_sha256", "gate", "target", "tree", "role", "tests", "limit")
        },
        "card": card.as_dict() if card is not None else None,
        "memory": {"before": memory, "after": _used(card)},
        "facts": facts,
        "events": _packed(events),
        "log": _packed(log),
        "log_sha256": sha256_of(log),
        "cubins": [c.as_dict() for c in cubins],
        "summary": ", ".join(f"{n} {word}" for word, n in counts.items()) or "no tests",
        "green": set(counts) == {"passed"} and facts is not None and not facts["killed"],
        "seconds": (facts or {}).get("seconds", 0.0),
    }


def _count(events: bytes) -> dict[str, int]:
    """Tests by outcome, for the person who watches; what counts is decided where the result is read."""
    last: dict[str, str] = {}
    for line in events.splitlines():
        event = json.loads(line)
        if event["event"] == "collect_error":
            last[event["id"]] = "errors"
        elif event["event"] == "report" and (event["outcome"] != "passed" or event["when"] == "call"):
            last[event["id"]] = event["outcome"]
    return {word: list(last.values()).count(word) for word in sorted(set(last.values()))}


def _packed(data: bytes) -> str:
    return base64.b64encode(lzma.compress(data)).decode("ascii")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
