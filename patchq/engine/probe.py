"""What an interpreter would import as a package, looked at from inside it and without importing it.

Standard library alone, Python 3.8 and newer: this file is run as it is in interpreters that have no patchq, over a pipe
or as a script of its own, in a container without git.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.machinery
import importlib.util
import json
import marshal
import os
import site
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

HEADER = 16
"""Bytes before the code in a .pyc: magic, flags, then mtime and size, or a hash of the source (PEP 552)."""


def blob_id(data: bytes) -> str:
    """The id that git gives a file's content."""
    return hashlib.new("sha1", b"blob %d\0" % len(data) + data, **_UNSAFE).hexdigest()


_UNSAFE: dict[str, Any] = {"usedforsecurity": False} if sys.version_info >= (3, 9) else {}


def file_id(path: str) -> str | None:
    """The blob id of a file or of a link's target; None where there is neither."""
    try:
        if os.path.islink(path):
            return blob_id(os.fsencode(os.readlink(path)))
        with open(path, "rb") as file:
            return blob_id(file.read())
    except OSError:
        return None


def places(package: str) -> list[dict[str, Any]]:
    """Every place from which the package could be imported, in the order of the import system; the first one wins.

    Each has `path` (the package's directory), `how` it comes to be looked at, and `plain`: False for a directory
    without `__init__.py`.
    """
    found: list[dict[str, Any]] = []
    chosen = _found(importlib.util.find_spec(package))
    for entry in sys.path:
        spec = importlib.machinery.PathFinder.find_spec(package, [entry])
        at = _found(spec)
        if spec is not None and at is not None:
            found.append({"path": at, "how": how(entry), "plain": spec.origin is not None})
    for finder in sys.meta_path:
        if finder is not importlib.machinery.PathFinder and hasattr(finder, "find_spec"):
            try:
                spec = finder.find_spec(package, None)
            except Exception:  # any finder of anybody's
                spec = None
            at = _found(spec)
            if spec is not None and at is not None:
                hook = "the import hook of " + str(finder.__module__)
                found.append({"path": at, "how": hook, "plain": spec.origin is not None})
    found.sort(key=lambda place: place["path"] != chosen)
    unique: dict[str, dict[str, Any]] = {}
    for place in found:
        unique.setdefault(os.path.realpath(place["path"]), place)
    return list(unique.values())


def _found(spec: ModuleSpec | None) -> str | None:
    locations = list(spec.submodule_search_locations or []) if spec is not None else []
    if locations:
        return os.path.abspath(locations[0])
    return os.path.abspath(spec.origin) if spec is not None and spec.origin else None


def how(entry: str) -> str:
    """Why a directory is on the import path."""
    real = os.path.realpath(entry or os.getcwd())
    if real == os.path.realpath(os.getcwd()) and (entry == "" or entry == sys.path[0]):
        return "the current directory"
    if real in [os.path.realpath(e) for e in os.environ.get("PYTHONPATH", "").split(os.pathsep) if e]:
        return "PYTHONPATH"
    directories = [*site.getsitepackages(), site.getusersitepackages()]
    if real in map(os.path.realpath, directories):
        return "site-packages"
    for directory in [*directories, *sys.path]:
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else ():
            if name.endswith(".pth") and real in _pth_lines(os.path.join(directory, name)):
                return os.path.join(directory, name)
    return "sys.path"


def _pth_lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = [line.strip() for line in file]
    except OSError:
        return []
    here = os.path.dirname(path)
    return [os.path.realpath(os.path.join(here, line)) for line in lines if line and line[0] != "#"]


def bytecode(top: str, deep: set[str]) -> dict[str, str]:
    """What is wrong with the compiled files below a package's directory.

    Args:
        top: the directory.
        deep: source files that are compiled anew to compare; for the others what the header says is enough.

    Returns:
        By file: `stale` (it would be run, and is not of the source that is there), `unreadable`, `sourceless` (it would
        be run, with no source beside it), or, harmless so far, `unchecked` (a later change would not be seen), `orphan`.
    """
    wrong: dict[str, str] = {}
    for directory, _, names in os.walk(top):
        for name in names:
            if name.endswith(".pyc"):
                path = os.path.join(directory, name)
                problem = _bytecode_problem(path, deep)
                if problem:
                    wrong[path] = problem
    prefix = getattr(sys, "pycache_prefix", None)
    for source in deep if prefix else ():
        for level in ("", "1", "2"):
            path = importlib.util.cache_from_source(source, optimization=level)
            problem = _bytecode_problem(path, deep, source) if os.path.isfile(path) else None
            if problem:
                wrong[path] = problem
    return wrong


def _bytecode_problem(path: str, deep: set[str], source: str | None = None) -> str | None:
    cached = source is not None or os.path.basename(os.path.dirname(path)) == "__pycache__"
    if source is None:
        stem = os.path.basename(path).split(".")[0]
        source = os.path.join(os.path.dirname(os.path.dirname(path)), stem + ".py") if cached else path[:-1]
    try:
        with open(path, "rb") as file:
            head = file.read(HEADER)
            code = file.read() if source in deep else b""
    except OSError:
        return "unreadable"
    if head[:4] != importlib.util.MAGIC_NUMBER:
        return None
    if not os.path.isfile(source):
        return "orphan" if cached else "sourceless"
    if not cached:
        return None
    with open(source, "rb") as file:
        data = file.read()
    flags = int.from_bytes(head[4:8], "little")
    if flags & 1:
        same = head[8:16] == importlib.util.source_hash(data)
        if flags & 2:
            return _code_problem(path, source, data, code) if same and source in deep else None
        return "unchecked" if same else "stale"
    status = os.stat(source)
    stamp = [int.from_bytes(head[at : at + 4], "little") for at in (8, 12)]
    if stamp != [int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF] or source not in deep:
        return None
    return _code_problem(path, source, data, code)


