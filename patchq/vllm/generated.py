"""Which files of a vLLM release sdist are made by its build and are not in its repository."""

from __future__ import annotations


def is_generated(path: str) -> bool:
    """Whether an sdist's file is generated (measured on 0.27.1 to 0.33.0; setuptools and setuptools-scm write them)."""
    top = path.split("/", 1)[0]
    return path in {"PKG-INFO", "setup.cfg", "vllm/_version.py"} or top.endswith(".egg-info")
