"""What of a user's stands in the way of a switch: dirty, untracked or ignored files, files for directories."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import RefusedError
from patchq.git.checkout import hash_files
from patchq.git.objects import SUBMODULE
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.git.checkout import Checkout
    from patchq.git.trees import Change


def refuse_in_the_way(checkout: Checkout, changes: Iterable[Change], dirty: Iterable[str]) -> None:
    """Refuse a switch that something of the user's stands in the way of.

    Raises:
        RefusedError: each dirty, untracked or ignored file in the way is named.
    """
    changed = {c.path: c for c in changes}
    edited = sorted(set(dirty) & set(changed))
    if edited:
        raise RefusedError(
            f"{listed(edited)} in {checkout.top} has changes that are not committed.",
            "Commit or stash them (git stash), then run this again; nothing was changed.",
            files=tuple(edited),
        )
    hidden = _hidden(checkout, changed)
    if hidden:
        raise RefusedError(
            f"{listed(hidden)} in {checkout.top} has changes that git does not see.",
            "git ls-files -v shows what it was told not to look at (git update-index --no-assume-unchanged or "
            "--no-skip-worktree undoes that); put the changes aside and run this again; nothing was changed.",
            files=tuple(hidden),
        )
    blocked = sorted(
        {b for c in changed.values() if c.new is not None for b in [_blocker(checkout, c, changed)] if b}
    )
    if blocked:
        raise RefusedError(
            f"{listed(blocked)} in {checkout.top} is not tracked and stands where the patches put a file.",
            "Move it away, then run this again; nothing was changed.",
            files=tuple(blocked),
        )
    modules = [c.path for c in changed.values() if SUBMODULE in {c.old and c.old.mode, c.new and c.new.mode}]
    if modules:
        raise RefusedError(
            f"{listed(modules)} is a submodule.", "patchq carries files only.", files=tuple(modules)
        )


def _hidden(checkout: Checkout, changed: dict[str, Change]) -> list[str]:
    """The files that are not as the index has them though git says so: it was told not to look, or their times lie."""
    old = {path: c.old for path, c in changed.items() if c.old is not None and c.old.mode != SUBMODULE}
    return sorted(path for path, oid in hash_files(checkout, old).items() if oid != old[path].oid)


def _blocker(checkout: Checkout, change: Change, changed: dict[str, Change]) -> str | None:
    """The path of whatever stands where a new file goes, if anything does."""
    here = checkout.top
    parts = change.path.split("/")
    for depth, part in enumerate(parts, start=1):
        inner = "/".join(parts[:depth])
        is_leaf = depth == len(parts)
        if checkout.ignore_case and change.old is None and here.is_dir():
            clash = next(
                (e.name for e in here.iterdir() if e.name != part and e.name.casefold() == part.casefold()),
                None,
            )
            if clash:
                return f"{'/'.join(parts[: depth - 1])}/{clash}".lstrip("/")
        here /= part
        try:
            mode = here.lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        goes = inner in changed and changed[inner].old is not None and changed[inner].new is None
        if is_leaf and change.old is None and not goes:
            emptied = stat.S_ISDIR(mode) and _only_going(here, inner, changed)
            return None if emptied else inner
        if not is_leaf and not stat.S_ISDIR(mode) and not goes:
            return inner
        if is_leaf and stat.S_ISDIR(mode):
            return inner
    return None


def _only_going(directory: Path, inner: str, changed: dict[str, Change]) -> bool:
    """Whether everything under a directory is deleted by the same switch."""
    for found, _, files in os.walk(directory):
        for name in files:
            path = f"{inner}/{(Path(found) / name).relative_to(directory).as_posix()}"
            if path not in changed or changed[path].new is not None:
                return False
    return True
