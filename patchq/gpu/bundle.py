"""Writing bundles: tests with all that they need, for a machine with a card and without network."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import secrets
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq import testing
from patchq.cache import cache_dir, write_atomically
from patchq.errors import InputError
from patchq.gpu import cubin, device, limits, listing, parcel, remote, signature, treeid
from patchq.gpu.parcel import DATA, sha256_of, sha256_of_file
from patchq.gpu.remote import FORMAT
from patchq.testing import driver
from patchq.testing.runner import PYTEST_OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from patchq.engine.lane import Lane
    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.testing.plan import Mode, Task
    from patchq.vllm.device import Kit

OVERHEAD = 1_000_000
"""Bytes that a part keeps free for the runner and the plan, of which each has a copy."""
SMALLEST = 2 * OVERHEAD
CARRIED = (cubin, device, limits, listing, parcel, remote, signature, treeid, driver)
"""The modules that do the work there; each needs the standard library alone."""
RUN = """#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
cd / && PYTHONPATH="$here/lib" PYTHONDONTWRITEBYTECODE=1 exec "${PYTHON:-python3}" -m patchq.gpu.remote "$@"
"""


@dataclass(frozen=True)
class Bundle:
    """What was written.

    Attributes:
        id: stands for the bundle; its results name it.
        parts: directories, each no larger than asked for.
        bytes: of all of them.
        runs: what will be run, as in the bundle's plan.
    """

    id: str
    parts: tuple[Path, ...]
    bytes: int
    runs: tuple[dict[str, Any], ...]


@dataclass(frozen=True)
class _Payload:
    kind: str
    name: str
    path: Path
    sha256: str
    size: int


def bundles_dir() -> Path:
    """Where the plans of the bundles that were written here are kept, each with its key."""
    directory = cache_dir() / "bundles"
    directory.mkdir(exist_ok=True)
    return directory


def check_out(out: Path, split: int | None) -> None:
    """See whether a bundle can be written to a directory, in parts of a size; asked before anything is fetched for it.

    Raises:
        InputError: `out` is in use, or `split` is too small.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is there already.", "Name a new directory with --out.")
    if split is not None and split < SMALLEST:
        raise InputError(
            f"parts of {split} bytes are too small.", f"Give --split at least {SMALLEST // 10**6}M."
        )


def write_bundle(
    objects: Objects,
    lane: Lane,
    tasks: Sequence[Task],
    kit: Kit,
    wheels: Mapping[str, Path],
    out: Path,
    *,
    mode: Mode,
    prove: bool,
    split: int | None,
    progress: Progress,
) -> Bundle:
    """Write a bundle.

    Args:
        objects: where trees are read.
        lane: the lane that the patches are of.
        tasks: what to run.
        kit: what the base's tests need.
        wheels: what to install, by file name.
        out: the directory; new, or empty.
        mode: alone, or at their places in the stack.
        prove: also run without the patches' production files.
        split: bytes of the largest part; one part of any size where None.
        progress: told how far it is.

    Raises:
        InputError: a test is missing, `out` is in use, or `split` is too small.
    """
    check_out(out, split)
    for task in tasks:
        if task.missing:
            raise InputError(f"{task.patch.id}: {task.missing[0]}.", "Mend its patch.yaml or its body.")
    hashes = {b.id: b.sha256 for b in lane.bodies}
    runs = [run for task in tasks for run in _runs(task, hashes[task.patch.id], prove=prove)]
    payloads = [
        *_trees(objects, lane.stack.base_tree, sorted({r["tree"] for r in runs}), progress),
        *(
            _Payload("overlay", name, e.path, sha256_of_file(e.path), e.path.stat().st_size)
            for name, e in kit.extensions.items()
        ),
        *(_kept("distribution", name, data) for name, data in kit.metadata.items()),
        *(_Payload("wheel", n, p, sha256_of_file(p), p.stat().st_size) for n, p in wheels.items()),
    ]
    chunks, parts = _lay(payloads, None if split is None else split - OVERHEAD)
    plan = {
        "format": FORMAT,
        "id": secrets.token_hex(8),
        "key": secrets.token_hex(32),
        "base": lane.base,
        "mode": mode,
        "torch": kit.torch,
        "extensions": {name: e.sha256 for name, e in kit.extensions.items()},
        "stubs": list(kit.stubs),
        "variables": _variables(kit),
        "options": list(PYTEST_OPTIONS),
        "runs": runs,
        "parts": parts,
        "payloads": [
            {"kind": p.kind, "name": p.name, "sha256": p.sha256, "chunks": chunks[p.sha256]} for p in payloads
        ],
    }
    sources = {c["sha256"]: (p.path, c) for p in payloads for c in chunks[p.sha256]}
    folders = _write(out, plan, sources, parts, split is not None, progress)
    write_atomically(bundles_dir() / f"{plan['id']}.json", json.dumps(plan).encode())
    size = sum(f.stat().st_size for f in out.rglob("*") if f.is_file())
    return Bundle(str(plan["id"]), tuple(folders), size, tuple(runs))


def _runs(task: Task, sha256: str, *, prove: bool) -> list[dict[str, Any]]:
    trees = [("after", task.trees.after)]
    if prove and task.trees.before is not None:
        trees.append(("before", task.trees.before))
    return [
        {
            "name": f"{task.patch.id}:{task.gate}:{role}",
            "patch": task.patch.id,
            "patch_sha256": sha256,
            "gate": task.gate,
            "target": task.target,
            "role": role,
            "tree": tree,
            "tests": list(task.own.tests),
            "limit": task.own.limit,
            "needs": list(task.programs),
        }
        for role, tree in trees
    ]


