"""Bare repositories of our own: made the same way everywhere, and one that is gone again after the step that needs it."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import scratch_dir
from patchq.git.run import run

if TYPE_CHECKING:
    from collections.abc import Iterator


def init_bare(git_dir: Path) -> None:
    """Make an empty bare repository: no template, sha1 ids.

    Raises:
        GitError: it cannot be written.
    """
    run(["init", "--bare", "--quiet", "--template=", "--object-format=sha1", str(git_dir)])


@contextlib.contextmanager
def scratch_repository() -> Iterator[Path]:
    """An empty bare repository under the cache, gone afterwards."""
    with tempfile.TemporaryDirectory(dir=scratch_dir(), prefix="objects-") as name:
        git_dir = Path(name) / "objects.git"
        init_bare(git_dir)
        yield git_dir
