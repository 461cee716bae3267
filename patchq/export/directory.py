"""A directory of files made for others: it appears complete, or what was there stays."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING

from patchq.cache import write_atomically
from patchq.errors import EnvironmentLacksError, InputError
from patchq.jsontext import parse_json
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


_NEAR = 4096
RECORD = ".patchq-export.json"
"""The file of such a directory that lists its others, by path, with the SHA-256 of each."""


def write_directory(out: Path, files: Mapping[str, bytes]) -> None:
    """Put files into a directory of their own; it appears complete, or stays as it was.

    Args:
        out: the directory: absent, empty, or one that holds just what this wrote into it before.
        files: its content, by path in it.

    Raises:
        InputError: something else is there; it is named, and stays.
        EnvironmentLacksError: it cannot be written.
    """
    out = out.absolute()
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is there and is not a directory.", "Name another with --out.")
    if others := _others(out):
        raise InputError(
            f"{out} holds what patchq did not write there: {listed(others)}.",
            "Name an empty directory with --out, or move that away.",
        )
    record = json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in files.items()}, indent=1)
    draft = out.with_name(f".{out.name}.{os.getpid()}.new")
    old = out.with_name(f".{out.name}.{os.getpid()}.old")
    try:
        for name, data in {**files, RECORD: record.encode()}.items():
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


def write_file(out: Path, data: bytes, mark: bytes) -> None:
    """Put one file for others; it appears complete, or what was there stays.

    Args:
        out: where: no file yet, or one of the same kind.
        data: its content.
        mark: what tells a file of this kind; it stands near the beginning of each.

    Raises:
        InputError: something else is there, and stays.
        EnvironmentLacksError: it cannot be written.
    """
    if out.exists() and not out.is_file():
        raise InputError(f"{out} is {'a directory' if out.is_dir() else 'no plain file'}.", "Name a file.")
    try:
        if out.exists():
            with out.open("rb") as there:
                known = mark in there.read(_NEAR)
            if not known:
                raise InputError(
                    f"{out} is there and is not what patchq writes here.",
                    "Name another file, or move it away.",
                )
        out.absolute().parent.mkdir(parents=True, exist_ok=True)
        write_atomically(out.absolute(), data)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{out} cannot be written: {error.strerror}.", "Name another place."
        ) from None


def _others(out: Path) -> list[str]:
    """What of a directory was not written here, or was changed since, sorted."""
    if not out.is_dir():
        return []
    try:
        known = parse_json((out / RECORD).read_bytes())
    except (OSError, ValueError):
        known = {}
    if not isinstance(known, dict):
        known = {}
    found = []
    for path in out.rglob("*"):
        name = path.relative_to(out).as_posix()
        if name == RECORD or (path.is_dir() and not path.is_symlink() and any(path.iterdir())):
            continue
        same = path.is_file() and not path.is_symlink() and name in known
        if not (same and hashlib.sha256(path.read_bytes()).hexdigest() == known[name]):
            found.append(name)
    return sorted(found)
