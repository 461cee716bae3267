"""A user's working tree, looked at and never written: where it is, what its HEAD is, what is dirty in it."""

from __future__ import annotations

import contextlib
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patchq.errors import InputError, RefusedError
from patchq.git.objects import Entry, Objects, object_id
from patchq.git.run import GitError, Running, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

UNDERWAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "sequencer/todo": "a cherry-pick or a revert of several commits",
    "BISECT_LOG": "a bisection",
}
"""What git keeps in a git directory while it is in the middle of something."""

_DECIDING = r"^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|sparsecheckout)|filter\..*)$"
"""The user's settings that decide what files in a work tree look like."""
_WORKTREE_SETTINGS = ("core.autocrlf", "core.eol", "core.filemode", "core.symlinks", "core.ignorecase")


class Checkout(NamedTuple):
    """A git working tree.

    Attributes:
        top: its top directory.
        git_dir: its own git directory (HEAD and index are here).
        common_dir: the repository's git directory (objects and branches are here).
        config: settings for commands that touch its files: the user's own line endings, and no filter.
        sparse: whether it is a sparse checkout.
        ignore_case: whether its file system is declared to fold case.
    """

    top: Path
    git_dir: Path
    common_dir: Path
    config: tuple[str, ...] = ()
    sparse: bool = False
    ignore_case: bool = False

    @property
    def object_dir(self) -> Path:
        """Where its objects are."""
        return self.common_dir / "objects"

    def run(
        self,
        args: Sequence[str],
        *,
        stdin: bytes | None = None,
        index: Path | None = None,
        check: bool = True,
    ) -> bytes:
        """Run a git command in it; `index` stands in for its index file.

        Raises:
            GitError: the command failed.
        """
        with self.start(args, index=index) as running:
            return running.output(stdin or b"", check=check)

    def start(self, args: Sequence[str], *, index: Path | None = None) -> Running:
        """Start a git command in it; arguments as `run`."""
        env = {"GIT_INDEX_FILE": str(index)} if index else None
        return Running(args, cwd=self.top, env=env, config=(*self.config, "protocol.allow=never"))

    def objects(self, *alternates: Path) -> Objects:
        """Its objects, with those of other repositories where named."""
        return Objects(self.common_dir, alternates)


class Head(NamedTuple):
    """Where a checkout stands.

    Attributes:
        commit: HEAD's commit id.
        ref: the branch it is on, in full; None where HEAD is detached.
        dirty: tracked files that differ from HEAD, in the index or in the work tree.
        unmerged: files in conflict.
    """

    commit: str
    ref: str | None
    dirty: tuple[str, ...] = ()
    unmerged: tuple[str, ...] = ()

    @property
    def branch(self) -> str | None:
        """The branch's short name."""
        return self.ref.removeprefix("refs/heads/") if self.ref else None


def open_checkout(path: Path) -> Checkout:
    """Look at a path as the top of a git working tree.

    Raises:
        InputError: it is not one; the message says what it is.
    """
    make = "Name the top directory of a vLLM git clone, or make a checkout with patchq apply --create."
    if not path.exists():
        raise InputError(
            f"{path} does not exist.",
            f"Name a vLLM git clone, or make a checkout: patchq apply --create {path}",
        )
    if not path.is_dir():
        raise InputError(f"{path} is not a directory.", make)
    with Running(["config", "-z", "--get-regexp", _DECIDING], cwd=path, users=True) as listing:
        safe, said = _find(path, make)
        settings = _settings(listing.output(check=False))
    git_dir, common, object_format, shown = os.fsdecode(said).rstrip("\n").split("\n", 3)
    if object_format != "sha1":
        raise InputError(f"{path} uses {object_format} object ids, and upstream's are sha1.", make)
    top = Path(shown)
    if top != path.resolve():
        raise InputError(
            f"{path} is a directory inside the repository {top}, not a checkout of its own.", make
        )
    config = [*safe, *(f"{k}={settings[k]}" for k in _WORKTREE_SETTINGS if k in settings)]
    for name in {k.rpartition(".")[0] for k in settings if k.startswith("filter.")}:
        config += [f"{name}.clean=", f"{name}.smudge=", f"{name}.process=", f"{name}.required=false"]
    return Checkout(
        top=top,
        git_dir=Path(git_dir),
        common_dir=(path.resolve() / common).resolve(),
        config=tuple(config),
        sparse=settings.get("core.sparsecheckout") == "true",
        ignore_case=settings.get("core.ignorecase") == "true",
    )


