"""What a switch writes: files and index, prepared in the git directory and to the disk, then moved into place by rename."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import naming
from patchq.errors import RefusedError
from patchq.git.checkout import left_out
from patchq.git.objects import ZERO_OID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.git.checkout import Checkout
    from patchq.git.trees import Change

SYNCING = 16
"""Files that are written to the disk at a time; the file system does many in the time of one."""


def sparse_paths(checkout: Checkout, changes: Iterable[Change]) -> set[str]:
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


def stage_index(checkout: Checkout, staged: Path, changes: Iterable[Change], skipped: set[str]) -> Path:
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


def stage_files(checkout: Checkout, index: Path, directory: Path, paths: Iterable[str]) -> None:
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
                    flush(file)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=sync, args=(staged[n::SYNCING],)) for n in range(SYNCING)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def left_to_do(checkout: Checkout, stage: Path, changes: Iterable[Change]) -> list[Change]:
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


def flush(file: Path) -> Path:
    """Have a file's data on the disk before a rename may be, lest a power cut leaves an empty file under the new name."""
    with naming(file), file.open("rb") as opened:
        os.fsync(opened.fileno())
    return file


def move_files(checkout: Checkout, staged: Path, changes: Iterable[Change]) -> None:
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
