"""Switching a checkout from one commit to another: once, all or nothing, and never over anything of the user's.

The order of writes: new file contents are staged in the git directory; each is moved into place by rename; then the
index; then the branch; then HEAD. Each step looks first at what is there, so that running the same switch again after
a kill at any point finishes it.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patchq.cache import naming
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.git.checkout import left_out
from patchq.git.objects import ZERO_OID, Entry
from patchq.git.run import GitError, reason_of
from patchq.git.trees import Change
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.git.checkout import Checkout

STAGE = "patchq-stage"
SYNCING = 16
"""Files that are written to the disk at a time; the file system does many in the time of one."""


class SwitchFailedError(EnvironmentLacksError):
    """The machine did not let a switch be done: no space, read-only, an error of git's.

    Attributes:
        restored: whether the checkout is as it was before.
    """

    def __init__(self, checkout: Checkout, reason: str, *, restored: bool) -> None:
        after = (
            "It is as it was" if restored else "It is half switched, and the next patchq command finishes it"
        )
        super().__init__(
            f"{checkout.top} cannot be switched: {reason}.", f"{after}; mend that and run this again."
        )
        self.restored = restored


class Switch(NamedTuple):
    """A whole switch, as the journal records it.

    Attributes:
        token: marks what this switch leaves behind if it is killed.
        old_commit: HEAD before.
        new_commit: HEAD after.
        old_ref: the branch HEAD was on, None where detached.
        new_ref: the branch HEAD will be on, None for detached.
        branch_was: where `new_ref` pointed before, None where it did not exist.
        drop_ref: a branch to delete at the end, if it still points at `old_commit`.
        changes: path by path.
        drop_to: where `drop_ref` goes back to instead of being deleted.
        files: whether the work tree's files change too; else only the index and the branches do.
    """

    token: str
    old_commit: str
    new_commit: str
    old_ref: str | None
    new_ref: str | None
    branch_was: str | None
    drop_ref: str | None
    changes: tuple[Change, ...]
    drop_to: str | None = None
    files: bool = True

    def as_dict(self) -> dict[str, object]:
        """Plain data for the journal."""
        return self._asdict() | {"changes": [[c.path, c.old, c.new] for c in self.changes]}

    @staticmethod
    def from_dict(data: dict[str, object]) -> Switch:
        """The switch that `as_dict` described.

        Raises:
            TypeError, KeyError, ValueError: it is not one.
        """
        rows = data["changes"]
        if not isinstance(rows, list):
            raise TypeError("changes")
        changes = tuple(Change(p, Entry(*o) if o else None, Entry(*n) if n else None) for p, o, n in rows)
        return Switch(**{**data, "changes": changes})  # type: ignore[arg-type]


def carry_out(checkout: Checkout, switch: Switch, *, resumed: bool = False) -> None:
    """Do a switch, or what is left of it; on an error put back what was done.

    Everything it needs must be among the checkout's objects.

    Args:
        checkout: the checkout.
        switch: what to do; `refuse_in_the_way` has passed.
        resumed: whether it was begun before, so that files may be as before or as after.

    Raises:
        RefusedError: a file is neither as before nor as after (somebody edited it since).
        EnvironmentLacksError: the disk is full, a directory is read-only, the index is locked by another git.
    """
    stage = checkout.git_dir / STAGE
    index_lock = checkout.git_dir / "index.lock"
    try:
        _take_index_lock(stage, index_lock, switch.token)
    except OSError as error:
        shutil.rmtree(stage, ignore_errors=True)
        reason = f"{error.filename or stage}: {error.strerror}"
        if isinstance(error, FileExistsError):
            reason = f"{index_lock} is there: another git process is at work, or one died and left it"
        raise SwitchFailedError(checkout, reason, restored=not resumed) from None
    try:
        try:
            _move(checkout, stage, switch, resumed=resumed)
            _move_refs(checkout, switch)
        except (OSError, GitError) as error:
            raise SwitchFailedError(
                checkout, reason_of(error), restored=_put_back(checkout, stage, switch)
            ) from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
        index_lock.unlink(missing_ok=True)


def _move(checkout: Checkout, stage: Path, switch: Switch, *, resumed: bool) -> None:
    """Bring files and index to the new tree: staged first, then moved."""
    skipped = _skipped(checkout, switch.changes)
    changes = [c for c in switch.changes if c.path not in skipped]
    index = _stage_index(checkout, stage / "index", switch.changes, skipped)
    if not switch.files:
        checkout.run(["update-index", "-q", "--refresh"], index=index, check=False)
        _flush(index).replace(checkout.git_dir / "index")
        return
    _stage_files(checkout, index, stage / "new", [c.path for c in changes if c.new])
    if resumed:
        before = [Change(c.path, c.new, c.old) for c in switch.changes]
        old_index = _stage_index(checkout, stage / "old-index", before, skipped)
        _stage_files(checkout, old_index, stage / "old", [c.path for c in changes if c.old])
        changes = _left_to_do(checkout, stage, changes)
    _move_files(checkout, stage / "new", changes)
    said = os.fsdecode(checkout.run(["update-index", "--refresh"], index=index, check=False))
    stale = {line.rpartition(": ")[0] for line in said.splitlines()}
    wrong = sorted(stale & {c.path for c in changes if c.new})
    if wrong:
        raise GitError(
            ["update-index", "--refresh"], 1, b"", f"{listed(wrong)} did not come out as written".encode()
        )
    _flush(index).replace(checkout.git_dir / "index")


def _take_index_lock(stage: Path, lock: Path, token: str) -> None:
    """Hold git's own index lock, so that no other git writes the index meanwhile; a dead switch's lock is taken over.

    Raises:
        FileExistsError: another git holds it.
    """
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir()
    if lock.exists() and lock.read_bytes() == token.encode():
        return
    mine = stage / "token"
    with naming(mine):
        mine.write_bytes(token.encode())
    os.link(_flush(mine), lock)


def _skipped(checkout: Checkout, changes: Iterable[Change]) -> set[str]:
    """The paths that a sparse checkout leaves out of the work tree; a new file follows its directory."""
    absent = left_out(checkout)
    if not absent:
        return set()

    def follows(path: str) -> bool:
        while "/" in path:
            path = path.rpartition("/")[0]
            if (checkout.top / path).is_dir():
                return False
            if any(a.startswith(path + "/") for a in absent):
                return True
        return False

    return {c.path for c in changes if c.path in absent or (c.old is None and follows(c.path))}


def _stage_index(checkout: Checkout, staged: Path, changes: Iterable[Change], skipped: set[str]) -> Path:
    """A copy of the index that has the changed paths as they become; other entries, staged ones too, stay."""
    index = checkout.git_dir / "index"
    if index.exists():
        shutil.copy2(index, staged)
    rows = [
        f"{c.new.mode:o} {c.new.oid}\t{c.path}\0" if c.new else f"0 {ZERO_OID}\t{c.path}\0"
        for c in sorted(changes, key=lambda c: c.new is not None)
    ]
    checkout.run(["update-index", "-z", "--index-info"], stdin=os.fsencode("".join(rows)), index=staged)
    if skipped:
        left = "".join(f"{c.path}\0" for c in changes if c.path in skipped and c.new)
        checkout.run(
            ["update-index", "-z", "--skip-worktree", "--stdin"], stdin=os.fsencode(left), index=staged
        )
    return staged


def _stage_files(checkout: Checkout, index: Path, directory: Path, paths: Iterable[str]) -> None:
    """Write files of an index under a directory, modes, links and line endings as in the work tree, and to the disk."""
    fed = os.fsencode("".join(f"{p}\0" for p in paths))
    directory.mkdir()
    if not fed:
        return
    checkout.run(
        ["checkout-index", "--force", "-z", "--stdin", f"--prefix={directory}/"], stdin=fed, index=index
    )
    staged = [Path(found) / name for found, _, names in os.walk(directory) for name in names]
    failed: list[OSError] = []

    def sync(files: list[Path]) -> None:
        try:
            for file in files:
                if not file.is_symlink():
                    _flush(file)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=sync, args=(staged[n::SYNCING],)) for n in range(SYNCING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def _left_to_do(checkout: Checkout, stage: Path, changes: Iterable[Change]) -> list[Change]:
    """The changes that a killed switch had not made yet.

    Raises:
        RefusedError: a file is neither as before nor as after.
    """
    todo = []
    for change in changes:
        path = checkout.top / change.path
        if _same_file(path, stage / "new" / change.path if change.new else None):
            continue
        becomes_directory = change.old is None and path.is_dir() and not path.is_symlink()
        if not becomes_directory and not _same_file(
            path, stage / "old" / change.path if change.old else None
        ):
            raise RefusedError(
                f"{change.path} in {checkout.top} is neither as it was nor as it should become.",
                "Put it back (git checkout -- FILE) and run this again.",
                files=(change.path,),
            )
        todo.append(change)
    return todo


def _same_file(path: Path, staged: Path | None) -> bool:
    """Whether two files are the same in kind, executable bit and bytes; None stands for no file."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return staged is None
    if staged is None or not os.path.lexists(staged):
        return False
    wanted = staged.lstat().st_mode
    if stat.S_ISLNK(mode) or stat.S_ISLNK(wanted):
        return stat.S_ISLNK(mode) and stat.S_ISLNK(wanted) and path.readlink() == staged.readlink()
    if not stat.S_ISREG(mode) or (mode & 0o100) != (wanted & 0o100):
        return False
    return path.read_bytes() == staged.read_bytes()


