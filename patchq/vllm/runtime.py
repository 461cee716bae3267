"""Which files of a vLLM tree run as they are from an installed package, and which must be built or installed first."""

from __future__ import annotations

from typing import Literal

from patchq.vllm import PROJECT

INERT = (
    ".buildkite/",
    ".github/",
    "benchmarks/",
    "docs/",
    "examples/",
    "tests/",
    "tools/",
)
"""Directories that a released wheel has nothing of."""
COMPILED = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".pyx", ".rs", ".so")

Part = Literal["runtime", "test", "inert", "built"]


def part_of(path: str) -> Part:
    """What a file is to an installed package.

    Returns:
        `runtime` where the package runs it from where it stands; `test` and `inert` where it does without; `built` where
        a change takes effect only in a build or an installation.
    """
    if path.startswith(f"{PROJECT}/"):
        return "built" if path.endswith(COMPILED) else "runtime"
    if path.startswith(INERT):
        return "test" if path.startswith("tests/") else "inert"
    return "inert" if "/" not in path and path.endswith(".md") else "built"


def may_matter_to_tests(path: str) -> bool:
    """Whether a file that one tree has and another lacks could change how tests end."""
    return path.startswith((f"{PROJECT}/", "tests/")) or path in {
        "conftest.py",
        "pyproject.toml",
        "pytest.ini",
        "setup.cfg",
        "tox.ini",
    }
