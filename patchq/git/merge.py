"""Merging three versions of one file, in memory but for a scratch directory: `git merge-file`, and nothing is staged."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from patchq.git.run import GitError, run

MOST_CONFLICTS = 127
"""`git merge-file` exits with the number of conflicts up to this, and with more on an error (its manual)."""

Labels = tuple[str, str, str]
"""What the three sides are called in conflict markers: ours, base, theirs."""


@dataclass(frozen=True)
class MergedFile:
    """Three versions made one.

    Attributes:
        data: the result, with conflict markers where it has conflicts.
        conflicts: how many there are.
    """

    data: bytes
    conflicts: int


def merge_file(scratch: Path, ours: bytes, base: bytes, theirs: bytes, labels: Labels) -> MergedFile | None:
    """Merge what `theirs` changed in `base` into `ours`; the same change on both sides is made once.

    Args:
        scratch: a directory for temporary files.
        ours: the version to merge into.
        base: what both come from.
        theirs: the version whose changes are wanted.
        labels: the sides' names in conflict markers.

    Returns:
        The result; None where one of the three is binary.
    """
    if ours in (base, theirs):
        return MergedFile(theirs, 0)
    if theirs == base:
        return MergedFile(ours, 0)
    with tempfile.TemporaryDirectory(dir=scratch, prefix="merge-") as name:
        files = [Path(name) / side for side in ("ours", "base", "theirs")]
        for file, data in zip(files, (ours, base, theirs), strict=True):
            file.write_bytes(data)
        named = [word for label in labels for word in ("-L", label)]
        try:
            done = run(["merge-file", "-p", "--zdiff3", *named, *map(str, files)], cwd=Path(name))
        except GitError as error:
            if error.returncode <= MOST_CONFLICTS:
                return MergedFile(error.stdout, error.returncode)
            if "binary" in error.stderr:
                return None
            raise
    return MergedFile(done, 0)
