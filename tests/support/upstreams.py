"""Throwaway upstreams that moved on: what a release changed, said in one line each."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from patchq.series.series import load_series
from tests.support.world import UPSTREAM

if TYPE_CHECKING:
    from tests.support.world import World

ENGINE = b"""import math


class Engine:
    def start(self, size):
        count = size * 2
        return count

    def stop(self, size):
        count = size * 2
        return count


def helper(value):
    total = value + 1
    return total


def other(value):
    total = value + 1
    return total


def tail(value):
    rest = value - 1
    return rest
"""
"""A module with identical blocks in neighbouring definitions."""

GUARD = b"        if size < 0:\n            raise ValueError(size)\n"
SOURCES = {**UPSTREAM, "pkg/core.py": ENGINE}


def replaced(data: bytes, old: bytes, new: bytes, nth: int = 1) -> bytes:
    """Some bytes with the nth occurrence of others replaced."""
    parts = data.split(old)
    assert len(parts) > nth, old
    return old.join(parts[:nth]) + new + old.join(parts[nth:])


def release(world: World, name: str, changes: dict[str, bytes | None] | None = None) -> dict[str, bytes]:
    """Add a base: the first upstream with some files changed, added or (None) taken away; gives its files."""
    files: dict[str, bytes] = dict(SOURCES)
    for path, data in (changes or {}).items():
        if data is None:
            files.pop(path, None)
        else:
            files[path] = data
    top = world.top / name
    shutil.rmtree(top, ignore_errors=True)
    world.write_upstream(files, at=top)
    result = world.patchq("upstream", "add", name, "--directory", str(top))
    assert result.code == 0, result.err
    return files


def cell(world: World, patch: str, base: str) -> Any:
    """One cell of the forecast."""
    document = world.ok("forecast", patch, "--base", base)
    assert document["bases"] == [base]
    (row,) = document["patches"]
    return row["cells"][base]


def tree_id(world: World, files: dict[str, bytes]) -> str:
    """The id of the git tree that holds these files."""
    top = world.top / "expected"
    shutil.rmtree(top, ignore_errors=True)
    world.write_upstream(files, at=top)
    world.git("init", "-q", cwd=top)
    world.git("add", "-A", "-f", cwd=top)
    return world.git("write-tree", cwd=top)


def lane_tree(world: World, base: str) -> str:
    """The tree of a lane, as `git am` alone makes it from the bodies; it must be the locked one."""
    series = load_series(world.project)
    steps = series.lock.lanes[base]
    top = world.top / "am"
    subprocess.run(["rm", "-rf", str(top)], check=True)
    subprocess.run(["cp", "-r", str(world.top / base), str(top)], check=True)
    world.git("init", "-q", cwd=top)
    world.git("add", "-A", "-f", cwd=top)
    world.git("commit", "-q", "-m", base, cwd=top)
    bodies = [str(series.body_path(step.id, base)) for step in steps]
    if bodies:
        world.git("am", "-q", "--keep-non-patch", "--keep-cr", *bodies, cwd=top)
    tree = world.git("rev-parse", "HEAD^{tree}", cwd=top)
    assert not steps or steps[-1].tree == tree
    return tree
