"""Switching a checkout from one commit to another: once, all or nothing, and never over anything of the user's.

The order of writes: new file contents are staged in the git directory; each is moved into place by rename; then the
index; then the branch; then HEAD. Each step looks first at what is there, so that running the same switch again after
a kill at any point finishes it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patchq.cache import naming
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.git.objects import Entry
from patchq.git.run import GitError, reason_of
from patchq.git.staging import flush, left_to_do, move_files, sparse_paths, stage_files, stage_index
from patchq.git.trees import Change
from patchq.text import listed

if TYPE_CHECKING:
    from patchq.git.checkout import Checkout

STAGE = "patchq-stage"


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
    skipped = sparse_paths(checkout, switch.changes)
    changes = [c for c in switch.changes if c.path not in skipped]
    index = stage_index(checkout, stage / "index", switch.changes, skipped)
    if not switch.files:
        checkout.run(["update-index", "-q", "--refresh"], index=index, check=False)
        flush(index).replace(checkout.git_dir / "index")
        return
    stage_files(checkout, index, stage / "new", [c.path for c in changes if c.new])
    if resumed:
        before = [Change(c.path, c.new, c.old) for c in switch.changes]
        old_index = stage_index(checkout, stage / "old-index", before, skipped)
        stage_files(checkout, old_index, stage / "old", [c.path for c in changes if c.old])
        changes = left_to_do(checkout, stage, changes)
    move_files(checkout, stage / "new", changes)
    said = os.fsdecode(checkout.run(["update-index", "--refresh"], index=index, check=False))
    stale = {line.rpartition(": ")[0] for line in said.splitlines()}
    wrong = sorted(stale & {c.path for c in changes if c.new})
    if wrong:
        raise GitError(
            ["update-index", "--refresh"], 1, b"", f"{listed(wrong)} did not come out as written".encode()
        )
    flush(index).replace(checkout.git_dir / "index")


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
    os.link(flush(mine), lock)


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
