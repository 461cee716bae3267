"""A result claims no more than its kernels show."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.gpu.check import Checked, judge_kernel
from patchq.gpu.judge import contradictions

H200 = {"name": "NVIDIA H200", "capability": [9, 0]}
AMPERE = {"name": "NVIDIA GeForce RTX 3090", "capability": [8, 6]}
KERNEL: dict[str, Any] = {
    "name": "humming",
    "origin": "humming",
    "sha256": "ab" * 32,
    "target": "sm_90",
    "ptx_target": "sm_86",
    "registers": 88,
    "stack_bytes": 0,
    "shared_bytes": 102_400,
    "newer": [],
}
"""It asks for all that a block may have on sm_86; compiled for sm_90, its size holds the 1,024 bytes that the system keeps."""


def test_an_emulated_kernel_within_its_limits_speaks_for_itself() -> None:
    assert contradictions("emulated", "sm_86", H200, [KERNEL]) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shared_bytes": 102_401}, "101377 bytes of shared memory, above 101376"),
        ({"ptx_target": "sm_90a"}, "its PTX is for sm_90a, not sm_86"),
        ({"ptx_target": ""}, "its PTX is for an unknown target"),
        ({"newer": ["wgmma.fence.sync.aligned"]}, "sm_86 has no wgmma.fence"),
        ({"target": "sm_80", "shared_bytes": 101_376}, "a cubin of another target"),
        ({"origin": "triton"}, "zero kernels compiled"),
    ],
)
def test_what_an_emulated_kernel_may_not_do(change: dict[str, Any], said: str) -> None:
    (found,) = contradictions("emulated", "sm_86", H200, [{**KERNEL, **change}])
    assert said in found


def test_native_is_the_target_and_nothing_else() -> None:
    own = {**KERNEL, "target": "sm_86", "shared_bytes": 101_376}
    assert contradictions("native", "sm_86", AMPERE, [own]) == []
    assert contradictions("native", "sm_86", H200, []) == ["native: the card is sm_90, not sm_86"]
    assert "another target" in contradictions("native", "sm_86", AMPERE, [KERNEL])[0]
    assert contradictions("gpu", "sm_86", None, []) == ["gpu: no card was used"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, "ok"),
        ({"shared_bytes": 101_377}, "too much shared memory"),
        ({"stack_bytes": 8}, "spills"),
        ({"target": "sm_90"}, "another target"),
        ({"error": "CompilationError: type fp8e4nv not supported"}, "does not compile"),
    ],
)
def test_a_compiled_kernel_is_held_against_the_card(change: dict[str, Any], status: str) -> None:
    blank = Checked("0001-better", "kernel", "sm_86", "not run", 101_376)
    found = judge_kernel(blank, {**KERNEL, "target": "sm_86", "shared_bytes": 101_376, **change})
    assert found.status == status
    assert found.ok is (status == "ok")


def test_a_patch_may_say_that_its_kernel_spills() -> None:
    blank = Checked("0001-better", "kernel", "sm_86", "not run", 101_376)
    kernel = {**KERNEL, "target": "sm_86", "shared_bytes": 101_376, "stack_bytes": 8}
    said = judge_kernel(blank, kernel, allowed=8)
    assert said.ok
    assert said.detail == "spills 8 bytes, declared"
    assert not judge_kernel(blank, kernel, allowed=7).ok


def test_an_emulated_target_whose_limits_are_not_known_is_no_pass() -> None:
    (said,) = contradictions("emulated", "sm_96", H200, [KERNEL])
    assert "how much shared memory sm_96 has is not known" in said
