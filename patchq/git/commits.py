"""Commits: read, made with ids that are the same on every machine, and found by name."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from patchq.git.run import GitError, run

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.git.objects import Objects


class Identity(NamedTuple):
    """An author: name, mail address, and a moment (seconds since the epoch, and a zone such as `+0200`)."""

    name: str
    email: str
    seconds: int
    zone: str

    def __str__(self) -> str:
        return f"{self.name} <{self.email}> {self.seconds} {self.zone}"


class Commit(NamedTuple):
    """A commit as the engine sees it."""

    tree: str
    parents: tuple[str, ...]
    author: Identity
    message: str

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]


def put_commit(objects: Objects, commit: Commit) -> str:
    """Make a commit object whose committer is its author, so that its id is the same on every machine."""
    lines = [f"tree {commit.tree}", *(f"parent {p}" for p in commit.parents)]
    lines += [f"author {commit.author}", f"committer {commit.author}", "", commit.message]
    return objects.put("commit", "\n".join(lines).encode("utf-8", "surrogateescape"))


def read_commit(objects: Objects, name: str) -> Commit:
    """Read a commit.

    Raises:
        KeyError: there is no commit of that name.
    """
    kind, data = objects.get(name)
    if kind != "commit":
        raise KeyError(name)
    head, _, message = data.partition(b"\n\n")
    tree, parents, who, encoding = "", [], b"", "utf-8"
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == b"tree":
            tree = value.decode()
        elif key == b"parent":
            parents.append(value.decode())
        elif key == b"author":
            who = value
        elif key == b"encoding":
            encoding = value.decode("ascii", "replace")
    return Commit(tree, tuple(parents), _identity(who, encoding), _text(message, encoding))


def _identity(value: bytes, encoding: str) -> Identity:
    """The author line of a commit; a moment that cannot be read is the epoch, as in git."""
    person, _, when = value.rpartition(b"> ")
    name, _, mail = person.rpartition(b" <")
    moment = re.fullmatch(rb"(\d+) ([+-]\d{4})", when)
    seconds, zone = (int(moment[1]), moment[2].decode()) if moment else (0, "+0000")
    return Identity(_text(name, encoding), _text(mail, encoding), seconds, zone)


def _text(data: bytes, encoding: str = "utf-8") -> str:
    """Other people's bytes as text: as declared, else UTF-8, else Latin-1, which nothing fails."""
    for name in (encoding, "utf-8"):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1")


def resolve(git_dir: Path, revision: str) -> str | None:
    """The commit that a revision names in a repository, or None."""
    try:
        found = run(
            ["rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"], cwd=git_dir
        )
    except GitError:
        return None
    return found.decode().strip() or None
