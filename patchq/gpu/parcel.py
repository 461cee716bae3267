"""A bundle's contents: which chunks make which file, gathered from parts and unpacked; standard library only."""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import shutil
import tarfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

DATA = "data"
_BLOCK = 1 << 20


def sha256_of(data: bytes) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def sha256_of_file(path: Path) -> str:
    """In hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class Parcel:
    """What a bundle carries, in the work directory where it is unpacked.

    Args:
        plan: the bundle's `bundle.json`: `payloads`, each with `name`, `kind`, `sha256`, and `chunks` of `sha256`,
            `size` and `part`.
        work: where chunks are gathered and unpacked.
    """

    def __init__(self, plan: dict[str, Any], work: Path) -> None:
        self._payloads: list[dict[str, Any]] = plan["payloads"]
        self._stubs: list[str] = plan["stubs"]
        self.parts: int = plan["parts"]
        self._work = work
        self._chunks = work / "chunks"
        self.blobs = work / "blobs"
        self._trees: dict[str, Any] = {}

    def take(self, places: list[Path]) -> None:
        """Gather the chunks that are missing from directories: their `data`, and that of parts in or beside them."""
        self._chunks.mkdir(parents=True, exist_ok=True)
        wanted = {c["sha256"]: c for p in self._payloads if not self._done(p) for c in p["chunks"]}
        for place in places:
            for folder in (place, *place.glob("part-*"), *place.parent.glob("part-*")):
                for name, chunk in wanted.items():
                    source, target = folder / DATA / name, self._chunks / name
                    if target.is_file() or not source.is_file() or source.stat().st_size != chunk["size"]:
                        continue
                    draft = target.with_suffix(".new")
                    shutil.copyfile(source, draft)
                    if sha256_of_file(draft) == name:
                        draft.replace(target)
                    else:
                        draft.unlink()

    def missing(self) -> list[str]:
        """The parts of which something is missing still, by name."""
        parts = {
            c["part"]
            for p in self._payloads
            if not self._done(p)
            for c in p["chunks"]
            if not (self._chunks / c["sha256"]).is_file()
        }
        return [f"part-{n}" for n in sorted(parts)]

    def unpack(self) -> None:
        """Unpack every file all of whose chunks are here, and let the chunks go."""
        ready = [
            p
            for p in self._payloads
            if not self._done(p) and all((self._chunks / c["sha256"]).is_file() for c in p["chunks"])
        ]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(self._unpack, ready))

    def _note(self, payload: dict[str, Any]) -> Path:
        return self._work / "unpacked" / str(payload["sha256"])

    def _done(self, payload: dict[str, Any]) -> bool:
        return self._note(payload).exists()

    def _unpack(self, payload: dict[str, Any]) -> None:
        whole = self._chunks / f"{payload['sha256']}.whole"
        with whole.open("wb") as file:
            for chunk in payload["chunks"]:
                with (self._chunks / chunk["sha256"]).open("rb") as source:
                    shutil.copyfileobj(source, file, _BLOCK)
        if sha256_of_file(whole) != payload["sha256"]:
            raise ValueError(f"{payload['name']} is not what the bundle says")
        getattr(self, f"_put_{payload['kind']}")(whole, payload["name"])
        self._note(payload).parent.mkdir(exist_ok=True)
        self._note(payload).touch()
        whole.unlink()
        for chunk in payload["chunks"]:
            (self._chunks / chunk["sha256"]).unlink(missing_ok=True)

    def _put_blobs(self, whole: Path, name: str) -> None:
        """A tar.xz of blobs, each under its id."""
        self.blobs.mkdir(exist_ok=True)
        with tarfile.open(whole, "r:xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is None or "/" in member.name:
                    raise ValueError(f"{name} has a member {member.name!r} that is no blob")
                (self.blobs / member.name).write_bytes(content.read())

    def _put_trees(self, whole: Path, name: str) -> None:
        (self._work / "trees.json").write_bytes(lzma.decompress(whole.read_bytes()))

    def _put_overlay(self, whole: Path, name: str) -> None:
        """One xz-compressed file that goes into each tree."""
        target = self._work / "overlay" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(whole) as source, target.open("wb") as file:
            shutil.copyfileobj(source, file, _BLOCK)

    def _put_distribution(self, whole: Path, name: str) -> None:
        """A file of the metadata that the package under test reads of itself."""
        target = self._work / "distribution" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(whole, target)

    def _put_wheel(self, whole: Path, name: str) -> None:
        """A wheel, installed as pip's `--target` does: its libraries of both kinds side by side, without its scripts."""
        top = self._work / "site"
        with zipfile.ZipFile(whole) as archive:
            for member in archive.infolist():
                parts = Path(member.filename).parts
                if member.is_dir() or not parts or ".." in parts or member.filename.startswith("/"):
                    continue
                if parts[0].endswith(".data"):
                    if len(parts) < 3 or parts[1] not in {"purelib", "platlib"}:  # noqa: PLR2004
                        continue
                    parts = parts[2:]
                target = top.joinpath(*parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(member))
                if member.external_attr >> 16 & 0o111:
                    target.chmod(0o755)

    def site(self) -> list[Path]:
        """What is on the import path after the tree."""
        return [p for p in (self._work / "site", self._work / "distribution") if p.is_dir()]

    def manifest(self, tree: str) -> dict[str, tuple[int, str]]:
        """What is in a tree: the base's files and what differs from them."""
        if not self._trees:
            self._trees = json.loads((self._work / "trees.json").read_bytes())
        files = {**self._trees["base"], **self._trees["changes"][tree]}
        return {name: (entry[0], entry[1]) for name, entry in files.items() if entry is not None}

    def overlay(self) -> dict[str, Path]:
        """What is put into each tree beside its files: compiled extensions, and stubs for those that are left out."""
        found = {
            p["name"]: self._work / "overlay" / p["name"] for p in self._payloads if p["kind"] == "overlay"
        }
        empty = self._work / "stub.py"
        empty.touch()
        return {**found, **dict.fromkeys(self._stubs, empty)}
