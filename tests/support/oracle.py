"""Git itself as the judge: throwaway repositories in which its own `apply`, `am` and `diff` say what is right."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from patchq.git.mail import DIFF_OPTIONS
from patchq.git.objects import EXECUTABLE, REGULAR, SYMLINK, Entry, Objects
from tests.support.world import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from patchq.git.mail import MailPatch

MAIL = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\nFrom: A U Thor <author@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0100\nSubject: [Test] it\n\n---\n\n"
"""The head of a mail with nothing special about it; a diff goes behind."""


class File(NamedTuple):
    """A file of a tree: content and git mode."""

    data: bytes
    mode: int = REGULAR


def executable(data: bytes) -> File:
    """A file that may be run."""
    return File(data, EXECUTABLE)


def link(target: bytes) -> File:
    """A symbolic link."""
    return File(target, SYMLINK)


@dataclass(frozen=True)
class Oracle:
    """A git repository that a test may do anything to."""

    path: Path

    def start(self) -> Oracle:
        """Make it."""
        self.path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        return self

    def git(
        self, *args: str, stdin: bytes = b"", check: bool = True, **env: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run git here, with a pinned identity and none of the user's settings."""
        done = subprocess.run(
            ["git", *args],
            cwd=self.path,
            env={**os.environ, **IDENTITY, **env},
            input=stdin,
            capture_output=True,
            check=False,
        )
        if check:
            assert done.returncode == 0, (args, done.stderr.decode())
        return done

    def says(self, *args: str, stdin: bytes = b"") -> str:
        """What a git command prints."""
        return self.git(*args, stdin=stdin).stdout.decode("utf-8", "surrogateescape").strip()

    def tree(self, files: Mapping[str, File | bytes]) -> str:
        """The id of a tree of these files, made by git."""
        index = self.path / ".git" / "oracle-index"
        index.unlink(missing_ok=True)
        stream = b""
        for name, given in files.items():
            file = given if isinstance(given, File) else File(given)
            oid = self.says("hash-object", "-w", "--stdin", "-t", "blob", stdin=file.data)
            stream += b"%o %s\t%s\0" % (file.mode, oid.encode(), os.fsencode(name))
        env = {"GIT_INDEX_FILE": str(index)}
        self.git("update-index", "-z", "--index-info", stdin=stream, **env)
        return self.git("write-tree", **env).stdout.decode().strip()

    def diff(self, old: str, new: str, *options: str) -> bytes:
        """Git's diff between two trees, in the form that bodies have, or with other options."""
        return self.git("diff-tree", "-r", *(options or DIFF_OPTIONS), old, new).stdout

    def applied(self, tree: str, diff: bytes) -> str | None:
        """The tree that `git apply --cached` makes, or None where it refuses."""
        env = {"GIT_INDEX_FILE": str(self.path / ".git" / "oracle-index")}
        self.git("read-tree", tree, **env)
        done = self.git("apply", "--cached", "--whitespace=nowarn", stdin=diff, check=False, **env)
        return self.git("write-tree", **env).stdout.decode().strip() if done.returncode == 0 else None

    def commit(self, tree: str, message: bytes, *parents: str, **env: str) -> str:
        """A commit of a tree, its message kept to the letter."""
        given = [word for p in parents for word in ("-p", p)]
        done = self.git("commit-tree", tree, *given, "-F", "-", stdin=message, **env)
        return done.stdout.decode().strip()

    def am(self, commit: str, *mails: bytes) -> str | None:
        """HEAD after `git am` of mails on a commit, as design.md calls it; None where it refuses."""
        self.git("checkout", "-q", "-f", "--detach", commit)
        for number, mail in enumerate(mails):
            (self.path / ".git" / f"mail-{number}").write_bytes(mail)
        names = [f".git/mail-{number}" for number in range(len(mails))]
        done = self.git("am", "-q", "--keep-non-patch", "--keep-cr", *names, check=False)
        if done.returncode:
            self.git("am", "--abort", check=False)
            return None
        return self.says("rev-parse", "HEAD")

    def objects(self) -> Objects:
        """Its objects, as the engine reads them; to be closed."""
        return Objects(self.path / ".git")


def files_of(objects: Objects, tree: str) -> dict[str, File]:
    """The files of a tree as the engine reads them."""

    def rows() -> Iterator[tuple[str, File]]:
        for path, entry in objects.walk(tree):
            yield path, File(objects.blob(entry.oid), entry.mode)

    return dict(rows())


def touched(patch: MailPatch, written: Mapping[str, Entry | None]) -> bool:
    """Whether what was written is exactly what the patch names as its results."""
    return set(written) == {p for c in patch.changes for p in ((c.new_path,) if c.copied else c.paths) if p}
