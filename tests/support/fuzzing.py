"""Broken inputs for the parsers of what comes from outside: made from good ones, from a seed, each borne or a finding.

A finding is a traceback (anything but patchq's own errors), a write to the disk, a process started, or more time or
memory than one input may take.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
import json
import os
import random
import resource
import signal
import sys
import tarfile
import tempfile
import time
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.engine.journal import Record
from patchq.engine.log import Entry as LogEntry
from patchq.engine.log import FileChange, dump_entry, load_entry
from patchq.engine.rebasing import Journal
from patchq.errors import PatchqError
from patchq.git.diff import parse_diff
from patchq.git.mail import parse_mail
from patchq.git.objects import EMPTY_TREE, REGULAR, Entry, Objects
from patchq.git.pick import pick
from patchq.gpu.judge import contradictions, summary
from patchq.gpu.remote import FORMAT
from patchq.jsontext import parse_json
from patchq.series.evidence import read_evidence
from patchq.series.lock import read_lock
from patchq.series.moves import Moves
from patchq.series.patch import PatchMeta
from patchq.series.resolutions import Resolutions
from patchq.series.rulings import Rulings
from patchq.series.yamlfile import read_yaml
from patchq.testing.outcome import read_outcome
from patchq.testing.shapes import check_plan, check_result
from patchq.upstream.archive import read_sdist
from patchq.vllm.generated import is_generated
from tests.support.killing import WRITES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
SECONDS = 5
"""That one input may take."""
MEMORY = 768 << 20
"""Bytes of address space that one input may take on top of what is in use."""
WORDS = (
    b"diff --git a/x b/x\n", b"@@ -1 +1 @@\n", b"--- a/x\n", b"+++ /dev/null\n", b"GIT binary patch\nliteral 9\n",
    b"rename from x\n", b"similarity index 100%\n", b"new file mode 120000\n", b"deleted file mode 160000\n",
    b"=?utf-8?q?=ff?=", b"\\ No newline at end of file\n", b"From \n", b"../", b"/etc/passwd", b".git/", b"\0",
    b"\xff", b"\xef\xbb\xbf", b"\r\n", b"&a ", b"*a", b"!!python/object:x ", b"<<: ", b"? ", b"- ", b"{", b"[", b"'",
    b'"', b"|\n", b": ", b"#", b"---\n", b"%YAML 9.9\n", b"null", b"1e999", b"9" * 5000, b"-1", b"[" * 3000,
    b'{"a":' * 3000, b"\xed\xa0\x80", "\u2028\u0085".encode(), b"ustar", b"99999999999",
)  # fmt: skip


@dataclass(frozen=True)
class Target:
    """A parser: good inputs, and how it is called with a file that has others."""

    name: str
    seeds: Callable[[], list[bytes]]
    file: str
    call: Callable[[Path, Path], Any]
    packed: bool = False


class FoundError(Exception):
    """An input that a parser does not bear."""


def _shipped(pattern: str) -> Callable[[], list[bytes]]:
    return lambda: [p.read_bytes()[:60_000] for p in sorted(ROOT.glob(pattern))]


def _patches() -> list[bytes]:
    shipped = [p.read_bytes() for p in sorted(ROOT.glob("series/*/*.patch"))]
    head = shipped[0].split(b"\ndiff --git ", 1)[0] + b"\n"
    rename = (
        b"diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\nindex 1234567..89abcde 100644\n"
        b"--- a/f\n+++ b/g\n@@ -1,2 +1,2 @@ def f\n x\n-y\n+z\n\\ No newline at end of file\n"
    )
    link = (
        b'diff --git "a/\\303\\244" "b/\\303\\244"\nnew file mode 120000\nindex 0000000..1234567\n--- /dev/null\n'
        b'+++ "b/\\303\\244"\n@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n'
    )
    binary = (
        b"diff --git a/b b/b\nindex e69de29bb2d1d6434b8b29ae775ad8c2e48c5391.."
        b"f76dd238ade08917e6712764a16a22005a50573d 100644\n"
        b"GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n"
    )
    kinds = (rename, link, binary)
    return [*(head + k for k in kinds), *(s for s in shipped if len(s) < 30_000)]


def _records() -> list[bytes]:
    """Of rulings, moves and resolutions, one good file each, whatever they hold."""
    tree, sha = b"1" * 40, b"2" * 64
    return [
        b"rulings:\n- base: v1\n  verdict: landed\n  because: It is.\n  patch_sha256: '" + sha + b"'\n  base_tree: '"
        + tree + b"'\n  date: '2026-01-02'\n",
        b"moves:\n- base: v1\n  carried: true\n  verdict: clean\n  reason: ''\n  lane: v1\n  source_sha256: '" + sha
        + b"'\n  base_tree: '" + tree + b"'\n",
        *_shipped("series/*/moves.yaml")()[:3],
    ]  # fmt: skip


def _tars() -> list[bytes]:
    made = []
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
            for name in (
                "a.py",
                "deep/" * 30 + "\u00e4.py" if kind != tarfile.USTAR_FORMAT else "b",
                "run.sh",
            ):
                info = tarfile.TarInfo(f"vllm-1.0/{name}")
                info.size, info.mode = 700, 0o755
                archive.addfile(info, io.BytesIO(b"x" * 700))
        made.append(out.getvalue())
    return made


FILE = b"".join(b"line %d\n" % n for n in range(1, 40))


def _on_a_tree(data: bytes) -> None:
    """Apply a patch to a small tree of every kind of file, in memory alone."""
    objects = _InMemory(Path())
    files = {
        "f": FILE,
        "deep/f": FILE,
        "b": b"\0\1\2",
        "crlf": FILE.replace(b"\n", b"\r\n"),
        "bare": FILE[:-1],
    }
    tree = objects.edit_tree(
        EMPTY_TREE, {n: Entry(REGULAR, objects.put("blob", d)) for n, d in files.items()}
    )
    pick(objects, tree, parse_mail(data, "x.patch"), "x.patch")


class _InMemory(Objects):
    """Objects of which no repository holds any."""

    def _read(self, name: str) -> tuple[str, str, bytes]:
        raise KeyError(name)


def _fitting() -> list[bytes]:
    """Patches that apply to that tree, by kind."""
    head = (
        b"From "
        + b"0" * 40
        + b" Mon Sep 17 00:00:00 2001\nFrom: A <a@b.c>\nDate: Fri, 2 Jan 2026 03:04:05 +0100\n"
    )
    head += b"Subject: [T] x\n\n---\n\n"
    hunk = b"@@ -%d,3 +%d,3 @@\n line %d\n-line %d\n+other\n line %d\n"
    two = hunk % (3, 3, 3, 4, 5) + hunk % (20, 20, 20, 21, 22)
    plain = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n" + two
    crlf = b"diff --git a/crlf b/crlf\n--- a/crlf\n+++ b/crlf\n" + two.replace(b"e 4\n", b"e 4\r\n")
    gone = (
        b"diff --git a/bare b/bare\ndeleted file mode 100644\n--- a/bare\n+++ /dev/null\n@@ -1,39 +0,0 @@\n"
    )
    gone += (
        b"".join(b"-" + line for line in FILE.splitlines(keepends=True)) + b"\\ No newline at end of file\n"
    )
    moved = (
        b"diff --git a/deep/f b/deep\nrename from deep/f\nrename to deep\n--- a/deep/f\n+++ b/deep\n" + two
    )
    added = b"diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n"
    modes = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
    return [
        head + b for b in (plain, crlf, gone, moved, added, modes, plain + added + gone, *_patches()[2:3])
    ]


def _switch() -> list[bytes]:
    """A checkout's journal."""
    change = ["pkg/x.py", [0o100644, "1" * 40], None]
    switch = {
        "token": "patchq 1", "old_commit": "1" * 40, "new_commit": "2" * 40, "old_ref": "refs/heads/main",
        "new_ref": "refs/heads/patchq/v1", "branch_was": None, "drop_ref": None, "drop_to": None, "files": True,
        "changes": [change],
    }  # fmt: skip
    return [
        json.dumps({"switch": switch, "note": n}).encode() for n in (None, {"root": "/x", "what": "apply"})
    ]


