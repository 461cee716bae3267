"""The one place outside the project and outside every checkout where patchq keeps things, and its locks."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import EnvironmentLacksError
from patchq.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator


A_DAY = 24 * 60 * 60
"""Seconds."""


def cache_dir() -> Path:
    """`$PATCHQ_CACHE`, or the platform's cache directory for patchq; made where it is not there.

    Raises:
        EnvironmentLacksError: it cannot be made.
    """
    named = os.environ.get("PATCHQ_CACHE")
    if named:
        path = Path(named)
    else:
        import platformdirs

        path = Path(platformdirs.user_cache_dir("patchq", appauthor=False))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentLacksError(
            f"the cache directory {path} cannot be made: {error.strerror}.",
            "Set PATCHQ_CACHE to a directory of yours.",
        ) from None
    return path.resolve()


def scratch_dir() -> Path:
    """A directory for files that live no longer than a step; what killed steps left there a day ago is taken away."""
    directory = cache_dir() / "scratch"
    directory.mkdir(exist_ok=True)
    for left in directory.iterdir():
        with contextlib.suppress(OSError):
            if time.time() - left.lstat().st_mtime > A_DAY:
                shutil.rmtree(left)
    return directory


def key_of(path: Path) -> str:
    """A file name that stands for a path of this machine."""
    return hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:24]


@contextlib.contextmanager
def locked(name: str, what: str) -> Iterator[None]:
    """Hold a lock while working; a second patchq is told who holds it and since when.

    The lock is the kernel's, so that a dead holder holds nothing.

    Args:
        name: what is locked, as a file name.
        what: what is being done to what, for whoever is kept waiting.

    Raises:
        EnvironmentLacksError: somebody else holds it.
    """
    import filelock

    directory = cache_dir() / "locks"
    directory.mkdir(exist_ok=True)
    note = directory / f"{name}.json"
    lock = filelock.FileLock(directory / f"{name}.lock", timeout=0)
    try:
        lock.acquire()
    except filelock.Timeout:
        holder = _holder(note)
        raise EnvironmentLacksError(
            f"another patchq ({holder}) is at work here.",
            "Wait until it is done, then run this again.",
        ) from None
    try:
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        note.write_bytes(json.dumps({"pid": os.getpid(), "what": what, "since": now}).encode())
        yield
    finally:
        note.unlink(missing_ok=True)
        lock.release()


def _holder(note: Path) -> str:
    try:
        known = parse_json(note.read_bytes())
        return f"process {known['pid']}, {known['what']}, since {known['since']}"
    except (OSError, ValueError, KeyError):
        return "process unknown"


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Have an error of the file system name the path that was written; of a full disk it does not by itself."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise


def write_atomically(path: Path, data: bytes, *, lasting: bool = True) -> None:
    """Put `data` at `path` so that a reader, or a power cut, sees the old content or the new and nothing between.

    What may be lost, or found damaged, in a power cut is written faster with `lasting` off.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with naming(path), temporary.open("wb") as file:
            file.write(data)
            if lasting:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
