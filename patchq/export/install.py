#!/usr/bin/env python3
"""Puts the files beside this script over an installed package, takes them off again, and checks them.

    install.py               put them on; nothing is written unless every file is the one that manifest.json expects
    install.py --undo        take them off again
    install.py --check       say whether they are on, and name every file that is not as it must be; writes nothing
    install.py --mounts DIR  print the options that mount them over a container's site-packages DIR instead

It needs Python 3.9 and nothing else. Exit codes: 0 yes; 1 no; 2 wrong usage; 3 the directory cannot be written.
A killed run is finished by running it again, or taken back by --undo.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import csv
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Path(__file__).resolve().parent
FORMAT = 1
NO, UNWRITABLE = 1, 3


class RefusedError(Exception):
    """The answer is no; each line names what is wrong."""


class Target:
    """The directory that holds the package, and what this script keeps there."""

    def __init__(self, root: Path, manifest: dict[str, Any]) -> None:
        self.root = root
        self.manifest = manifest
        self.package = str(manifest["package"])
        self.files: list[dict[str, Any]] = manifest["files"]
        self.keep = root / f".{self.package}-overlay"
        self.state_file = self.keep / "state.json"

    def state(self) -> dict[str, Any] | None:
        """What was begun here, None where nothing was."""
        try:
            found = json.loads(self.state_file.read_bytes())
        except FileNotFoundError:
            return None
        except ValueError:
            raise RefusedError(f"{self.state_file} is damaged; install the package anew") from None
        if found["manifest"] != self.manifest:
            patches = ", ".join(p["id"] for p in found["manifest"]["patches"])
            raise RefusedError(
                f"another overlay is installed in {self.root} ({patches}); take it off with its own install.py --undo",
                f"if the package was replaced since, delete {self.keep}",
            )
        return dict(found)

    def begin(self, phase: str, made: list[str]) -> None:
        """Write down what is about to be done."""
        self.keep.mkdir(exist_ok=True)
        state = {"phase": phase, "made": made, "manifest": self.manifest}
        put(self.state_file, json.dumps(state).encode(), 0o644)

    def look(self) -> dict[str, str]:
        """Each file as it is now: `stock`, `patched`, or what else, in words."""
        found = {}
        for file in self.files:
            now = digest(self.root / file["path"])
            how = {file["stock"]: "stock", file["patched"]: "patched"}.get(now, "is missing")
            if now is not None and how == "is missing":
                how = f"is neither the stock file nor the patched one (sha256 {now[:12]})"
            found[file["path"]] = how
        return found

    def installation(self) -> tuple[str, dict[str, str]]:
        """The installed version (empty where nothing says it), and the hashes of the files as they were installed."""
        for record in sorted(self.root.glob("*.dist-info/RECORD")):
            with record.open(newline="", encoding="utf-8") as lines:
                rows = [row for row in csv.reader(lines) if len(row) > 1]
            listed = {row[0]: _hex(row[1]) for row in rows}
            if f"{self.package}/__init__.py" in listed:
                metadata = (record.parent / "METADATA").read_text("utf-8", "replace")
                version = re.search(r"^Version: *(\S+)", metadata, re.MULTILINE)
                return (version[1] if version else ""), listed
        with contextlib.suppress(OSError):
            text = (self.root / self.package / "_version.py").read_text("utf-8", "replace")
            version = re.search(r"^__version__ = (?:version = )?['\"]([^'\"]+)", text, re.MULTILINE)
            return (version[1] if version else ""), {}
        return "", {}

    def wrong_version(self) -> list[str]:
        """What is wrong about the installed version, in words."""
        wanted = self.manifest["version"]
        if not (self.root / self.package).is_dir():
            return [f"{self.root} has no {self.package}"]
        found = self.installation()[0]
        if not wanted or found.partition("+")[0] == wanted:
            return []
        found = found or "of unknown version"
        return [f"{self.package} in {self.root} is {found}, the overlay is for {wanted}"]


def install(target: Target) -> str:
    """Put the files on."""
    refuse(damaged(target))
    state, found = target.state(), target.look()
    refuse([f"{path} {how}" for path, how in found.items() if how not in {"stock", "patched"}])
    stock = [path for path, how in found.items() if how == "stock"]
    if not stock and (state is None or state["phase"] == "installed"):
        how = "already installed" if state else "on already, not by this script"
        return f"{how}: {len(found)} files in {target.root}; nothing to do"
    if state is None:
        refuse([f"{path} is patched already, and others are not" for path in found if path not in stock])
        made = _missing_directories(target)
        _keep_stock(target)
    else:
        made = state["made"]
    target.begin("installing", made)
    for file in target.files:
        path = target.root / file["path"]
        if file["path"] in stock:
            if file["patched"] is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                mode = 0o755 if file["executable"] else 0o644
                put(path, (HERE / "files" / file["path"]).read_bytes(), mode)
        _drop_bytecode(path)
    _expect(target, "patched")
    target.begin("installed", made)
    return f"installed: {len(stock)} files in {target.root}"


def undo(target: Target) -> str:
    """Take the files off."""
    state, found = target.state(), target.look()
    if state is None:
        refuse([f"{p} is not the stock file, nor kept here" for p, how in found.items() if how != "stock"])
        shutil.rmtree(target.keep, ignore_errors=True)
        return f"not installed in {target.root}; nothing to undo"
    drifted = [f"{path} {how}" for path, how in found.items() if how not in {"stock", "patched"}]
    if drifted:
        drifted.append(f"if the package was replaced since, delete {target.keep}")
    refuse(drifted)
    kept = {f["path"]: target.keep / "stock" / f["path"] for f in target.files if f["stock"] is not None}
    bad = [kept[f["path"]] for f in target.files if f["stock"] and digest(kept[f["path"]]) != f["stock"]]
    refuse([f"{path}, kept for --undo, is damaged; install the package anew" for path in bad])
    target.begin("undoing", state["made"])
    for file in target.files:
        path = target.root / file["path"]
        if found[file["path"]] == "patched":
            if file["stock"] is None:
                path.unlink()
            else:
                status = kept[file["path"]].stat()
                put(path, kept[file["path"]].read_bytes(), status.st_mode & 0o7777, status.st_mtime_ns)
        _drop_bytecode(path)
    for name in sorted(state["made"], key=len, reverse=True):
        with contextlib.suppress(OSError):
            (target.root / name / "__pycache__").rmdir()
        with contextlib.suppress(OSError):
            (target.root / name).rmdir()
    _expect(target, "stock")
    target.state_file.unlink()
    shutil.rmtree(target.keep)
    return f"taken off: {len(found)} files in {target.root} are the stock ones"


def check(target: Target) -> str:
    """Say whether they are on, over the very files that they were made for."""
    wrong = target.wrong_version()
    state = target.state()
    if state is not None and state["phase"] != "installed":
        wrong.append(f"{state['phase']} was interrupted; run install.py again, or with --undo")
    found = {path: "is the stock file" if how == "stock" else how for path, how in target.look().items()}
    wrong += [f"{path} {how}" for path, how in found.items() if how != "patched"]
    if state is None:
        recorded = target.installation()[1]
        for file in target.files:
            if recorded and recorded.get(file["path"]) not in {file["stock"], ""}:
                wrong.append(f"{file['path']} lies over another file than the one that it was made from")
    refuse(wrong)
    return f"on: {len(found)} files in {target.root}"


def mounts(target: Target, where: str) -> str:
    """Options for docker or podman that mount the files, one a line."""
    deleted = [f["path"] for f in target.files if f["patched"] is None]
    refuse([f"{path} is deleted by the patches, and a mount cannot do that" for path in deleted])
    refuse(damaged(target))
    top = where.rstrip("/")
    return "\n".join(f"--volume={HERE / 'files' / f['path']}:{top}/{f['path']}:ro" for f in target.files)


def damaged(target: Target) -> list[str]:
    """Files of the overlay itself that are not as it was made."""
    return [
        f"{HERE / 'files' / f['path']} is damaged; make the overlay anew"
        for f in target.files
        if f["patched"] is not None and digest(HERE / "files" / f["path"]) != f["patched"]
    ]


def refuse(lines: list[str]) -> None:
    """Stop where anything is wrong."""
    if lines:
        raise RefusedError(*lines)


def digest(path: Path) -> str | None:
    """The sha256 of a file; None where there is none, empty for what is no file."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return "" if path.exists() or path.is_symlink() else None


