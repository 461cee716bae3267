"""A command under a pseudo-terminal, as when a person watches."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyte

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


PATCHQ = "from patchq.cli import main; main()"
INTERRUPT = b"\x03"


def _begin(
    code: str, arguments: Sequence[str], columns: int, rows: int, env: dict[str, str]
) -> tuple[subprocess.Popen[bytes], int]:
    """Python code on a terminal of its own; the process, and our end of the terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    unwatched = {
        n: v for n, v in os.environ.items() if n not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    }
    surroundings = {**unwatched, "TERM": "xterm-256color", **env}
    own = "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0)"
    process = subprocess.Popen(
        [sys.executable, "-c", f"{own}\n{code}", *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=theirs,
        env=surroundings,
        start_new_session=True,
    )
    os.close(theirs)
    return process, ours


@dataclass
class Film:
    """What a terminal showed over time: each picture that differed from the one before, and how it was left."""

    code: int = 0
    pictures: list[str] = field(default_factory=list)
    cursor_hidden: bool = False

    @property
    def last(self) -> str:
        """How it was left."""
        return self.pictures[-1]


def filmed(
    arguments: Sequence[str],
    columns: int = 80,
    rows: int = 24,
    *,
    code: str = PATCHQ,
    interrupt: Callable[[str], bool] = lambda _: False,
    look: Callable[[pyte.Screen], None] = lambda _: None,
    **env: str,
) -> Film:
    """Run patchq on a terminal and look at its screen.

    Ctrl-C is typed once, when `interrupt` says so of a picture; `look` is given the screen after each piece of output.
    """
    process, ours = _begin(code, arguments, columns, rows, env)
    screen = pyte.Screen(columns, rows)
    stream = pyte.ByteStream(screen)
    film = Film()
    typed = False
    for data in _output(ours):
        stream.feed(data)
        look(screen)
        picture = "\n".join(line.rstrip() for line in screen.display).rstrip()
        if picture and picture not in film.pictures[-1:]:
            film.pictures.append(picture)
        if not typed and interrupt(picture):
            os.write(ours, INTERRUPT)
            typed = True
    os.close(ours)
    film.code = process.wait()
    film.cursor_hidden = screen.cursor.hidden
    return film


def _output(terminal: int) -> Iterator[bytes]:
    """What comes out of a terminal, until nobody holds its other end."""
    with contextlib.suppress(OSError):
        while data := os.read(terminal, 1 << 16):
            yield data


def watched(arguments: Sequence[str], columns: int = 100, **env: str) -> tuple[int, str]:
    """Run patchq with stdout and stderr on a terminal of so many columns; its exit code and what it showed."""
    process, ours = _begin(PATCHQ, arguments, columns, 24, env)
    shown = b""
    for data in _output(ours):
        shown += data
    os.close(ours)
    return process.wait(), shown.decode()
