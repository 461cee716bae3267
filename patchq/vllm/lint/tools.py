"""Upstream's tools at the tree's versions, in an environment of their own, and a tree on disk that they run over."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked, scratch_dir, write_atomically
from patchq.git.objects import EXECUTABLE, SUBMODULE, SYMLINK
from patchq.git.trees import diff_trees
from patchq.testing.environment import key_of_facts
from patchq.vllm.installing import PIP_INSTALL, run_step

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import TracebackType

    from patchq.git.objects import Entry, Objects
    from patchq.progress import Progress


def ensure_tools(requirements: Sequence[str], progress: Progress) -> Path:
    """The directory of programs of an environment that has just these, made where it is not there.

    Raises:
        EnvironmentLacksError: pip cannot make it; its words are quoted.
    """
    wanted = sorted({*requirements, "PyYAML", "regex"})
    key = key_of_facts(wanted, sys.version_info[:2])
    directory = cache_dir() / "lint" / "tools" / key
    note = directory / "tools.json"
    if note.is_file():
        return directory / "bin"
    with locked(f"lint-tools-{key}", "installing upstream's linters"):
        if not note.is_file():
            shutil.rmtree(directory, ignore_errors=True)
            directory.parent.mkdir(parents=True, exist_ok=True)
            env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
            failed, remedy = "upstream's linters cannot be installed", "Check the network and pip's settings."
            with progress.task("installing upstream's linters", total=None, unit="seconds") as step:
                run_step([sys.executable, "-m", "venv", str(directory)], env, step, failed, remedy)
                python = str(directory / "bin" / "python")
                run_step([python, *PIP_INSTALL, *wanted], env, step, failed, remedy)
            write_atomically(note, json.dumps(wanted).encode())
    return directory / "bin"


class Bench:
    """A tree on disk that becomes one tree after another; only what differs is written. Use as a context manager."""

    def __init__(self, objects: Objects, programs: Path) -> None:
        self.objects = objects
        self.programs = programs
        self.top = Path(tempfile.mkdtemp(prefix="lint-", dir=scratch_dir()))
        self._tree: str | None = None

    def __enter__(self) -> Bench:  # noqa: PYI034
        """Nothing is written before the first tree."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Take the tree away."""
        shutil.rmtree(self.top, ignore_errors=True)

    def become(self, tree: str) -> None:
        """Have the files of a tree."""
        for change in diff_trees(self.objects, self._tree, tree):
            self._write(change.path, change.new)
        self._tree = tree

    def restore(self, paths: Iterable[str]) -> None:
        """Have some files again as the tree has them, after a tool that may have written."""
        for path in paths:
            self._write(path, self.objects.lookup(self._tree or "", path))

    def _write(self, path: str, entry: Entry | None) -> None:
        target = self.top / path
        if os.path.lexists(target):
            target.unlink()
        if entry is None or entry.mode == SUBMODULE:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        data = self.objects.blob(entry.oid)
        if entry.mode == SYMLINK:
            target.symlink_to(os.fsdecode(data))
        else:
            target.write_bytes(data)
            target.chmod(0o755 if entry.mode == EXECUTABLE else 0o644)

    def run(
        self, command: Sequence[str], stdin: bytes = b"", **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one of the programs in the tree; its exit code is the caller's to read."""
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "GIT_", "RUFF_", "MYPY"))}
        clean |= {
            "PATH": f"{self.programs}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONDONTWRITEBYTECODE": "1",
            "NO_COLOR": "1",
            **env,
        }
        program = str(self.programs / command[0])
        return subprocess.run(
            [program, *command[1:]], cwd=self.top, input=stdin, env=clean, capture_output=True, check=False
        )
