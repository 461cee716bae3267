"""Patches that come in from outside: a patch file, a mailbox, a commit, a range or a branch of a clone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchq.errors import InputError, RefusedError
from patchq.git.commits import read_commit, resolve
from patchq.git.mail import MailPatch, diff_trees, format_mail, parse_mail
from patchq.git.run import GitError
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from patchq.git.checkout import Checkout
    from patchq.git.commits import Commit
    from patchq.git.objects import Objects

MAX_BYTES = 256 * 1024 * 1024
"""A larger file is no mailbox of patches."""
MAX_COMMITS = 1000
_START = re.compile(rb"^From [^\n]*\d\d?:\d\d:\d\d \d{4}\r?$", re.MULTILINE)
"""The line with which a mail begins in a mailbox (git's builtin/mailsplit.c, is_from_line)."""


@dataclass(frozen=True)
class Incoming:
    """A patch from outside: where it comes from, for messages, and what it says."""

    where: str
    mail: MailPatch
    title: str = field(default="")


def from_file(path: Path) -> list[Incoming]:
    """The patches of a file: one mail, or a mailbox of several.

    Raises:
        InputError: it cannot be read, or one of them is not well formed; at file:line.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"{path} is larger than {MAX_BYTES} bytes.", "This is no mailbox of patches.")
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror}.", "Name a patch file or a mailbox."
        ) from None
    starts = [m.start() for m in _START.finditer(data)] or [0]
    if starts[0] != 0:
        starts = [0]
    ends = [*starts[1:], len(data)]
    found = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), start=1):
        where = str(path) if len(starts) == 1 else f"{path} (mail {number})"
        found.append(Incoming(where, parse_mail(data[start:end], where)))
    return found


def from_commits(checkout: Checkout, objects: Objects, revision: str, known: Iterable[str]) -> list[Incoming]:
    """The commits that a revision means: `A..B` the range, a branch what it has above the series, else the one commit.

    Args:
        checkout: the repository.
        objects: its objects, with the store's.
        revision: what a person named.
        known: ids of trees that are the series' own, where a branch is taken to begin.

    Raises:
        InputError: it names nothing, or a branch does not show where it begins.
        RefusedError: a merge is among the commits.
    """
    if "..." in revision or revision.startswith("-"):
        raise InputError(f"{revision!r} is not a commit, a branch, or a range A..B.", "Name one of these.")
    if ".." in revision:
        ids = _range(checkout, revision)
    elif checkout.run(["show-ref", "--verify", "--", f"refs/heads/{revision}"], check=False):
        ids = _branch(checkout, objects, revision, set(known))
    else:
        commit = resolve(checkout.git_dir, revision)
        if commit is None:
            raise InputError(
                f"{revision!r} is neither a file nor a commit of {checkout.top}.",
                "Name a file, or a commit with --repo.",
            )
        ids = [commit]
    if not ids:
        raise InputError(f"{revision} has no commit.", "Name the commits as A..B.")
    return [_from_commit(checkout, objects, i) for i in ids]


def _range(checkout: Checkout, revision: str) -> list[str]:
    try:
        said = checkout.run(
            [
                "rev-list",
                "--reverse",
                "--topo-order",
                f"--max-count={MAX_COMMITS + 1}",
                "--end-of-options",
                revision,
            ]
        )
    except GitError:
        raise InputError(
            f"{revision!r} is not a range of commits in {checkout.top}.", "Write A..B."
        ) from None
    ids = said.decode().split()
    if len(ids) > MAX_COMMITS:
        raise InputError(f"{revision} has more than {MAX_COMMITS} commits.", "Name fewer.")
    return ids


def _branch(checkout: Checkout, objects: Objects, branch: str, known: set[str]) -> list[str]:
    """A branch's commits above the series, or above every other branch and tag."""
    found: list[str] = []
    at = str(resolve(checkout.git_dir, f"refs/heads/{branch}"))
    for _ in range(MAX_COMMITS):
        commit = read_commit(objects, at)
        if commit.tree in known:
            return found[::-1]
        found.append(at)
        if len(commit.parents) != 1 or not objects.has(commit.parents[0]):
            break
        at = commit.parents[0]
    others = [f"--exclude={branch}", "--branches", "--tags", "--remotes"]
    said = checkout.run(["rev-list", "--reverse", "--topo-order", f"refs/heads/{branch}", "--not", *others])
    ids = os.fsdecode(said).split()
    tip = resolve(checkout.git_dir, f"refs/heads/{branch}")
    roots = [i for i in ids if not read_commit(objects, i).parents]
    if not ids or roots or len(ids) > MAX_COMMITS:
        raise InputError(
            f"the branch {branch} does not show where it begins: no commit under it is the base or a step of the series.",
            f"Name the commits: A..{branch}, or {str(tip)[:12]} for the last one alone.",
        )
    return ids


def _from_commit(checkout: Checkout, objects: Objects, commit_id: str) -> Incoming:
    commit = read_commit(objects, commit_id)
    where = f"commit {commit_id[:12]} ({commit.title[:60]})"
    if len(commit.parents) != 1:
        what = "a merge" if commit.parents else "the first commit of its history"
        raise RefusedError(f"{where} is {what}.", "Name commits that have one parent.")
    before: Commit = read_commit(objects, commit.parents[0])
    diff = diff_trees(checkout.git_dir, before.tree, commit.tree, objects.alternates)
    return Incoming(where, parse_mail(format_mail(commit.author, commit.message, diff, where), where))


def names_of(found: Iterable[Incoming]) -> str:
    """What comes in, for a message."""
    return listed([incoming.mail.title for incoming in found])
