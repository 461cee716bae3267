"""A command under a pseudo-terminal, as when a person watches."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def watched(arguments: Sequence[str], columns: int = 100, **env: str) -> tuple[int, str]:
    """Run patchq with stdout and stderr on a terminal of so many columns; its exit code and what it showed."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-c", "from patchq.cli import main; main()", *arguments]
    unwatched = {
        n: v for n, v in os.environ.items() if n not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}
    }
    surroundings = {**unwatched, "TERM": "xterm-256color", **env}
    process = subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=surroundings)
    os.close(theirs)
    shown = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:
            break
        if not data:
            break
        shown += data
    os.close(ours)
    return process.wait(), shown.decode()