def _find(path: Path, make: str) -> tuple[tuple[str, ...], bytes]:
    """What git says of where a checkout is, and the setting without which it would not.

    Raises:
        InputError: git does not know it, or does not trust it; `make` is what to do then.
    """
    safe: tuple[str, ...] = ()
    asked = ["--absolute-git-dir", "--git-common-dir", "--show-object-format", "--show-toplevel"]
    try:
        try:
            said = run(["rev-parse", *asked], cwd=path)
        except GitError as error:
            if "dubious ownership" not in error.stderr or not _user_trusts(path):
                raise
            safe = (f"safe.directory={path.resolve()}",)
            said = run(["rev-parse", *asked], cwd=path, config=safe)
    except GitError as error:
        if "dubious ownership" in error.stderr:
            raise InputError(
                f"{path} belongs to another user, and git does not trust it.",
                f"If you do: git config --global --add safe.directory {path.resolve()}",
            ) from None
        if "must be run in a work tree" in error.stderr:
            raise InputError(f"{path} is a git directory without a working tree.", make) from None
        raise InputError(f"{path} is not a git repository.", make) from None
    return safe, said


def read_head(checkout: Checkout) -> Head:
    """Where a checkout stands and what is dirty in it; content is compared where file times differ.

    Raises:
        InputError: it has no commit yet.
        RefusedError: its index cannot be read.
    """
    with reading_head(checkout) as head:
        return head()


@contextlib.contextmanager
def reading_head(checkout: Checkout) -> Iterator[Callable[[], Head]]:
    """As `read_head`, while other things are done: git looks from now on, and what is given waits for its answer."""
    options = ["--branch", "-z", "--untracked-files=no", "--ignore-submodules=all", "--no-renames"]
    with checkout.start(["status", "--porcelain=v2", *options]) as status:
        yield functools.cache(lambda: _head(checkout, status))


def _head(checkout: Checkout, status: Running) -> Head:
    try:
        said = status.output()
    except GitError as error:
        raise RefusedError(
            f"{checkout.top}: git status fails: {error.reason}.", "Mend the repository first."
        ) from None
    commit, ref = "", None
    dirty: list[str] = []
    unmerged: list[str] = []
    for line in os.fsdecode(said).split("\0"):
        if line.startswith("# branch.oid "):
            commit = line[13:]
        elif line.startswith("# branch.head ") and line[14:] != "(detached)":
            ref = "refs/heads/" + line[14:]
        elif line.startswith("1 "):
            dirty.append(line.split(" ", 8)[8])
        elif line.startswith("u "):
            unmerged.append(line.split(" ", 10)[10])
    if len(commit) != 40:  # noqa: PLR2004
        raise InputError(f"{checkout.top} has no commit yet.", "Check out a vLLM commit first.")
    return Head(commit, ref, tuple(dirty), tuple(unmerged))


def untracked_files(checkout: Checkout) -> tuple[str, ...]:
    """The files that git does not know and that no ignore rule covers."""
    said = checkout.run(["ls-files", "--others", "--exclude-standard", "-z"])
    return tuple(name for name in os.fsdecode(said).split("\0") if name)


