"""An overlay: the files that patches change in an installed package, and the script that puts them there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.errors import InputError, RefusedError
from patchq.export import install
from patchq.git.objects import EXECUTABLE, REGULAR
from patchq.vllm import PROJECT
from patchq.vllm.layout import is_test
from patchq.vllm.rules import read_text
from patchq.vllm.touched import classify, vendored_directories

if TYPE_CHECKING:
    from patchq.engine.lane import Lane
    from patchq.engine.stack import Stack
    from patchq.git.objects import Entry, Objects
    from patchq.series.lock import Base

MANIFEST = "manifest.json"
SCRIPT = "install.py"


@dataclass(frozen=True)
class Overlay:
    """An overlay in memory.

    Attributes:
        manifest: what is said of it, for the script and for people.
        files: what it consists of, by path in its directory.
        paths: the package's files that it replaces, adds or takes away.
        left_out: changed files that an installed package does without.
    """

    manifest: dict[str, Any]
    files: dict[str, bytes]
    paths: tuple[str, ...]
    left_out: tuple[str, ...]


def make_overlay(objects: Objects, lane: Lane, base: Base, stack: Stack, *, tests: bool) -> Overlay:
    """The files that some patches change in an installed package.

    Args:
        objects: where the trees are read.
        lane: the lane.
        base: its base.
        stack: the lane's base with the patches.
        tests: have test files too; they lie under `tests/` of the overlay and are installed nowhere.

    Raises:
        RefusedError: a patch changes what is compiled or decided before the package runs, or what is no plain file.
    """
    changes = {
        path: entry for path, entry in stack.changes.items() if entry != objects.lookup(stack.base_tree, path)
    }
    vendored = vendored_directories(read_text(objects, stack.base_tree, "setup.py") or "")
    touched = [
        classify(path, vendored, lambda p: objects.lookup(stack.base_tree, p) is not None) for path in changes
    ]
    built = [t for t in touched if t.kind not in {"python", "nothing"}]
    if built:
        raise RefusedError(
            f"{built[0].path}: {built[0].why}; an overlay replaces files of an installed package and builds nothing.",
            "Leave that patch out (--only, --upto), or build the checkout: patchq build.",
            files=tuple(t.path for t in built),
        )
    files: dict[str, bytes] = {}
    records = []
    for path in sorted(t.path for t in touched if t.kind == "python"):
        old, new = objects.lookup(stack.base_tree, path), changes[path]
        before, after = _content(objects, path, old), _content(objects, path, new)
        if before == after:
            continue
        records.append(
            {
                "path": path,
                "stock": _sha256(before),
                "patched": _sha256(after),
                "executable": new is not None and new.mode == EXECUTABLE,
            }
        )
        if after is not None:
            files[f"files/{path}"] = after
    if not records:
        raise InputError(
            "these patches change no file of an installed package.", "Name others with --only or --upto."
        )
    beside = {p: _content(objects, p, changes[p]) for p in changes if tests and is_test(p)}
    files |= {path: data for path, data in beside.items() if data is not None}
    hashes = {body.id: body.sha256 for body in lane.bodies}
    manifest = {
        "format": install.FORMAT,
        "package": PROJECT,
        "version": base.source.version,
        "base": lane.base,
        "base_tree": stack.base_tree,
        "tree": stack.tree,
        "patches": [{"id": i, "sha256": hashes[i]} for i in stack.ids],
        "files": records,
        "tests": [{"path": p, "sha256": _sha256(d)} for p, d in sorted(beside.items()) if d is not None],
    }
    files[MANIFEST] = json.dumps(manifest, indent=2).encode() + b"\n"
    files[SCRIPT] = Path(install.__file__).read_bytes()
    replaced = tuple(str(r["path"]) for r in records)
    return Overlay(manifest, files, replaced, tuple(sorted(set(changes) - {*replaced, *beside})))


def _content(objects: Objects, path: str, entry: Entry | None) -> bytes | None:
    if entry is None:
        return None
    if entry.mode not in {REGULAR, EXECUTABLE}:
        raise RefusedError(
            f"{path} is no plain file, and an overlay carries only those.",
            "Leave that patch out: --only, --upto.",
            files=(path,),
        )
    return objects.blob(entry.oid)


def _sha256(data: bytes | None) -> str | None:
    return hashlib.sha256(data).hexdigest() if data is not None else None