def _flush(file: Path) -> Path:
    """Have a file's data on the disk before a rename may be, lest a power cut leaves an empty file under the new name."""
    with naming(file), file.open("rb") as opened:
        os.fsync(opened.fileno())
    return file


def _move_files(checkout: Checkout, staged: Path, changes: Iterable[Change]) -> None:
    """Take away what goes, then move what comes into its place."""
    for change in changes:
        if change.new is None:
            path = checkout.top / change.path
            path.unlink(missing_ok=True)
            _drop_empty(path.parent, checkout.top)
    for change in changes:
        if change.new is not None:
            path = checkout.top / change.path
            path.parent.mkdir(parents=True, exist_ok=True)
            _replace(staged / change.path, path)


def _replace(source: Path, target: Path) -> None:
    """Rename, by way of the target's own directory where the git directory is on another file system."""
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        near = target.with_name(f".{target.name}.patchq")
        shutil.copy2(source, near, follow_symlinks=False)
        near.replace(target)


def _drop_empty(directory: Path, top: Path) -> None:
    while directory != top:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent


def _move_refs(checkout: Checkout, switch: Switch) -> None:
    message = "patchq: switch"
    if switch.new_ref is None:
        checkout.run(["update-ref", "--no-deref", "-m", message, "HEAD", switch.new_commit])
    else:
        checkout.run(["update-ref", "-m", message, switch.new_ref, switch.new_commit])
        checkout.run(["symbolic-ref", "-m", message, "HEAD", switch.new_ref])
    if switch.drop_ref is not None and switch.drop_to is not None:
        checkout.run(
            ["update-ref", "-m", message, switch.drop_ref, switch.drop_to, switch.old_commit], check=False
        )
    elif switch.drop_ref is not None:
        checkout.run(["update-ref", "-d", switch.drop_ref, switch.old_commit], check=False)


