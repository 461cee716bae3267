"""Broken inputs for the parsers of what comes from outside: made from good ones, from a seed, each borne or a finding.

A finding is a traceback (anything but patchq's own errors), a write to the disk, a process started, or more time or
memory than one input may take.
"""

from __future__ import annotations

import argparse
import gzip
import io
import itertools
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

from patchq.engine.log import Entry, FileChange, dump_entry, load_entry
from patchq.errors import PatchqError
from patchq.git.diff import parse_diff
from patchq.git.mail import parse_mail
from patchq.series.evidence import read_evidence
from patchq.series.lock import read_lock
from patchq.series.moves import Moves
from patchq.series.patch import PatchMeta
from patchq.series.resolutions import Resolutions
from patchq.series.rulings import Rulings
from patchq.series.yamlfile import read_yaml
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
        lambda: [dump_entry(Entry("patchq 1", "move", "2026", (FileChange("series/x", b"old", b"new"),)))],
        "000001.json",
        lambda f, _: load_entry(f),
    ),
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
