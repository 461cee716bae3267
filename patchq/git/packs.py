"""Packs: many new objects written to a repository in one go, and shared between repositories without copying them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import zlib
from typing import TYPE_CHECKING

from patchq.git.run import run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

UNPACK_LIMIT = 100
"""Up to this many objects are written loose, more as a pack (as git's own transfer.unpackLimit)."""

_PIECE = 1 << 20
"""Bytes of a pack that are handed on at a time."""

_TYPES = {"commit": 1, "tree": 2, "blob": 3}


def write_objects(git_dir: Path, objects: Collection[tuple[str, bytes]]) -> None:
    """Write objects to a repository; nothing becomes reachable by it.

    Args:
        git_dir: the repository.
        objects: kind and content of each, each once.

    Raises:
        GitError: the repository refused them (read-only, no space left).
    """
    if len(objects) > UNPACK_LIMIT:
        write_pack(git_dir, objects)
    elif objects:
        run(["unpack-objects", "-q"], stdin=_pack_of(objects), env={"GIT_DIR": str(git_dir)})


def write_pack(git_dir: Path, objects: Collection[tuple[str, bytes]], *, keep: bool = False) -> str:
    """Write objects to a repository as one pack, and give its name (`pack-…`, without an ending).

    Args:
        git_dir: the repository.
        objects: kind and content of each, each once.
        keep: whether no repack or prune of git's may take it away.

    Raises:
        GitError: the repository refused them (read-only, no space left).
    """
    command = ["index-pack", "--stdin", *(["--keep=patchq"] if keep else [])]
    said = run(command, stdin=_pack_of(objects), env={"GIT_DIR": str(git_dir)})
    return f"pack-{said.split()[-1].decode()}"


def share_pack(name: str, source: Path, target: Path) -> None:
    """Put a pack of one object directory into another: by hard links, by copies where those cannot be.

    The index comes last, since git reads a pack by its index.

    Raises:
        OSError: it cannot be written, or is not there.
    """
    directory = target / "pack"
    directory.mkdir(parents=True, exist_ok=True)
    for ending in (".rev", ".pack", ".idx"):
        one, two = (where / f"{name}{ending}" for where in (source / "pack", directory))
        if two.exists() or (ending == ".rev" and not one.exists()):
            continue
        try:
            os.link(one, two)
        except FileExistsError:
            continue
        except OSError:
            draft = two.with_name(f".{two.name}.{os.getpid()}")
            try:
                shutil.copyfile(one, draft)
                draft.replace(two)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    draft.unlink()


def _pack_of(objects: Collection[tuple[str, bytes]]) -> Iterator[bytes]:
    """A pack of whole objects, no deltas; trees, which are ids for the most part, are not worth the time to compress."""
    digest = hashlib.sha1(usedforsecurity=False)
    pack = bytearray(struct.pack(">4sII", b"PACK", 2, len(objects)))
    for kind, data in objects:
        size = len(data)
        byte = (_TYPES[kind] << 4) | (size & 15)
        size >>= 4
        while size:
            pack.append(byte | 0x80)
            byte = size & 0x7F
            size >>= 7
        pack.append(byte)
        pack += zlib.compress(data, 0 if kind == "tree" else 1)
        if len(pack) > _PIECE:
            digest.update(pack)
            yield bytes(pack)
            pack.clear()
    digest.update(pack)
    yield bytes(pack)
    yield digest.digest()
