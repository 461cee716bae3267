"""The shipped series on the real trees: patchq as a process of its own, over the cache that the trees are kept in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINNED = "v0.27.1"


def shipped(
    cache: Path, *args: str, root: Path = ROOT, code: int | None = 0
) -> subprocess.CompletedProcess[bytes]:
    """Run one command; it must exit with `code`, where one is given."""
    done = subprocess.run(
        [sys.executable, "-m", "patchq", "--root", str(root), *args],
        env={**os.environ, "PATCHQ_CACHE": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert code is None or done.returncode == code, done.stderr.decode()
    return done