def put(path: Path, data: bytes, mode: int, mtime_ns: int | None = None) -> None:
    """Replace a file so that a reader, or a power cut, sees the old one or the new."""
    draft = path.with_name(f".{path.name}.overlay-new")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(mode)
        if mtime_ns is not None:
            os.utime(draft, ns=(mtime_ns, mtime_ns))
        draft.replace(path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
    os.fsync(directory := os.open(path.parent, os.O_RDONLY))
    os.close(directory)


def _keep_stock(target: Target) -> None:
    """Copy the stock files aside; nothing counts before the state is written."""
    shutil.rmtree(target.keep, ignore_errors=True)
    target.keep.mkdir()
    for file in target.files:
        source, kept = target.root / file["path"], target.keep / "stock" / file["path"]
        if file["stock"] is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            status = source.stat()
            put(kept, source.read_bytes(), status.st_mode & 0o7777, status.st_mtime_ns)


def _missing_directories(target: Target) -> list[str]:
    """The directories that the files need and that are not there, relative to the root."""
    parents = {p for f in target.files if f["patched"] for p in Path(f["path"]).parents}
    return sorted(str(p) for p in parents if not (target.root / p).is_dir())


def _drop_bytecode(path: Path) -> None:
    """Take away what Python compiled from a file that was there before, and the draft of a killed run."""
    with contextlib.suppress(FileNotFoundError):
        path.with_name(f".{path.name}.overlay-new").unlink()
    if path.suffix == ".py":
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()


def _expect(target: Target, wanted: str) -> None:
    refuse([f"{p} {how} after all; run this again" for p, how in target.look().items() if how != wanted])


def _hex(recorded: str) -> str:
    """A hash of a RECORD as hexadecimal digits; empty for none, or another kind."""
    kind, _, value = recorded.partition("=")
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).hex() if kind == "sha256" else ""


