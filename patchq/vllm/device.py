"""vLLM on a card without building it: the extensions of the released wheel, and what its tests need beside torch.

The extensions of the stable ABI load and run under another torch than the one that they were built with (facts:
running vLLM's tests). Flash attention's are left out, 460 MB of them; an empty module stands in for the import, and
whoever calls its operators is told that there are none.
"""

from __future__ import annotations

import base64
import hashlib
import json
import lzma
import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked, write_atomically
from patchq.errors import EnvironmentLacksError
from patchq.upstream.index import find_wheel, unreachable
from patchq.vllm import PROJECT
from patchq.vllm.environment import GIVEN_VARIABLES, distributions
from patchq.vllm.requirements import read_requirements

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.lock import Base

EXTENSIONS = (f"{PROJECT}/_C_stable_libtorch.abi3.so", f"{PROJECT}/_moe_C_stable_libtorch.abi3.so")
STUBS = (f"{PROJECT}/vllm_flash_attn/_vllm_fa2_C.py",)
OWN = re.compile(r"(?:torch|triton|nvidia-.*|pip|setuptools|wheel)==", re.IGNORECASE)
"""What the machine with the card brings itself."""


@dataclass(frozen=True)
class Extension:
    """A compiled file of a release: where it is kept, xz-compressed, and the hash of its plain bytes."""

    path: Path
    sha256: str


@dataclass(frozen=True)
class Kit:
    """What a base's tests need on a machine with a card, besides torch.

    Attributes:
        extensions: compiled files, by path in the tree.
        stubs: empty Python modules, by path in the tree.
        metadata: files of the distribution's metadata, by path.
        variables: for the tests; `{sandbox}` stands for the run's own directory.
        torch: the version of torch that the base pins; empty for a base without torch.
    """

    extensions: Mapping[str, Extension]
    stubs: tuple[str, ...]
    metadata: Mapping[str, bytes]
    variables: Mapping[str, str]
    torch: str

    @property
    def compiled(self) -> bool:
        """Whether the tests run on the release's own extensions."""
        return bool(self.extensions)


def ensure_kit(name: str, base: Base, objects: Objects, tree: str, progress: Progress) -> Kit:
    """The kit of a base; what is not in the cache is fetched.

    Args:
        name: the base's name.
        base: what the lock says of it.
        objects: where its tree is read.
        tree: its tree.
        progress: told how far it is.

    Raises:
        EnvironmentLacksError: the index cannot be reached, or has no such release.
    """
    wanted = read_requirements(objects, tree, None)
    version = base.source.version or (name[1:] if re.fullmatch(r"v\d+\.\d+\.\d+", name) else "")
    if not wanted.compiled:
        return Kit({}, (), {}, GIVEN_VARIABLES, wanted.torch)
    if not version:
        raise EnvironmentLacksError(
            f"{name} is no release, and compiled extensions come from a release's wheel.",
            "Bundle the patches on a base that is a release.",
        )
    info = f"{PROJECT}-{version}.dist-info"
    text = f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: {version}\n"
    return Kit(
        released_extensions(version, progress),
        STUBS,
        {f"{info}/METADATA": text.encode()},
        GIVEN_VARIABLES,
        wanted.torch,
    )


def pinned_distributions(objects: Objects, tree: str, python: str, progress: Progress) -> tuple[str, ...]:
    """What to install beside torch on another machine: the versions of this one's test environment, as pip names them.

    Args:
        objects: where the base's tree is read.
        tree: its tree.
        python: the version of Python on that machine, such as `3.12`.
        progress: told how far it is.

    Raises:
        EnvironmentLacksError: there is no test environment here, and it cannot be made.
    """
    wanted = read_requirements(objects, tree, None)
    here = [d for d in distributions(wanted, progress) if not OWN.match(d)]
    return tuple(sorted([*here, *_elsewhere(wanted.text, python)]))


def _elsewhere(requirements: str, python: str) -> list[str]:
    """Requirements that are asked for with that Python and not with this one."""
    from packaging.requirements import InvalidRequirement, Requirement

    there = {"python_version": python, "python_full_version": f"{python}.0"}
    found = []
    for line in requirements.splitlines():
        try:
            requirement = Requirement(line.split(" #")[0].strip())
        except InvalidRequirement:
            continue
        marker = requirement.marker
        wanted = marker is not None and marker.evaluate(there) and not marker.evaluate()
        if wanted and not OWN.match(f"{requirement.name}=="):
            found.append(f"{requirement.name}{requirement.specifier}")
    return found


def released_extensions(version: str, progress: Progress) -> dict[str, Extension]:
    """The extensions of a release's wheel for this kind of machine, read out of it without fetching the rest.

    Each is checked against the hash that the wheel's own RECORD has for it.

    Raises:
        EnvironmentLacksError: the index cannot be reached, or has no such wheel.
    """
    top = cache_dir() / "released" / f"{version}-{platform.machine()}"
    note = top / "extensions.json"
    if not note.is_file():
        top.mkdir(parents=True, exist_ok=True)
        with locked(f"released-{version}", f"fetching the extensions of {version}"):
            write_atomically(note, json.dumps(_take_extensions(version, top, progress), indent=1).encode())
    return {
        name: Extension(top / f"{digest}.xz", digest)
        for name, digest in json.loads(note.read_bytes()).items()
    }


def _take_extensions(version: str, top: Path, progress: Progress) -> dict[str, str]:
    from remotezip import RemoteIOError, RemoteZip
    from requests import RequestException

    release = find_wheel(PROJECT, version, platform.machine())
    if release is None:
        raise EnvironmentLacksError(
            f"the package index has no wheel of {PROJECT} {version} for {platform.machine()}.",
            "Bundle the patches on a base that has one.",
        )
    found = {}
    try:
        with RemoteZip(release.url) as archive:
            record = archive.read(f"{PROJECT}-{version}.dist-info/RECORD").decode()
            hashes = dict(re.findall(r"^([^,\n]+),sha256=([\w-]+),", record, re.MULTILINE))
            members = [m for m in archive.namelist() if m in EXTENSIONS]
            with progress.task(
                f"fetching {len(members)} extensions", total=len(members), unit="files"
            ) as step:
                for member in members:
                    data = archive.read(member)
                    digest = hashlib.sha256(data)
                    if base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode() != hashes.get(member):
                        raise EnvironmentLacksError(
                            f"{member} of {release.filename} is not what its RECORD says.",
                            "Run the same command again; if it stays so, the index serves a broken wheel.",
                        )
                    write_atomically(top / f"{digest.hexdigest()}.xz", lzma.compress(data, preset=6))
                    found[member] = digest.hexdigest()
                    step(1)
    except (RequestException, RemoteIOError) as error:
        raise unreachable(error) from None
    return found
