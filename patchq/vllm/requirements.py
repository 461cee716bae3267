"""What a vLLM tree asks to be installed before its tests can be run without building it; read from the tree itself."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchq.git.objects import Objects

TEST_TOOLS = ("pytest", "pytest-asyncio", "tblib")
"""What vLLM's own conftest imports and its async tests need; nothing else of its test requirements."""
COMMON = "requirements/common.txt"
DEVICE = "requirements/cuda.txt"
DEVICE_ONLY = ("humming-kernels",)
"""Pinned in the device's requirements, and importable without the device."""


@dataclass(frozen=True)
class Requirements:
    """What to install.

    Attributes:
        text: a requirements file.
        torch: the version that is pinned, or chosen by a person.
        chosen: whether a person chose it.
        compiled: whether the tree has operations that are compiled ahead of time.
    """

    text: str
    torch: str
    chosen: bool
    compiled: bool


def read_requirements(objects: Objects, tree: str, torch: str | None) -> Requirements:
    """The requirements of a tree.

    Args:
        objects: where the tree is read.
        tree: its id.
        torch: a version of torch to take instead of the pinned one.
    """

    def read(path: str) -> str:
        entry = objects.lookup(tree, path)
        return objects.blob(entry.oid).decode("utf-8", "replace") if entry is not None else ""

    lines = [line.strip() for line in read(COMMON).splitlines()]
    kept = [line for line in lines if line and not line.startswith(("#", "-"))]
    pinned = re.search(r"^\s*\"torch\s*==\s*([0-9][^\";\s]*)\"", read("pyproject.toml"), re.MULTILINE)
    version = torch or (pinned[1] if pinned else "")
    if version:
        kept.append(f"torch=={version}")
    for name in DEVICE_ONLY:
        found = re.search(rf"^{name}(?:\[[^]]*\])?\s*==\s*([0-9][^\s;#]*)", read(DEVICE), re.MULTILINE)
        if found:
            kept.append(f"{name}=={found[1]}")
    text = "\n".join([*kept, *TEST_TOOLS]) + "\n"
    return Requirements(
        text, version, torch is not None, objects.lookup(tree, "vllm/_custom_ops.py") is not None
    )
