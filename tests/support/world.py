"""A small world for one test: a cache, a home, an upstream tree, a series over it, and the command line."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from patchq import cli

UPSTREAM = {
    "README.md": b"an upstream\n",
    "pkg/__init__.py": b"",
    "pkg/engine.py": b"".join(b"line %d\n" % i for i in range(1, 61)),
    "pkg/model.py": b"def first():\n    return 1\n\n\ndef second():\n    return 2\n\n\ndef third():\n    return 3\n",
    "pkg/dos.py": b"one\r\ntwo\r\nthree\r\nfour\r\n",
    "pkg/bare.py": b"no newline\nat the end",
    "run.sh": b"#!/bin/sh\necho hi\n",
}
EXECUTABLE = {"run.sh"}

IDENTITY = {
    "GIT_AUTHOR_NAME": "A U Thor",
    "GIT_AUTHOR_EMAIL": "author@example.com",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0100",
    "GIT_COMMITTER_NAME": "C O Mitter",
    "GIT_COMMITTER_EMAIL": "committer@example.com",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+0000",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


@dataclass
class Result:
    """What one call of the command line gave."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass
class World:
    """The directories of one test."""

    top: Path

    @property
    def project(self) -> Path:
        return self.top / "project"

    @property
    def upstream(self) -> Path:
        return self.top / "upstream"

    @property
    def cache(self) -> Path:
        return self.top / "cache"

    def git(self, *args: str, cwd: Path, stdin: bytes | None = None, **env: str) -> str:
        """The user's own git, with a pinned identity and date."""
        done = subprocess.run(
            ["git", *args],
            cwd=cwd,
            env={**os.environ, **IDENTITY, **env},
            input=stdin,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def patchq(self, *args: str) -> Result:
        """The command line, in this process."""
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.run(["--root", str(self.project), *args])
        return Result(code, out.getvalue(), err.getvalue())

    def ok(self, *args: str) -> Any:
        """The command line with --json, which must say yes."""
        result = self.patchq(*args, "--json")
        assert result.code == 0, result.err
        return result.json

    def child(self, *args: str, before: str = "", **env: str) -> subprocess.CompletedProcess[bytes]:
        """The command line in a process of its own, after some Python."""
        code = f"{before}\nimport sys\nfrom patchq import cli\nsys.exit(cli.run({['--root', str(self.project), *args]!r}))"
        return subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, check=False
        )

    def write_upstream(self, files: dict[str, bytes] | None = None, at: Path | None = None) -> Path:
        """A plain directory with an upstream's files."""
        top = at or self.upstream
        for name, data in (files or UPSTREAM).items():
            path = top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if name in EXECUTABLE else 0o644)
        return top

    def start(self, files: dict[str, bytes] | None = None) -> None:
        """An empty project whose pinned base `v1` is the upstream directory."""
        self.write_upstream(files)
        (self.project / "series").mkdir(parents=True)
        (self.project / "upstream.lock").write_text("version: 1\nbases: {}\nlanes: {}\n")
        assert self.patchq("upstream", "add", "v1", "--directory", str(self.upstream)).code == 0

    def clone(self, name: str = "clone", files: dict[str, bytes] | None = None) -> Path:
        """A git clone whose only commit, on `main`, is the upstream tree."""
        path = self.write_upstream(files, at=self.top / name)
        self.git("init", "-q", "-b", "main", cwd=path)
        self.git("add", "-A", "-f", cwd=path)
        self.git("commit", "-q", "-m", "upstream", cwd=path)
        return path

    def describe(self, patch: str, **more: Any) -> None:
        """Write a patch.yaml."""
        meta = {
            "id": patch,
            "title": f"[Test] {patch[5:]}",
            "why": "It is wanted.",
            "changes": "A line.",
            "depends": [],
            "tests": [{"gate": "cpu", "run": ["tests/test_it.py"]}],
            "upstream": {"state": "absent", "intent": "hold"},
            "drop_when": "Never.",
            **more,
        }
        directory = self.project / "series" / patch
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "patch.yaml").write_text(yaml.safe_dump(meta, sort_keys=False))

    def commit(self, path: Path, title: str, files: dict[str, bytes | None], body: str = "") -> str:
        """Commit some files of a clone; None takes a file away."""
        for name, data in files.items():
            if data is None:
                (path / name).unlink()
            else:
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                (path / name).write_bytes(data)
        self.git("add", "-A", "-f", cwd=path)
        message = f"{title}\n\n{body}" if body else title
        self.git("commit", "-q", "--allow-empty", "-m", message, cwd=path)
        return self.git("rev-parse", "HEAD", cwd=path)

    def series(
        self, *patches: tuple[str, dict[str, bytes | None]], files: dict[str, bytes] | None = None
    ) -> Path:
        """A series of patches, written by patchq from commits; gives the clone that has them."""
        path = self.clone("author", files)
        for patch, changes in patches:
            self.describe(patch)
            self.commit(path, f"[Test] {patch[5:]}", changes)
        result = self.patchq("refresh", str(path))
        assert result.code == 0, result.err
        return path