def _read_manifest() -> dict[str, Any]:
    try:
        manifest = json.loads((HERE / "manifest.json").read_bytes())
        known = manifest["format"] == FORMAT
        paths = [Path(f["path"]) for f in manifest["files"]]
    except (OSError, ValueError, KeyError, TypeError):
        raise RefusedError(f"{HERE / 'manifest.json'} cannot be read; make the overlay anew") from None
    if not known or any(p.is_absolute() or ".." in p.parts for p in paths):
        raise RefusedError(f"{HERE / 'manifest.json'} is not one that this script understands")
    return dict(manifest)


def _find_root(package: str) -> Path:
    """Where this interpreter would import the package from; it is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise RefusedError(f"{sys.executable} has no {package}; name its site-packages: --into DIR")
    return Path(next(iter(spec.submodule_search_locations))).parent


@contextlib.contextmanager
def _alone(target: Target) -> Iterator[None]:
    """Keep a second run out while this one writes; the kernel lets go of it if this one is killed."""
    directory = os.open(target.root / target.package, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise OSError(0, "another install.py is at work here", str(target.root)) from None
    finally:
        os.close(directory)


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--undo", action="store_true")
    what.add_argument("--mounts", metavar="DIR")
    parser.add_argument("--into", metavar="DIR", type=Path, help="the directory that holds the package")
    asked = parser.parse_args()
    try:
        manifest = _read_manifest()
        if asked.mounts:
            print(mounts(Target(Path(asked.mounts), manifest), asked.mounts))
            return 0
        root = asked.into.resolve() if asked.into else _find_root(str(manifest["package"]))
        target = Target(root, manifest)
        if asked.check:
            print(check(target))
            return 0
        refuse(target.wrong_version() if not asked.undo else [])
        with _alone(target):
            print((undo if asked.undo else install)(target))
    except RefusedError as error:
        print(*error.args, sep="\n", file=sys.stderr)
        return NO
    except OSError as error:
        print(f"{error.filename or 'the file system'}: {error.strerror}", file=sys.stderr)
        return UNWRITABLE
    return 0


if __name__ == "__main__":
    sys.exit(main())
