"""What a changed file of a vLLM tree obliges to rebuild.

Facts: setup.py (which packages, data, extensions and requirements make an install) and cmake/external_projects (which
sources come from other repositories) of 0.27.1 to 0.33.0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.vllm.generated import is_generated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Kind = Literal["nothing", "python", "requirements", "packaging", "rust", "native", "refused"]
KINDS: tuple[Kind, ...] = ("nothing", "python", "requirements", "packaging", "rust", "native", "refused")
"""Weakest first."""
WHY = {
    "nothing": "no part of an install",
    "python": "Python, taken from the checkout as it is",
    "requirements": "says what must be installed beside it",
    "packaging": "decides how an install is made, so that the tree's own build must run",
    "rust": "compiled by cargo into vllm-rs and the _rust extensions",
    "native": "compiled into the extensions",
}
_NATIVE = re.compile(r"(?:csrc|cmake)/|CMakeLists\.txt$|.+\.(?:cu|cuh|c|cc|cpp|h|hpp|inl)$")
_RUST = re.compile(r"rust/|rust-toolchain\.toml$|build_rust\.sh$|tools/build_rust\.py$")
_PACKAGING = {
    "setup.py",
    "pyproject.toml",
    "MANIFEST.in",
    "use_existing_torch.py",
    "tools/use_existing_torch.py",
}
_PROTO = re.compile(r".+_pb2(?:_grpc)?\.pyi?$")


@dataclass(frozen=True)
class Touched:
    """One changed file, what it belongs to, and why that matters."""

    path: str
    kind: Kind
    why: str


def classify(path: str, vendored: Iterable[str], has: Callable[[str], bool]) -> Touched:
    """What a changed file belongs to.

    Args:
        path: in the tree.
        vendored: directories that the build fills from other repositories, from `vendored_directories`.
        has: whether the base's tree has a file.
    """
    if is_generated(path) or _PROTO.fullmatch(path):
        return Touched(path, "refused", "the build generates it, so that what is written there is lost")
    if path.startswith("cmake/external_projects/"):
        return Touched(path, "refused", "names sources in another repository, which nothing here proves")
    if not has(path):
        for directory in vendored:
            if path.startswith(directory):
                why = f"{directory} is filled from another repository, and the build overwrites what is there"
                return Touched(path, "refused", why)
    if re.search(r"\.(?:so|pyd|dylib)$", path) or path == "vllm/vllm-rs":
        return Touched(path, "refused", "the build compiles it; patch its source")
    kind = _kind(path)
    return Touched(path, kind, WHY[kind])


def _kind(path: str) -> Kind:
    if path.startswith("vllm/"):
        return "python"
    if _RUST.match(path):
        return "rust"
    if path in _PACKAGING:
        return "packaging"
    if path.startswith(("tests/", "docs/", "benchmarks/", "examples/", ".buildkite/", ".github/", "docker/")):
        return "nothing"
    if _NATIVE.match(path):
        return "native"
    if re.fullmatch(r"requirements/(?:common|cpu|cuda|rocm|xpu|tpu)\.txt", path):
        return "requirements"
    return "packaging" if re.fullmatch(r"requirements/build/.+\.txt", path) else "nothing"


def vendored_directories(setup: str) -> tuple[str, ...]:
    """The directories of the package that setup.py takes from a wheel or from other repositories.

    Args:
        setup: the text of the tree's setup.py.
    """
    found = re.findall(r"vllm/(?:third_party/\w+|vllm_flash_attn)/", setup)
    return tuple(sorted(set(found)))


def strongest(touched: Iterable[Touched]) -> Kind:
    """The kind that decides what must be done."""
    return max((t.kind for t in touched), key=KINDS.index, default="nothing")
