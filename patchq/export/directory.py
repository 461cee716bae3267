"""A directory of files made for others: it appears complete, or what was there stays."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from patchq.errors import EnvironmentLacksError, InputError
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def write_directory(out: Path, files: Mapping[str, bytes], mark: str) -> None:
    """Put files into a directory of their own; it appears complete, or stays as it was.

    Args:
        out: the directory: absent, empty, or one that this has written before.
        files: its content, by path in it.
        mark: the file by which one that was written before is known.

    Raises:
        InputError: something else is there.
        EnvironmentLacksError: it cannot be written.
    """
    out = out.absolute()
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is there and is not a directory.", "Name another with --out.")
    there = sorted(e.name for e in os.scandir(out)) if out.is_dir() else []
    if there and mark not in there:
        raise InputError(f"{out} holds other files ({listed(there)}).", "Name an empty directory with --out.")
    draft = out.with_name(f".{out.name}.{os.getpid()}.new")
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    try:
        for name, data in files.items():
            path = draft / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(0o755 if data.startswith(b"#!") else 0o644)
        if out.exists():
            out.rename(old)
        draft.rename(out)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{out} cannot be written: {error.strerror}.", "Make room, or name another place with --out."
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
        if old.exists() and not out.exists():
            old.rename(out)
        shutil.rmtree(old, ignore_errors=True)
