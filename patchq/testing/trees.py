"""Trees for tests: made from the store by hard links to one file a blob, checked before and after each use.

Where tests run with the tree mounted read-only, the links cannot be written through. Where the kernel gives no such
mount, files are copied, so that a test that writes spoils nothing but its own tree, and is found out afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, write_atomically
from patchq.git.objects import EXECUTABLE, SUBMODULE, SYMLINK
from patchq.jsontext import parse_json
from patchq.testing.environment import key_of_facts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from patchq.git.objects import Objects

KEPT = 60
"""Trees kept in the cache; the ones used longest ago go first."""
UNUSED_SECONDS = 24 * 3600
"""A tree used since then is never taken away: another patchq may be at it."""

Seal = dict[str, list[int]]
"""Per path of a tree: type and mode, inode, size, mtime in ns, and (where nothing else links it) ctime in ns."""


class Trees:
    """The test trees of one cache; safe to use from several threads.

    Args:
        objects: where trees are read.
        overlay: files put into each tree, by path.
        linked: share files between trees by hard links; else copy them.
    """

    def __init__(self, objects: Objects, overlay: Mapping[str, Path], *, linked: bool) -> None:
        self.objects = objects
        self.overlay = overlay
        self.linked = linked
        self._top = cache_dir() / "trees"
        self._farm = cache_dir() / "farm"
        self._lock = threading.Lock()
        self._overlay_key = key_of_facts(
            sorted((p, str(f), f.stat().st_size) for p, f in overlay.items()), linked
        )
        self._top.mkdir(exist_ok=True)
        self._farm.mkdir(exist_ok=True)

    def make(self, tree: str) -> Path:
        """The directory that holds a tree, sound: made where it is not there, made anew where it was tampered with."""
        path = self._top / f"{tree}-{self._overlay_key}"
        with self._lock:
            if path.is_dir():
                if not self.changed(path):
                    os.utime(path)
                    return path
                self.discard(path)
            self._make(tree, path)
        return path

    def changed(self, path: Path) -> list[str]:
        """The paths of a made tree that are not as they were made: written, added, removed, retyped."""
        try:
            sealed: Seal = parse_json(_seal_file(path).read_bytes())
        except (OSError, ValueError):
            sealed = {}
        if not isinstance(sealed, dict) or not sealed:
            return ["(the tree has no seal)"]
        now = _seal(path, self.linked)
        return sorted(p for p in sealed.keys() | now.keys() if sealed.get(p) != now.get(p))

    def discard(self, path: Path) -> None:
        """Take a tampered tree away, and the shared files that it was tampered through."""
        for name in self.changed(path):
            with contextlib.suppress(OSError, ValueError, KeyError):
                inode = parse_json(_seal_file(path).read_bytes())[name][1]
                for file in self._farm.glob("*/*"):
                    if file.stat().st_ino == inode:
                        file.unlink()
        doomed = path.with_name(f".{path.name}.{os.getpid()}.doomed")
        path.rename(doomed)
        _seal_file(path).unlink(missing_ok=True)
        shutil.rmtree(doomed, ignore_errors=True)

    def _make(self, tree: str, path: Path) -> None:
        draft = path.with_name(f".{path.name}.{os.getpid()}.new")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir()
        made = {""}
        for name, entry in self.objects.walk(tree):
            folder = name.rpartition("/")[0]
            if folder not in made:
                (draft / folder).mkdir(parents=True, exist_ok=True)
                made.add(folder)
            target = f"{draft}/{name}"
            if entry.mode == SYMLINK:
                os.symlink(self.objects.blob(entry.oid), os.fsencode(target))  # noqa: PTH211
            elif entry.mode != SUBMODULE:
                self._put(self._file(entry.oid, executable=entry.mode == EXECUTABLE), target)
        for name, source in self.overlay.items():
            (draft / name).parent.mkdir(parents=True, exist_ok=True)
            self._put(str(source), f"{draft}/{name}")
        write_atomically(_seal_file(path), json.dumps(_seal(draft, self.linked)).encode())
        try:
            draft.rename(path)
        except OSError:
            shutil.rmtree(draft)
            if not path.is_dir():
                raise

    def _file(self, oid: str, *, executable: bool) -> str:
        """The farm's file for a blob."""
        path = f"{self._farm}/{oid[:2]}/{oid[2:]}{'x' if executable else ''}"
        if not os.path.exists(path):  # noqa: PTH110
            os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
            temporary = f"{path}.{os.getpid()}.new"
            with open(temporary, "wb") as file:  # noqa: PTH123
                file.write(self.objects.blob(oid))
            os.chmod(temporary, 0o555 if executable else 0o444)  # noqa: PTH101
            os.replace(temporary, path)  # noqa: PTH105
        return path

    def _put(self, source: str, target: str) -> None:
        if self.linked:
            try:
                os.link(source, target)
            except OSError as error:
                if error.errno not in {errno.EMLINK, errno.EXDEV, errno.EPERM}:
                    raise
            else:
                return
        shutil.copy2(source, target)

    def prune(self) -> None:
        """Take away the trees that were used longest ago."""
        found = sorted(
            (p for p in self._top.iterdir() if p.is_dir()), key=lambda p: p.stat().st_mtime, reverse=True
        )
        for path in found[KEPT:]:
            if time.time() - path.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(path, ignore_errors=True)
                _seal_file(path).unlink(missing_ok=True)


def _seal_file(path: Path) -> Path:
    return path.with_name(path.name + ".json")


def _seal(top: Path, linked: bool) -> Seal:
    seal: Seal = {}
    todo = [str(top)]
    cut = len(str(top)) + 1
    while todo:
        with os.scandir(todo.pop()) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISDIR(status.st_mode):
                    todo.append(entry.path)
                    seal[entry.path[cut:] + "/"] = [status.st_mode]
                else:
                    ctime = 0 if linked else status.st_ctime_ns
                    seal[entry.path[cut:]] = [
                        status.st_mode,
                        status.st_ino,
                        status.st_size,
                        status.st_mtime_ns,
                        ctime,
                    ]
    return seal