def _pending(file: Path, _: Path) -> object:
    record = object.__new__(Record)
    record._journal = file
    return record.pending()


def _state(file: Path, _: Path) -> object:
    journal = object.__new__(Journal)
    journal._file = file
    return journal.read()


def _results() -> list[bytes]:
    """What a bundle brings back; and the events of its tests."""
    cubin = {
        "name": "k", "origin": "humming", "target": "sm_90", "ptx_target": "sm_86", "sha256": "3" * 64,
        "shared_bytes": 9, "registers": 8, "stack_bytes": 0, "newer": [],
    }  # fmt: skip
    card = {"name": "H200", "driver": "580", "capability": [9, 0]}
    run = {
        "name": "0001-x:gpu:after", "patch": "0001-x", "patch_sha256": "4" * 64, "gate": "emulated", "target": "sm_86",
        "tree": "1" * 40, "tree_before": "1" * 40, "tree_after": "1" * 40, "role": "after", "tests": ["t.py"], "limit": 9,
        "card": card, "memory": {"before": 0, "after": 1}, "cubins": [cubin], "events": "", "log": "",
        "facts": {"code": 0, "signal": None, "killed": "", "peak_bytes": 1, "seconds": 0.5}, "log_sha256": "5" * 64,
    }  # fmt: skip
    document = {
        "format": FORMAT, "bundle": "ab", "base": "v1", "mode": "stack", "refused": {"0002-y:gpu:after": "no card"},
        "toolchain": {"python": "3.12", "distributions": ["torch==2"]}, "machine": {"cards": [card]}, "runs": [run],
    }  # fmt: skip
    return [json.dumps(document, indent=1).encode()]


