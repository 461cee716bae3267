"""Trees made from blobs, and the git tree id of what lies on disk; standard library only, since it also goes into bundles."""

from __future__ import annotations

import hashlib
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SYMLINK, SUBMODULE, EXECUTABLE, REGULAR = 0o120000, 0o160000, 0o100755, 0o100644

Manifest = dict[str, tuple[int, str]]
"""Per path: git's mode and the blob's id."""


def make_tree(manifest: Manifest, blobs: Path, path: Path, overlay: Mapping[str, Path]) -> None:
    """Lay a tree out.

    Args:
        manifest: what is in it.
        blobs: a directory with one file a blob, by id.
        path: where to; it must not exist.
        overlay: files put in beside, by path in the tree.
    """
    draft = path.with_name(f"{path.name}.new")
    made = {draft}
    draft.mkdir(parents=True, exist_ok=True)
    for name, (mode, oid) in manifest.items():
        target = draft / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        source = blobs / oid
        if mode == SUBMODULE:
            target.mkdir()
        elif mode == SYMLINK:
            os.symlink(source.read_bytes(), os.fsencode(target))  # noqa: PTH211
        else:
            target.write_bytes(source.read_bytes())
            target.chmod(0o755 if mode == EXECUTABLE else 0o644)
    for name, source in overlay.items():
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        os.symlink(source, draft / name)  # noqa: PTH211
    draft.rename(path)


def tree_id(path: Path, beside: set[str], manifest: Manifest) -> str:
    """The git tree id of a directory's files as they are on disk.

    Args:
        path: the directory.
        beside: paths that do not belong to the tree.
        manifest: what should be in it; only its submodules, which have no file, are taken from it.
    """
    modules = {name: oid for name, (mode, oid) in manifest.items() if mode == SUBMODULE}
    return _tree(path, "", beside, modules)


def _tree(top: Path, prefix: str, beside: set[str], modules: dict[str, str]) -> str:
    entries: list[tuple[bytes, bytes]] = []
    with os.scandir(top / prefix if prefix else top) as found:
        for entry in found:
            name = f"{prefix}{entry.name}"
            if name in beside:
                continue
            raw = os.fsencode(entry.name)
            if name in modules:
                entries.append((raw, b"160000 " + raw + b"\0" + bytes.fromhex(modules[name])))
            elif entry.is_dir(follow_symlinks=False):
                oid = _tree(top, f"{name}/", beside, modules)
                if oid != EMPTY:
                    entries.append((raw + b"/", b"40000 " + raw + b"\0" + bytes.fromhex(oid)))
            else:
                mode, data = _file(entry)
                entries.append((raw, b"%o " % mode + raw + b"\0" + _hash(b"blob", data)))
    return _hash(b"tree", b"".join(line for _, line in sorted(entries))).hex()


def _file(entry: os.DirEntry[str]) -> tuple[int, bytes]:
    if entry.is_symlink():
        return SYMLINK, os.fsencode(os.readlink(entry.path))  # noqa: PTH115
    with open(entry.path, "rb") as file:  # noqa: PTH123
        data = file.read()
    return EXECUTABLE if entry.stat().st_mode & stat.S_IXUSR else REGULAR, data


def _hash(kind: bytes, data: bytes) -> bytes:
    return hashlib.sha1(kind + b" %d\0" % len(data) + data, usedforsecurity=False).digest()


EMPTY = _hash(b"tree", b"").hex()
