"""Killing patchq at every write: a forked child that dies at the n-th thing it would do to the world."""

from __future__ import annotations

import hashlib
import os
import signal
import stat
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


def telling_points(
    world: World, *args: str, code: int = 0, under: tuple[Path, ...] | None = None
) -> list[int]:
    """The writes of a command at which a kill leaves another disk than at the write before; the command is carried out.

    Nothing but the disk outlives a kill, so that these stand for all its writes. The last number is one beyond them.
    """
    reading, writing = os.pipe()
    tops = under or tuple(world.top / n for n in os.listdir(world.top) if n != "aside")

    def call() -> int:
        seen = b""

        def look(number: int) -> None:
            nonlocal seen
            found = _digest(tops)
            if found != seen:
                os.write(writing, b"%d\n" % number)
            seen = found

        _at_writes(look, under)
        return cli.run(["--root", str(world.project), *args])

    assert not killed_in(0, call, code)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        numbers = [int(line) for line in told]
    return [*numbers, 1_000_000]


def power_lost_at(world: World, number: int, *args: str, code: int = 0) -> bool:
    """Run a command in a forked child that loses power at its `number`-th rename; give whether it got that far.

    The rename is on the disk, and of the file's data what was not flushed (`os.fsync`) is not: the file is empty.
    """
    flushed: set[tuple[int, int]] = set()
    real = os.fsync

    def fsync(file: int) -> None:
        status = os.fstat(file)
        flushed.add((status.st_dev, status.st_ino))
        real(file)

    def call() -> int:
        seen, lost = 0, False

        def hook(event: str, args: tuple[object, ...]) -> None:
            nonlocal seen, lost
            if lost and event != "os.kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if event == "os.rename" and isinstance(args[0], str | bytes | os.PathLike):
                seen += 1
                if seen == number:
                    status = os.lstat(args[0])
                    if stat.S_ISREG(status.st_mode) and (status.st_dev, status.st_ino) not in flushed:
                        os.truncate(args[0], 0)
                    lost = True

        os.fsync = fsync
        sys.addaudithook(hook)
        return cli.run(["--root", str(world.project), *args])

    return killed_in(0, call, code)


def _digest(tops: tuple[Path, ...]) -> bytes:
    """A hash of all that lies in some directories: names, kinds, modes, bytes, targets of links."""
    found = hashlib.sha1(usedforsecurity=False)
    for top in tops:
        for directory, names, files in os.walk(top):
            names.sort()
            for path in (Path(directory, n) for n in sorted([*names, *files])):
                status = path.lstat()
                found.update(f"{path}\0{status.st_mode}\0".encode("utf-8", "surrogateescape"))
                if stat.S_ISREG(status.st_mode):
                    found.update(path.read_bytes())
                elif stat.S_ISLNK(status.st_mode):
                    found.update(os.fsencode(path.readlink()))
    return found.digest()


def _die_at(number: int, under: tuple[Path, ...] | None) -> None:
    def look(seen: int) -> None:
        if seen == number:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_writes(look, under)


def _at_writes(look: Callable[[int], None], under: tuple[Path, ...] | None) -> None:
    """Have `look` called before each write of this process, with its number."""
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
            look(seen)

    sys.addaudithook(hook)
