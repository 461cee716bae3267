"""What applying a patch says of its hunks: those that moved, and the one that does not apply."""

from __future__ import annotations

from typing import NamedTuple

from patchq.errors import RefusedError


class Offset(NamedTuple):
    """A hunk that applied elsewhere than its header says.

    Attributes:
        file: the file's path.
        hunk: which hunk of that file, from 1.
        lines: how many lines further down (negative: up).
    """

    file: str
    hunk: int
    lines: int


class HunkRefusedError(RefusedError):
    """A file or hunk of a patch does not apply.

    Attributes:
        missing: whether what it changes is gone (or what it adds is there), rather than different.
    """

    def __init__(self, message: str, remedy: str, file: str, *, missing: bool = False) -> None:
        super().__init__(message, remedy, files=(file,))
        self.missing = missing
