"""Reading a release sdist as a tree: nothing is unpacked to disk, and a hostile archive is refused by name."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from patchq.errors import InputError, RefusedError
from patchq.git.objects import EXECUTABLE, REGULAR
from patchq.git.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MAX_FILES = 100_000
MAX_BYTES = 2 * 1024**3
"""Bytes that an archive may hold unpacked (vLLM 0.33.0 holds 0.2 GB)."""


class _Bounded:
    """A stream that ends in a refusal after `MAX_BYTES` and some, whatever its headers say."""

    def __init__(self, stream: gzip.GzipFile, name: str) -> None:
        self._stream = stream
        self._name = name
        self._left = MAX_BYTES + MAX_FILES * 4 * tarfile.BLOCKSIZE

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise _too_large(self._name)
        return data


def _too_large(name: str) -> RefusedError:
    return RefusedError(f"{name}: it holds more than {MAX_BYTES} bytes.", "Do not use this archive.")


class TreeFile(NamedTuple):
    """A file on its way into the store: path in the tree, git mode, content."""

    path: str
    mode: int
    data: bytes


def read_sdist(path: Path, name: str, is_generated: Callable[[str], bool]) -> Iterator[TreeFile]:
    """The files of an sdist, without its top directory and its generated files.

    Args:
        path: the archive, a gzipped tar.
        name: its name, for messages.
        is_generated: which paths to leave out.

    Raises:
        RefusedError: a member is a link, a device, or leaves the tree; the member is named.
        InputError: the archive is broken.
    """
    refuse = "Do not use this archive."
    seen: set[str] = set()
    size = 0
    top = ""
    try:
        with (
            gzip.open(path) as packed,
            tarfile.open(
                fileobj=cast("IO[bytes]", _Bounded(packed, name)), mode="r|", errorlevel=2
            ) as archive,
        ):
            for number, member in enumerate(archive):
                if number >= MAX_FILES:
                    raise RefusedError(f"{name}: it has more than {MAX_FILES} members.", refuse)
                if member.isdir():
                    continue
                if not member.isreg():
                    raise RefusedError(f"{name}: the member {member.name!r} is not a plain file.", refuse)
                first, slash, inner = member.name.partition("/")
                top = top or first
                if not slash or first != top or first in {"", ".", ".."}:
                    raise RefusedError(
                        f"{name}: the member {member.name!r} is not under one top directory.", refuse
                    )
                try:
                    check_path(inner, name)
                except InputError as error:
                    raise RefusedError(error.message, refuse) from None
                size += member.size
                if inner in seen:
                    raise RefusedError(f"{name}: the member {member.name!r} stands there twice.", refuse)
                if size > MAX_BYTES:
                    raise _too_large(name)
                seen.add(inner)
                if is_generated(inner):
                    continue
                file = archive.extractfile(member)
                if file is not None:
                    yield TreeFile(inner, EXECUTABLE if member.mode & 0o100 else REGULAR, file.read())
    except (tarfile.TarError, zlib.error, EOFError, OSError, ArithmeticError, ValueError) as error:
        raise InputError(f"{name} is not a readable archive: {error}.", "Fetch it again.") from None