def _result(file: Path, _: Path) -> None:
    """All that is made of a result before its patch is looked up."""
    try:
        document = parse_json(file.read_bytes())
    except ValueError:
        return
    check_result(document, "result.json")
    for run in document["runs"]:
        contradictions(run["gate"], run["target"], run["card"], run["cubins"])
        summary(run["cubins"])
        read_outcome(Path(os.devnull), run["facts"], b"", run["log_sha256"], run["limit"])


def _plans() -> list[bytes]:
    run = {"name": "n", "patch": "p", "gate": "gpu", "target": "sm_86", "role": "after", "tests": ["t"]}
    plan = {"id": "ab", "key": "1" * 64, "base": "v1", "mode": "stack", "extensions": {}, "runs": [run]}
    return [json.dumps(plan, indent=1).encode()]


def _plan(file: Path, _: Path) -> None:
    try:
        plan = parse_json(file.read_bytes())
    except ValueError:
        return
    check_plan(plan, "bundle.json")


def _events() -> list[bytes]:
    report = {
        "event": "report",
        "id": "t.py::t",
        "when": "call",
        "outcome": "failed",
        "why": "E  no",
        "xfail": False,
    }
    lines = [
        {"event": "collected", "ids": ["t.py::t"]}, {"event": "start", "id": "t.py::t"},
        {**report, "properties": [["ms", 3]]}, {"event": "collect_error", "id": "u.py", "why": "E  no"},
        {"event": "collect_skip", "id": "v.py", "why": "no card"}, {"event": "finish", "status": 1},
    ]  # fmt: skip
    return ["".join(json.dumps(line) + "\n" for line in lines).encode()]


def _outcome(file: Path, _: Path) -> object:
    facts = {"code": 1, "signal": None, "killed": "", "peak_bytes": 1, "seconds": 0.5}
    return read_outcome(file, facts, b"", "0" * 64, 9)


TARGETS = (
    Target("patch", _patches, "x.patch", lambda f, _: parse_mail(f.read_bytes(), "x.patch")),
    Target(
        "diff", lambda: [p[p.index(b"diff --git") :] for p in _patches()], "x.diff",
        lambda f, _: parse_diff(f.read_bytes(), "x.diff"),
    ),
    Target("meta", _shipped("series/*/patch.yaml"), "patch.yaml", lambda f, _: read_yaml(f, PatchMeta)),
    Target("lock", _shipped("upstream.lock"), "upstream.lock", lambda f, _: read_lock(f)),
    Target(
        "evidence", lambda: [d[:4000] for d in _shipped("series/*/evidence.jsonl")()], "evidence.jsonl",
        lambda f, _: read_evidence(f),
    ),
    Target("rulings", _records, "rulings.yaml", lambda f, _: read_yaml(f, Rulings)),
    Target("moves", _records, "moves.yaml", lambda f, _: read_yaml(f, Moves)),
    Target("resolutions", _records, "resolutions.yaml", lambda f, _: read_yaml(f, Resolutions)),
    Target("sdist", _tars, "vllm-1.0.tar.gz", lambda f, _: list(read_sdist(f, f.name, is_generated)), packed=True),
    Target(
        "log",
        lambda: [dump_entry(LogEntry("patchq 1", "move", "2026", (FileChange("series/x", b"old", b"new"),)))],
        "000001.json",
        lambda f, _: load_entry(f),
    ),
    Target("pick", _fitting, "x.patch", lambda f, _: _on_a_tree(f.read_bytes())),
    Target("journal", _switch, "journal.json", _pending),
    Target(
        "rebase",
        lambda: [b'{"onto": "v2", "decisions": {"0001-x": {"kind": "skipped", "onto": "x", "source_sha256": "y", "tree": ""}}, "stopped": [], "writing": false}'],
        "state.json",
        _state,
    ),
    Target("result", _results, "result.json", _result),
    Target("plan", _plans, "bundle.json", _plan),
    Target("events", _events, "events.jsonl", _outcome),
)  # fmt: skip


