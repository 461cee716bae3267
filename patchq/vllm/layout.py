"""Where things stand in a vLLM tree."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchq.series.lock import Base

TESTS = "tests/"
UNTETHERED = "tools/pre_commit/test_tethering_allowlist.txt"
"""Test files that no step of the CI collects, by name (0.33.0's tools/pre_commit/check_test_tethering.py)."""


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests; what is not a test is production."""
    return path.startswith(TESTS) or path == UNTETHERED


def release_of(name: str, base: Base) -> str:
    """The version of vLLM that a base is the release of; empty where its name and source do not say."""
    return base.source.version or (name[1:] if re.fullmatch(r"v\d+\.\d+\.\d+", name) else "")


def may_matter_to_tests(path: str) -> bool:
    """Whether a file that one tree has and another lacks could change how tests end."""
    return path.startswith(("vllm/", TESTS)) or path in {
        "conftest.py",
        "pyproject.toml",
        "pytest.ini",
        "setup.cfg",
        "tox.ini",
    }
