"""vLLM on a card without building it: the extensions of the released wheel, and what its tests need beside torch.

The extensions of the stable ABI load and run under another torch than the one that they were built with (facts:
running vLLM's tests). Flash attention's are left out, 460 MB of them; an empty module stands in for the import, and
whoever calls its operators is told that there are none.
"""

from __future__ import annotations

import hashlib
import lzma
import platform
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked, write_atomically
from patchq.errors import EnvironmentLacksError
from patchq.vllm import PROJECT
from patchq.vllm.environment import GIVEN_VARIABLES, distributions
from patchq.vllm.extensions import ensure_extensions
from patchq.vllm.layout import release_of
from patchq.vllm.requirements import read_requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
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
    version = release_of(name, base)
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
        _released_extensions(version, lambda path: objects.lookup(tree, path) is not None, progress),
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


def _released_extensions(
    version: str, tracked: Callable[[str], bool], progress: Progress
) -> dict[str, Extension]:
    """Of what the release's wheel holds for cards, the extensions that tests are run with, compressed once."""
    released = ensure_extensions("cuda", version, tracked, progress)
    files = {name: file for name, file in released.files.items() if name in EXTENSIONS}
    lacking = [name for name in EXTENSIONS if name not in files]
    if lacking:
        raise EnvironmentLacksError(
            f"no wheel of {PROJECT} {version} for {platform.machine()} has {lacking[0]}.",
            "Bundle the patches on a base whose release has it.",
        )
    return {name: _compressed(name, file, progress) for name, file in files.items()}


def _compressed(name: str, file: Path, progress: Progress) -> Extension:
    data = file.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    top = cache_dir() / "released"
    top.mkdir(exist_ok=True)
    path = top / f"{digest}.xz"
    with locked(f"released-{digest[:16]}", f"compressing {name}"):
        if not path.is_file():
            with progress.task(f"compressing {name}", total=1, unit="files") as step:
                write_atomically(path, lzma.compress(data, preset=6))
                step(1)
    return Extension(path, digest)