def mutate(seed: bytes, chance: random.Random) -> bytes:
    """A good input with a few things wrong."""
    data = bytearray(seed)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(data) + 1)
        end = min(len(data), at + chance.choice((1, 1, 2, 8, 64, 512)))
        match chance.randrange(8):
            case 0:
                data[at:end] = b""
            case 1:
                data[at:at] = chance.choice(WORDS)
            case 2:
                data[at:end] = chance.choice(WORDS)
            case 3:
                data[at:at] = data[at:end] * chance.choice((1, 2, 50))
            case 4 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 5:
                del data[at:]
            case 6:
                number = chance.choice(
                    (b"0", b"-1", b"1", b"7777777", b"4294967296", b"18446744073709551616")
                )
                data[at:end] = number
            case _:
                lines = bytes(data).splitlines(keepends=True)
                if lines:
                    one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
                    lines[one], lines[two] = lines[two], lines[one]
                    data = bytearray(b"".join(lines))
    return bytes(data)


@contextmanager
def watched(written: list[str]) -> Iterator[Callable[[bool], None]]:
    """Have what this process writes or starts noted while that is asked for; within limits of time and memory."""
    armed = False

    def hook(event: str, args: tuple[object, ...]) -> None:
        if armed and (
            event in WRITES or (event == "open" and isinstance(args[2], int) and args[2] & os.O_ACCMODE)
        ):
            written.append(f"{event} {args[:2]!r}")

    def arm(wanted: bool) -> None:
        nonlocal armed
        signal.alarm(SECONDS if wanted else 0)
        armed = wanted

    def late(_signal: int, _frame: object) -> None:
        raise FoundError(f"not done after {SECONDS} s")

    used = int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    signal.signal(signal.SIGALRM, late)
    sys.addaudithook(hook)
    yield arm
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def try_one(target: Target, data: bytes, top: Path, arm: Callable[[bool], None], written: list[str]) -> str:
    """What is wrong with how a parser takes an input; nothing where it bears it."""
    file = top / "series/0001-x" / target.file
    file.write_bytes(gzip.compress(data, 1) if target.packed else data)
    written.clear()
    try:
        arm(True)
        try:
            target.call(file, top)
        finally:
            arm(False)
    except PatchqError as error:
        if "\n" in error.message or not error.remedy:
            return f"a message of more than a line, or without a remedy: {error.message!r}"
    except BaseException:  # noqa: BLE001
        return traceback.format_exc(limit=-3)
    return f"it wrote: {written[0]}" if written else ""


def fuzz(
    seed: int, seconds: float, names: list[str], keep: Path, rounds: int | None = None
) -> tuple[int, str]:
    """Try inputs for so long, or so many rounds of one each; give how many, and the first finding. For a process of its own."""
    chance = random.Random(seed)  # noqa: S311
    targets = [t for t in TARGETS if not names or t.name in names]
    seeds = {t.name: t.seeds() for t in targets}
    end, written = time.monotonic() + seconds, []
    with tempfile.TemporaryDirectory() as made, watched(written) as arm:
        top = Path(made)
        (top / "series/0001-x").mkdir(parents=True)
        for number in itertools.count() if rounds is None else range(rounds):
            if time.monotonic() > end:
                break
            for target in targets:
                data = mutate(chance.choice(seeds[target.name]), chance)
                wrong = try_one(target, data, top, arm, written)
                if wrong:
                    found = keep / f"{target.name}-{seed}-{number}"
                    found.write_bytes(data)
                    return number * len(targets), f"{found}: {target.name}: {wrong}"
    return (number + 1) * len(targets), ""


def main() -> int:
    """The command line of ci/fuzz."""
    parser = argparse.ArgumentParser(prog="ci/fuzz")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], choices=[t.name for t in TARGETS])
    given = parser.parse_args()
    keep = Path(tempfile.gettempdir())
    count, found = fuzz(given.seed, given.minutes * 60, given.only, keep)
    print(f"{count} inputs from seed {given.seed}: {found or 'all were borne'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