def edited(name: str, line: int, text: bytes, files: dict[str, bytes] | None = None) -> bytes:
    """An upstream file with one line replaced."""
    lines = (files or UPSTREAM)[name].splitlines(keepends=True)
    lines[line - 1] = text
    return b"".join(lines)


def three_patches() -> tuple[tuple[str, dict[str, bytes | None]], ...]:
    """A small series: two patches on one file, one that adds, deletes, and changes a mode's worth of other files."""
    first = edited("pkg/engine.py", 10, b"line 10, patched\n")
    second = edited("pkg/engine.py", 40, b"line 40, patched\n", {"pkg/engine.py": first})
    return (
        ("0001-first", {"pkg/engine.py": first}),
        ("0002-second", {"pkg/engine.py": second, "pkg/new/deep.py": b"new\n"}),
        (
            "0003-third",
            {
                "pkg/bare.py": None,
                "pkg/dos.py": b"one\r\ntwo\r\nTHREE\r\nfour\r\n",
                "pkg/added.bin": bytes(range(256)),
            },
        ),
    )


def snapshot(path: Path) -> dict[str, Any]:
    """The whole state of a checkout: files with bytes, modes and times; index; HEAD; refs; what git keeps under way."""
    files = {}
    for directory, names, found in os.walk(path):
        names[:] = [n for n in names if n != ".git"]
        for name in found:
            file = Path(directory) / name
            status = file.lstat()
            content = os.fsencode(file.readlink()) if stat.S_ISLNK(status.st_mode) else file.read_bytes()
            files[file.relative_to(path).as_posix()] = (
                content,
                stat.S_IMODE(status.st_mode),
                status.st_mtime_ns,
            )
    return {"files": files, **git_state(path)}


def git_state(path: Path) -> dict[str, Any]:
    """HEAD, index and refs of a checkout, and what is left lying in its git directory."""

    def git(*args: str) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0"}
        done = subprocess.run(["git", *args], cwd=path, env=env, capture_output=True, check=False)
        return done.stdout.decode("utf-8", "surrogateescape")

    git_dir = Path(git("rev-parse", "--absolute-git-dir").strip())
    return {
        "head": git("symbolic-ref", "-q", "HEAD") or git("rev-parse", "HEAD"),
        "index": git("ls-files", "-s", "-v"),
        "refs": git("for-each-ref"),
        "status": git("status", "--porcelain", "--ignored"),
        "left": sorted(e.name for e in git_dir.iterdir() if "patchq" in e.name or e.name.endswith(".lock")),
    }


def contents(path: Path) -> dict[str, bytes]:
    """The files of a checkout and their bytes."""
    return {name: value[0] for name, value in snapshot(path)["files"].items()}
