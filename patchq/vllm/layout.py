"""Where things stand in a vLLM tree."""

from __future__ import annotations

TESTS = "tests/"


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests; what is not a test is production."""
    return path.startswith(TESTS)
