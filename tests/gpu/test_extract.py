"""A kernel is cut out of its file with what it needs, and nothing that would have to be imported."""

from __future__ import annotations

import pytest

from patchq.gpu.extract import extract_functions

SOURCE = """
import vllm.nowhere
from vllm import platforms

BLOCK = 4
WIDE: tl.constexpr = tl.constexpr(BLOCK * 2)
ROCM = platforms.is_rocm()
AFTER = ROCM + 1


@triton.jit
def helper(x):
    return x + WIDE


@triton.jit(do_not_specialize=["n"])
def kernel(out, n):
    tl.store(out, helper(n))


@other.decorator
def wrapper():
    return platforms


def plain():
    return 1
"""


def test_functions_of_triton_and_plain_values_are_kept() -> None:
    found = extract_functions(SOURCE)
    for kept in ("def helper", "def kernel", "@triton.jit(do_not_specialize", "BLOCK = (4)", "WIDE = ("):
        assert kept in found
    for left in ("vllm", "ROCM", "AFTER", "def wrapper", "def plain"):
        assert left not in found
    assert found.index("BLOCK =") < found.index("WIDE =") < found.index("def helper")
    compile(found, "kernels.py", "exec")


def test_a_file_without_kernels_gives_none() -> None:
    assert "def " not in extract_functions("def plain():\n    return 1\n")


def test_what_is_not_python_is_said_so() -> None:
    with pytest.raises(SyntaxError):
        extract_functions("def (:\n")
