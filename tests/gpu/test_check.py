"""`patchq gpu check` names each kernel, what it takes of the target, and what is wrong with it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from patchq.gpu import check
from tests.support.cubins import make_cubin
from tests.support.proving import BETTER

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

FILE = "pkg/kernels.py"
KERNEL = b"""import nowhere
from triton import jit
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, out_ptr, n, BLOCK: tl.constexpr, STRANGE: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x_ptr + at, mask=at < n)
    if STRANGE:
        value = value.to(tl.float8e4nv).to(tl.float32)
    tl.store(out_ptr + at, value + 1, mask=at < n)
"""
DECLARED: dict[str, Any] = {
    "triton": FILE,
    "function": "add",
    "types": {"x_ptr": "*fp32", "out_ptr": "*fp32"},
    "constants": {"BLOCK": 128, "STRANGE": True},
    "below": {"sm_89": {"STRANGE": False}},
}
HUMMING = {"humming": "indexed", "layer": {"shape_n": 128, "shape_k": 128}}


def has_triton(python: str) -> bool:
    done = subprocess.run([python, "-c", "import triton, torch"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.fixture
def triton() -> str:
    """An interpreter with Triton: `TRITON_PYTHON`, or this one."""
    python = os.environ.get("TRITON_PYTHON", sys.executable)
    if not has_triton(python):
        pytest.skip(f"{python} has no Triton; name one that has in TRITON_PYTHON")
    return python


def compilers(directory: Path, monkeypatch: pytest.MonkeyPatch, answer: str) -> str:
    """An nvcc first on PATH, and a Python whose probes say just this."""
    tools = directory / "tools"
    tools.mkdir()
    said = f"echo '{answer}'; " if answer else ""
    python = f'case "$1" in *_kernels.py) {said}exit 0;; esac\nexec {sys.executable} "$@"'
    for name, script in (("nvcc", "echo release"), ("python", python)):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    return str(tools / "python")


def declare(world: World, *kernels: dict[str, Any], source: bytes = KERNEL) -> None:
    world.series(("0001-better", {"pkg/model.py": BETTER, FILE: source}))
    world.describe("0001-better", kernels=list(kernels))


def test_a_kernel_is_compiled_without_the_card_and_once(world: World, triton: str) -> None:
    declare(world, DECLARED)
    words = ("gpu", "check", "--target", "sm_86", "--target", "sm_80", "--python", triton)
    first, second = world.ok(*words), world.ok(*words)
    assert [(k["name"], k["target"], k["status"]) for k in first["kernels"]] == [
        ("add", "sm_86", "ok"),
        ("add", "sm_80", "ok"),
    ]
    assert [k["limit_bytes"] for k in first["kernels"]] == [101_376, 166_912]
    assert all(0 < k["registers"] < 256 and k["stack_bytes"] == 0 for k in first["kernels"])
    assert [k["cached"] for k in [*first["kernels"], *second["kernels"]]] == [False, False, True, True]
    assert "1 of 1 kernels within" in world.patchq(*words[:4], "--python", triton).out


def test_a_kernel_that_the_target_cannot_have_fails_with_the_compilers_words(
    world: World, triton: str
) -> None:
    declare(world, {**DECLARED, "below": {}})
    refused = world.patchq("gpu", "check", "--target", "sm_86", "--python", triton, "--json")
    (kernel,) = refused.json["kernels"]
    assert (refused.code, kernel["status"], kernel["patch"]) == (1, "does not compile", "0001-better")
    assert "fp8e4nv" in kernel["detail"]
    stock = world.patchq("gpu", "check", "--stock", "--python", triton, "--json")
    assert stock.code == 1
    assert "the tree has no pkg/kernels.py" in stock.json["kernels"][0]["detail"]


def test_a_tree_without_the_file_needs_no_compiler(world: World) -> None:
    declare(world, DECLARED)
    refused = world.patchq("gpu", "check", "--stock", "--python", sys.executable)
    assert refused.code == 1
    assert "does not compile: the tree has no pkg/kernels.py" in refused.out


def test_a_patch_that_declares_no_kernel(world: World) -> None:
    declare(world)
    refused = world.patchq("gpu", "check", "--python", sys.executable)
    assert refused.code == 2
    assert "zero kernels to compile" in refused.err


def test_a_target_that_is_not_known(world: World) -> None:
    declare(world, DECLARED)
    refused = world.patchq("gpu", "check", "--target", "sm_7", "--python", sys.executable)
    assert refused.code == 2
    assert "'sm_7' is no target" in refused.err


def test_without_nvcc_hummings_kernels_are_not_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(world, HUMMING)
    real = shutil.which
    monkeypatch.setattr(check.shutil, "which", lambda name: None if name == "nvcc" else real(name))
    missing = world.patchq("gpu", "check", "--python", sys.executable, "--json")
    (kernel,) = missing.json["kernels"]
    assert (missing.code, kernel["status"], kernel["ok"]) == (3, "not run", False)
    assert "needs nvcc" in kernel["detail"]


def test_a_compiler_that_gives_no_kernel_is_no_pass(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Zero kernels compiled is an answer, and the wrong one."""
    python = compilers(tmp_path, monkeypatch, "")
    declare(world, HUMMING, DECLARED)
    refused = world.patchq("gpu", "check", "--python", python, "--json")
    assert refused.code == 1
    assert [(k["status"], k["detail"]) for k in refused.json["kernels"]] == [
        ("does not compile", "zero kernels compiled")
    ] * 2


def test_a_base_has_kernels_of_its_own(world: World) -> None:
    """What is said of a base takes the place of what is said for all, and is not added to it."""
    declare(world)
    there = {"v1": {"kernels": [{"triton": FILE, "function": "other"}]}}
    world.describe("0001-better", kernels=[DECLARED, HUMMING], bases=there)
    refused = world.patchq("gpu", "check", "--python", sys.executable, "--json")
    assert refused.code == 1
    assert [k["name"] for k in refused.json["kernels"]] == ["other"]


def test_an_argument_that_the_caller_leaves_out_is_compiled_in(world: World, triton: str) -> None:
    source = KERNEL.replace(b"if STRANGE:", b"if x_scale_ptr is not None:").replace(
        b"n, BLOCK", b"n, x_scale_ptr, BLOCK"
    )
    given = {**DECLARED["constants"], "x_scale_ptr": None}
    declare(world, {**DECLARED, "constants": given}, source=source)
    (kernel,) = world.ok("gpu", "check", "--target", "sm_86", "--python", triton)["kernels"]
    assert kernel["status"] == "ok"
    world.describe("0001-better", kernels=[DECLARED])
    refused = world.patchq("gpu", "check", "--target", "sm_86", "--python", triton, "--json")
    assert (refused.code, refused.json["kernels"][0]["status"]) == (1, "does not compile")


@pytest.mark.parametrize(("dynamic", "status"), [(4096, "ok"), (None, "does not compile")])
def test_a_kernel_of_humming_says_in_its_cubin_what_it_takes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dynamic: int | None, status: str
) -> None:
    (tmp_path / "kernel.cubin").write_bytes(make_cubin(dynamic=dynamic))
    answer = json.dumps({"path": str(tmp_path / "kernel.cubin"), "name": "m16"})
    python = compilers(tmp_path, monkeypatch, answer)
    declare(world, HUMMING)
    checked = world.patchq("gpu", "check", "--python", python, "--json")
    (kernel,) = checked.json["kernels"]
    assert (kernel["status"], kernel["shared_bytes"]) == (status, dynamic)
