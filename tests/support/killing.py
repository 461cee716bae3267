"""Killing patchq at every write: a forked child that dies at the n-th thing it would do to the world."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from patchq import cli

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World

WRITES = frozenset(
    {
        "os.rename",
        "os.remove",
        "os.mkdir",
        "os.rmdir",
        "os.symlink",
        "os.link",
        "shutil.rmtree",
        "shutil.copyfile",
        "subprocess.Popen",
    },
)
"""Audit events (Python's sys.addaudithook) before which the child may be killed; `open` for writing is one more."""


def killed_at(
    world: World, number: int, *args: str, code: int = 0, under: tuple[Path, ...] | None = None
) -> bool:
    """Run a command in a forked child that is killed before its `number`-th write; give whether it got that far.

    Where it did not, it must have ended with `code`. With `under`, only writes below these directories count.
    """
    return killed_in(number, lambda: cli.run(["--root", str(world.project), *args]), code, under)


def killed_in(
    number: int, call: Callable[[], int], code: int = 0, under: tuple[Path, ...] | None = None
) -> bool:
    """The same for anything that gives an exit code."""
    pid = os.fork()
    if pid == 0:
        _die_at(number, under)
        sink = os.open(os.devnull, os.O_WRONLY)
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        try:
            os._exit(call())
        finally:
            os._exit(99)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == code
    return False


def _die_at(number: int, under: tuple[Path, ...] | None) -> None:
    seen = 0

    def counts(args: tuple[object, ...]) -> bool:
        if under is None:
            return True
        paths = [Path(os.fsdecode(a)) for a in args[:2] if isinstance(a, str | bytes | os.PathLike)]
        return any(path.is_relative_to(top) for path in paths for top in under)

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal seen
        writes = event in WRITES or (
            event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        )
        if writes and counts(args):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