def _code_problem(path: str, source: str, data: bytes, code: bytes) -> str | None:
    """Whether the code that would be run is what the source gives: file times and sizes can agree by accident."""
    level = path.rsplit(".opt-", 1)
    optimize = int(level[1].split(".")[0]) if len(level) > 1 else 0
    try:
        have = marshal.loads(code)  # the interpreter itself would do no less
    except (EOFError, ValueError, TypeError):
        return "unreadable"
    try:
        want = compile(data, source, "exec", dont_inherit=True, optimize=optimize)
    except (SyntaxError, ValueError):
        return None
    return None if have == want else "stale"


def look(package: str, paths: list[str], suffix: str = ".py") -> dict[str, Any]:
    """All that can be seen of a package.

    Args:
        package: its name.
        paths: files to hash besides the package's own, relative to the directory that holds it.
        suffix: of the package's own files that are hashed.

    Returns:
        `places` in order, each with `files` (blob id by path relative to the directory above, None for no file);
        of the first also every file of the package, `bytecode` and `released`; and `distributions`, what is recorded as
        installed.
    """
    found = places(package)
    for number, place in enumerate(found):
        root = os.path.dirname(place["path"])
        place["files"] = {path: file_id(os.path.join(root, path)) for path in paths}
        place["tops"] = sorted(
            {p.split("/")[0] for p in paths if os.path.exists(os.path.join(root, p.split("/")[0]))}
        )
        if number == 0:
            for directory, _, names in os.walk(place["path"]):
                for name in names:
                    full = os.path.join(directory, name)
                    if name.endswith(suffix):
                        place["files"][os.path.relpath(full, root).replace(os.sep, "/")] = file_id(full)
            place["released"] = released(root, package, place["files"])
            deep = {os.path.join(root, p) for p in paths if p.endswith(".py") and p.startswith(package + "/")}
            place["bytecode"] = {
                os.path.relpath(path, root): problem
                for path, problem in bytecode(place["path"], deep).items()
            }
    return {"python": sys.version.split()[0], "places": found, "distributions": distributions(package)}


def released(root: str, package: str, files: dict[str, str | None]) -> dict[str, Any] | None:
    """The installed distribution that a package's files came with: `name`, `version`, and which `files` are still as it had them."""
    for name in sorted(os.listdir(root)):
        record = os.path.join(root, name, "RECORD")
        if name.endswith(".dist-info") and os.path.isfile(record):
            with open(record, encoding="utf-8", newline="") as file:
                rows = {row[0]: row[1] for row in csv.reader(file) if len(row) > 1}
            if package + "/__init__.py" in rows:
                same = [p for p in files if rows.get(p) and rows[p] == _record_hash(os.path.join(root, p))]
                project, version = name[: -len(".dist-info")].split("-")[:2]
                return {"name": project, "version": version, "files": same}
    return None


def _record_hash(path: str) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).digest()
    return "sha256=" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def distributions(package: str) -> list[dict[str, str]]:
    """Version and place of each installed distribution of that name."""
    from importlib import metadata

    return [
        {"version": found.version, "path": str(getattr(found, "_path", ""))}
        for found in metadata.distributions(name=package)
    ]


def judge(
    seen: dict[str, Any],
    package: str,
    wanted: dict[str, str | None],
    others: dict[str, str],
    version: str = "",
) -> dict[str, list[Any]]:
    """What keeps the package from being the one that is wanted.

    Args:
        seen: what `look` saw.
        package: its name.
        wanted: by path, the blob ids of the files that must be as they are wanted; None for no file.
        others: by path, the blob ids of the package's other files.
        version: that a distribution of the base has; of that one, the other files may also be as it was released.

    Returns:
        `files`: (path, problem) pairs; `absent`: wanted files that an install does not hold; `notes`: harmless finds.
    """
    if not seen["places"]:
        return {"files": [[path, "missing"] for path in sorted(wanted)], "absent": [], "notes": []}
    first = seen["places"][0]
    have, inside = first["files"], package + "/"
    files: dict[str, str] = {}
    absent: list[str] = []
    notes: list[list[str]] = []
    release = first["released"] or {"name": "", "version": "", "files": []}
    shipped = set(release["files"]) if version and release["version"].split("+")[0] == version else set()
    for path, oid in wanted.items():
        if not path.startswith(inside) and path.split("/")[0] not in first["tops"]:
            absent.append(path)
        elif have.get(path) != oid:
            files[path] = "missing" if have.get(path) is None else "extra" if oid is None else "differs"
    for path, oid in others.items():
        if path not in wanted and have.get(path) != oid:
            if path in shipped:
                notes.append([path, "as released in " + release["name"] + " " + release["version"]])
            else:
                files[path] = "missing" if have.get(path) is None else "differs"
    harmless = ("unchecked", "orphan")
    notes += [[p, w + " bytecode"] for p, w in sorted(first["bytecode"].items()) if w in harmless]
    files.update({p: w + " bytecode" for p, w in first["bytecode"].items() if w not in harmless})
    return {"files": sorted([p, w] for p, w in files.items()), "absent": sorted(absent), "notes": notes}


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    print(json.dumps(look(asked["package"], asked["paths"])))