def refuse_underway(checkout: Checkout) -> None:
    """Refuse a checkout in which git is in the middle of something.

    Raises:
        RefusedError: it names what is under way.
    """
    for name, what in UNDERWAY.items():
        if (checkout.git_dir / name).exists():
            raise RefusedError(
                f"{what} is under way in {checkout.top}.", "Finish or abort it with git, then run this again."
            )


def branch_commit(checkout: Checkout, ref: str) -> str | None:
    """The commit of a branch, or None."""
    found = checkout.run(["rev-parse", "--verify", "--quiet", "--end-of-options", ref], check=False)
    return found.decode().strip() or None


def branches_at(checkout: Checkout, commit: str) -> list[str]:
    """The local branches, in full, whose tip is a commit."""
    return (
        checkout.run(["for-each-ref", "--format=%(refname)", "--points-at", commit, "refs/heads/"])
        .decode()
        .split()
    )


def elsewhere(checkout: Checkout, ref: str) -> Path | None:
    """The other work tree of the repository that has a branch checked out, if any."""
    if checkout.git_dir == checkout.common_dir and not (checkout.common_dir / "worktrees").exists():
        return None
    where = None
    for line in os.fsdecode(checkout.run(["worktree", "list", "--porcelain"])).splitlines():
        if line.startswith("worktree "):
            where = Path(line[9:])
        elif line == f"branch {ref}" and where is not None and where.resolve() != checkout.top:
            return where
    return None


def left_out(checkout: Checkout) -> set[str]:
    """The tracked files that a sparse checkout leaves out of the work tree."""
    if not checkout.sparse:
        return set()
    said = os.fsdecode(checkout.run(["ls-files", "-t", "-z"])).split("\0")
    return {line[2:] for line in said if line.startswith("S ")}


def hash_files(checkout: Checkout, expected: Mapping[str, Entry | None]) -> dict[str, str | None]:
    """The blob id of each file as it lies in the work tree now, read anew; None where there is no file.

    Where the bytes are not the expected blob's, the user's line endings are taken out before hashing. A file that a
    sparse checkout leaves out is not in the answer.
    """
    absent = left_out(checkout)
    found: dict[str, str | None] = {}
    other: list[str] = []
    for name, entry in expected.items():
        path = checkout.top / name
        if name in absent:
            continue
        if path.is_symlink():
            found[name] = object_id("blob", os.fsencode(path.readlink()))
        elif path.is_file():
            found[name] = object_id("blob", path.read_bytes())
            if entry is not None and found[name] != entry.oid and "\n" not in name:
                other.append(name)
        else:
            found[name] = None
    if other:
        fed = os.fsencode("".join(f"{name}\n" for name in other))
        found.update(
            zip(
                other, checkout.run(["hash-object", "--stdin-paths"], stdin=fed).decode().split(), strict=True
            )
        )
    return found


def _settings(said: bytes) -> dict[str, str]:
    """What `git config -z` gave, lower-cased names but for filters'."""
    settings = {}
    for item in os.fsdecode(said).split("\0"):
        name, _, value = item.partition("\n")
        if name:
            settings[name if name.startswith("filter.") else name.lower()] = value
    return settings


def _user_trusts(path: Path) -> bool:
    """Whether the user's own configuration lists the path as a safe directory."""
    asked = ["config", "--global", "-z", "--get-all", "safe.directory"]
    with Running(asked, users=True) as listing:
        listed = listing.output(check=False)
    return bool({"*", str(path.resolve())} & set(os.fsdecode(listed).split("\0")))


def user_identity(checkout: Checkout) -> tuple[str, str] | None:
    """The name and mail address that the user's git would put on a commit here; None where it knows none."""
    found = []
    for name in ("name", "email"):
        said = []
        for key in (f"author.{name}", f"user.{name}"):
            with Running(["config", "--get", key], cwd=checkout.top, users=True) as asked:
                said.append(asked.output(check=False).decode("utf-8", "replace").strip())
        found.append(next((value for value in said if value), ""))
    return (found[0], found[1]) if all(found) else None
