"""What this kernel lets a test be shut into: no network, no other process, a tree that cannot be written."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass

from patchq.cache import cache_dir

_TRY = 'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/.written" 2>/dev/null'


@dataclass(frozen=True)
class Isolation:
    """How a run is shut in.

    Attributes:
        prefix: the command to put before the interpreter; empty where the kernel allows nothing.
        network: whether there is no network but loopback.
        tree: whether the tree is mounted read-only.
        why_not: what the kernel answered, where something is missing.
    """

    prefix: tuple[str, ...] = ()
    network: bool = False
    tree: bool = False
    why_not: str = ""

    @property
    def name(self) -> str:
        """For evidence: `namespaces` or `none`."""
        return "namespaces" if self.prefix else "none"


@functools.cache
def find_isolation() -> Isolation:
    """Try what `unshare` gives here, as root or as a plain user; what is tried is exactly what runs use."""
    if shutil.which("unshare") is None:
        return Isolation(why_not="the command unshare (util-linux) is not on PATH")
    flags = ["--net", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
    why = ""
    for extra in ([], ["--user", "--map-root-user"]):
        if not extra and os.geteuid() != 0:
            continue
        prefix = ("unshare", *extra, *flags, "--")
        done = subprocess.run([*prefix, "sh", "-c", _TRY, str(cache_dir())], capture_output=True, check=False)
        if done.returncode == 0:
            return Isolation(prefix, network=True, tree=True)
        why = done.stderr.decode("utf-8", "replace").strip().split("\n")[0]
    return Isolation(why_not=why)