def _variables(kit: Kit) -> dict[str, str]:
    return {
        "HOME": "{sandbox}/home",
        "TMPDIR": "{sandbox}/tmp",
        "XDG_CACHE_HOME": "{sandbox}/cache",
        "XDG_CONFIG_HOME": "{sandbox}/home/.config",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "PYTHONHASHSEED": "0",
        **kit.variables,
    }


def _kept(kind: str, name: str, data: bytes) -> _Payload:
    """Small data, kept in the cache until it is copied."""
    digest = sha256_of(data)
    path = bundles_dir() / f"{digest}.data"
    if not path.is_file():
        write_atomically(path, data)
    return _Payload(kind, name, path, digest, len(data))


def _trees(objects: Objects, base: str, trees: Sequence[str], progress: Progress) -> list[_Payload]:
    """The base's blobs (compressed once and kept), those that only the trees have, and what is in each tree."""
    files = dict(objects.walk(base))
    top = cache_dir() / "released"
    top.mkdir(exist_ok=True)
    kept = top / f"{base}.tar.xz"
    of_base = {e.oid for e in files.values()}
    if not kept.is_file():
        ordered = dict.fromkeys(e.oid for _, e in sorted(files.items()))
        with progress.task("compressing the base's files", total=len(ordered), unit="files") as step:
            write_atomically(kept, _tar(objects, ordered, step))
    changes: dict[str, dict[str, Any]] = {}
    more: dict[str, None] = {}
    for tree in trees:
        own = dict(objects.walk(tree))
        differing = {n: [e.mode, e.oid] for n, e in own.items() if files.get(n) != e}
        changes[tree] = {**differing, **dict.fromkeys(files.keys() - own.keys())}
        more.update(dict.fromkeys(e.oid for e in own.values() if e.oid not in of_base))
    document = {"base": {n: [e.mode, e.oid] for n, e in files.items()}, "changes": changes}
    return [
        _Payload("blobs", "base", kept, sha256_of_file(kept), kept.stat().st_size),
        _kept("blobs", "patches", _tar(objects, more, lambda _: None)),
        _kept("trees", "trees", lzma.compress(json.dumps(document, sort_keys=True).encode())),
    ]


def _tar(objects: Objects, oids: Iterable[str], step: Any) -> bytes:
    """A tar.xz of blobs under their ids; the same bytes every time."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz", preset=4) as archive:
        for oid in oids:
            if objects.has(oid):
                data = objects.blob(oid)
                member = tarfile.TarInfo(oid)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
            step(1)
    return out.getvalue()


def _lay(payloads: Sequence[_Payload], room: int | None) -> tuple[dict[str, list[dict[str, Any]]], int]:
    """Cut payloads into chunks so that each part is as full as it may be: the chunks of each, and how many parts."""
    chunks: dict[str, list[dict[str, Any]]] = {}
    part, free = 1, room
    for payload in payloads:
        if payload.sha256 in chunks:
            continue
        chunks[payload.sha256] = []
        with payload.path.open("rb") as file:
            left = payload.size
            while left or not chunks[payload.sha256]:
                if free == 0:
                    part, free = part + 1, room
                size = left if free is None else min(left, free)
                digest = hashlib.sha256(file.read(size)).hexdigest()
                chunks[payload.sha256].append({"sha256": digest, "size": size, "part": part})
                left -= size
                free = None if free is None else free - size
    return chunks, part


def _write(
    out: Path,
    plan: dict[str, Any],
    sources: Mapping[str, tuple[Path, dict[str, Any]]],
    parts: int,
    divided: bool,
    progress: Progress,
) -> list[Path]:
    draft = out.with_name(f".{out.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    folders = [draft / f"part-{n}" for n in range(1, parts + 1)] if divided else [draft]
    try:
        for folder in folders:
            (folder / DATA).mkdir(parents=True)
            _write_runner(folder, plan)
        offsets: dict[Path, int] = {}
        with progress.task(f"writing {out.name}", total=len(sources), unit="files") as step:
            for name, (path, chunk) in sources.items():
                with path.open("rb") as file:
                    file.seek(offsets.get(path, 0))
                    data = file.read(chunk["size"])
                offsets[path] = offsets.get(path, 0) + chunk["size"]
                (folders[chunk["part"] - 1 if divided else 0] / DATA / name).write_bytes(data)
                step(1)
        if divided:
            (draft / "run").write_text(
                '#!/bin/sh\nexec sh "$(dirname "$0")/part-1/run" "$@"\n', encoding="ascii"
            )
        if out.exists():
            out.rmdir()
        draft.rename(out)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return [out / f.relative_to(draft) for f in folders]


def _write_runner(folder: Path, plan: dict[str, Any]) -> None:
    top = Path(testing.__file__).parent.parent
    for module in CARRIED:
        source = Path(str(module.__file__))
        target = folder / "lib" / "patchq" / source.relative_to(top)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
        (target.parent / "__init__.py").touch()
    (folder / "lib" / "patchq" / "__init__.py").touch()
    (folder / "run").write_text(RUN, encoding="ascii")
    (folder / "bundle.json").write_text(json.dumps(plan, indent=1), encoding="utf-8")
