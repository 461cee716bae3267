"""The wheels that another machine needs, fetched for its Python and checked by pip."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import subprocess
import sys
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked, write_atomically
from patchq.errors import EnvironmentLacksError
from patchq.gpu.parcel import sha256_of_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.progress import Progress

GLIBCS = (5, 12, 17, 24, 26, 27, 28, 31, 34)
"""Minor versions of glibc 2 that wheels are built for; 2.34 is RHEL 9's and older than Ubuntu 22.04's."""


def normal(name: str) -> str:
    """A distribution's name as the index compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def without(pins: Sequence[str], have: Sequence[str]) -> tuple[str, ...]:
    """The pins whose distribution is not among those that a machine has, whatever its version there."""
    names = {normal(re.split(r"[^\w.-]", line.strip(), maxsplit=1)[0]) for line in have if line.strip()}
    return tuple(p for p in pins if normal(re.split(r"[^\w.-]", p, maxsplit=1)[0]) not in names)


def fetch_wheels(pins: Sequence[str], python: str, progress: Progress) -> dict[str, Path]:
    """Wheels for a Python on Linux and this machine's kind of processor, by file name.

    Args:
        pins: distributions, as pip names them.
        python: such as `3.12`.
        progress: told how far it is.

    Raises:
        EnvironmentLacksError: pip cannot get one; what it said is quoted.
    """
    if not pins:
        return {}
    top = cache_dir() / "wheels" / f"{python}-{platform.machine()}"
    top.mkdir(parents=True, exist_ok=True)
    text = "\n".join(sorted(pins)) + "\n"
    note = top / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
    if note.is_file():
        known: dict[str, str] = json.loads(note.read_bytes())
        if all((top / n).is_file() and sha256_of_file(top / n) == digest for n, digest in known.items()):
            return {name: top / name for name in sorted(known)}
    with locked(f"wheels-{python}", f"fetching wheels for Python {python}"):
        names = _download(text, top, python, len(pins), progress)
        write_atomically(note, json.dumps({n: sha256_of_file(top / n) for n in names}, indent=1).encode())
    return {name: top / name for name in names}


def _download(text: str, top: Path, python: str, count: int, progress: Progress) -> list[str]:
    requirements = top / "requirements.txt"
    requirements.write_text(text, encoding="utf-8")
    machine = platform.machine()
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in GLIBCS]
    platforms += [f"manylinux{year}_{machine}" for year in ("1", "2010", "2014")] + [f"linux_{machine}"]
    command = [sys.executable, "-m", "pip", "download", "--no-input", "--no-deps", "--only-binary=:all:"]
    command += ["--progress-bar=off", "--disable-pip-version-check", "--implementation=cp"]
    command += [f"--python-version={python}", *(f"--platform={p}" for p in platforms)]
    command += ["-d", str(top), "-r", str(requirements)]
    names: list[str] = []
    tail: list[str] = []
    with (
        progress.task(f"fetching wheels for Python {python}", total=count, unit="files") as step,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ) as process,
    ):
        for raw in process.stdout or ():
            line = raw.decode("utf-8", "replace").strip()
            tail = [*tail[-30:], line] if not line.startswith("WARNING") else tail
            found = re.search(r"(?:Saved|File was already downloaded) (.+\.whl)$", line)
            if found:
                names.append(found[1].rpartition("/")[2])
                step(1)
    if process.returncode or len(names) != count:
        said = next((t for t in tail if t.startswith("ERROR")), tail[-1] if tail else "nothing")
        raise EnvironmentLacksError(
            f"pip cannot get the wheels for Python {python}: {said[:300]}.",
            "Check the network and pip's settings, or choose another --python-version.",
        )
    return sorted(names)
