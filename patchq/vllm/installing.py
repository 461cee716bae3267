"""Running the programs that install: pip, venv, and builds through pip."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from patchq.errors import EnvironmentLacksError
from patchq.meanwhile import meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

PIP_INSTALL = ("-m", "pip", "install", "--no-input", "--progress-bar=off", "--disable-pip-version-check")


def run_step(
    command: Sequence[str], env: Mapping[str, str], step: Callable[[int], None], failed: str, remedy: str
) -> None:
    """Run one program; the progress is told of each second that passes, for pip may be silent for minutes.

    Args:
        command: the program and its arguments.
        env: its environment.
        step: told of seconds.
        failed: what to say where it fails, before what it said itself.
        remedy: what to do then.

    Raises:
        EnvironmentLacksError: it exited non-zero.
    """
    tail: list[str] = []
    with (
        meanwhile(1, lambda: step(1)),
        subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL
        ) as process,
    ):
        try:
            for raw in process.stdout or ():
                line = raw.decode("utf-8", "replace").strip()
                if not line.startswith("WARNING"):
                    tail = [*tail[-30:], line]
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        said = next((t for t in tail if t.startswith("ERROR")), tail[-1] if tail else "nothing")
        raise EnvironmentLacksError(f"{failed}: {said[:300]}.", remedy)
