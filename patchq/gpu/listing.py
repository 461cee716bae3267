"""The PTX of what Humming compiled with nvcc, listed once more from the same source with the same command.

Humming keeps a kernel's source and command beside the cubin, and not the PTX in between. Standard library only,
since it also goes into bundles.
"""

from __future__ import annotations

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TIME = 120
"""Seconds for one kernel."""


def list_ptx(cache: Path) -> None:
    """Write `kernel.ptx` beside each of Humming's cubins of a cache; where nvcc does not give it, there is none."""
    commands = sorted(cache.rglob("cmdline.json"))
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(_list, commands))


def _list(file: Path) -> None:
    command = json.loads(file.read_bytes())
    target = file.with_name("kernel.ptx")
    if "-cubin" not in command or "-o" not in command or target.exists():
        return
    command[command.index("-cubin")] = "-ptx"
    draft = file.with_name("kernel_tmp.ptx")
    command[command.index("-o") + 1] = str(draft)
    # `code=sm_N` of another real architecture than the PTX's own says nothing to -ptx.
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=TIME)
    except (OSError, subprocess.TimeoutExpired):
        return
    if done.returncode == 0 and draft.exists():
        draft.replace(target)