def _put_back(checkout: Checkout, stage: Path, switch: Switch) -> bool:
    """Undo what a failed switch has done; give whether that worked."""
    back = Switch(
        switch.token,
        switch.new_commit,
        switch.old_commit,
        switch.new_ref,
        switch.old_ref,
        None,
        None,
        tuple(Change(c.path, c.new, c.old) for c in switch.changes),
        files=switch.files,
    )
    try:
        shutil.rmtree(stage, ignore_errors=True)
        stage.mkdir()
        _move(checkout, stage, back, resumed=True)
        _put_refs_back(checkout, switch)
    except (OSError, GitError, RefusedError):
        return False
    return True


def _put_refs_back(checkout: Checkout, switch: Switch) -> None:
    head = checkout.run(["symbolic-ref", "--quiet", "HEAD"], check=False).decode("utf-8", "surrogateescape")
    if switch.old_ref is not None and head.strip() == switch.old_ref:
        pass
    elif switch.old_ref is None:
        checkout.run(["update-ref", "--no-deref", "HEAD", switch.old_commit])
    else:
        checkout.run(["symbolic-ref", "HEAD", switch.old_ref])
    if switch.new_ref is None:
        return
    if switch.new_ref == switch.old_ref:
        checkout.run(["update-ref", switch.new_ref, switch.old_commit])
    elif switch.branch_was is None:
        checkout.run(["update-ref", "-d", switch.new_ref], check=False)
    else:
        checkout.run(["update-ref", switch.new_ref, switch.branch_was])
