"""What a changed file obliges to rebuild, held against the real trees' own build."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.git.commits import read_commit
from patchq.git.objects import Objects
from patchq.vllm.distribution import flat_requirements
from patchq.vllm.rules import read_text
from patchq.vllm.touched import classify, strongest, vendored_directories

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vllm

KINDS = {
    "vllm/sampling_params.py": "python",
    "vllm/model_executor/layers/fused_moe/configs/new.json": "python",
    "vllm/third_party/flash_linear_attention/ops/chunk.py": "python",
    "vllm/vllm_flash_attn/__init__.py": "python",
    "tests/test_logger.py": "nothing",
    "docs/README.md": "nothing",
    ".buildkite/test_areas/kernels.yaml": "nothing",
    "benchmarks/kernels/new.cu": "nothing",
    "requirements/common.txt": "requirements",
    "requirements/cuda.txt": "requirements",
    "requirements/lint.txt": "nothing",
    "requirements/build/cuda.txt": "packaging",
    "setup.py": "packaging",
    "pyproject.toml": "packaging",
    "rust/Cargo.toml": "rust",
    "rust/src/server/src/main.rs": "rust",
    "rust-toolchain.toml": "rust",
    "csrc/ops.h": "native",
    "csrc/libtorch_stable/quantization/machete/generate.py": "native",
    "CMakeLists.txt": "native",
    "cmake/utils.cmake": "native",
    "cmake/external_projects/deepgemm.cmake": "refused",
    "vllm/_version.py": "refused",
    "vllm.egg-info/PKG-INFO": "refused",
    "vllm/_C.abi3.so": "refused",
    "vllm/vllm-rs": "refused",
    "vllm/grpc/vllm_engine_pb2.py": "refused",
    "vllm/third_party/deep_gemm/__init__.py": "refused",
    "vllm/third_party/triton_kernels/matmul.py": "refused",
    "vllm/vllm_flash_attn/flash_attn_new.py": "refused",
}


@pytest.mark.parametrize("base", ["v0.27.1", "v0.33.0"])
def test_files_of_the_real_trees(real_cache: Path, base: str) -> None:
    with Objects(real_cache / "store.git") as objects:
        tree = read_commit(objects, f"refs/patchq/bases/{base}").tree
        vendored = vendored_directories(read_text(objects, tree, "setup.py") or "")

        def has(path: str) -> bool:
            return objects.lookup(tree, path) is not None

        found = {path: classify(path, vendored, has) for path in KINDS}
    assert {path: touched.kind for path, touched in found.items()} == KINDS
    assert "overwrites" in found["vllm/third_party/deep_gemm/__init__.py"].why
    assert strongest(found.values()) == "refused"
    assert strongest(found[p] for p in ("docs/README.md", "csrc/ops.h", "setup.py")) == "native"
    assert strongest([]) == "nothing"


def test_requirements_are_read_as_setup_reads_them(real_cache: Path) -> None:
    with Objects(real_cache / "store.git") as objects:
        tree = read_commit(objects, "refs/patchq/bases/v0.27.1").tree
        found = flat_requirements(lambda path: read_text(objects, tree, path) or "", "cpu")
    assert "blake3" in found
    assert any(line.startswith("torch==2.13.0+cpu;") for line in found)
    assert not [line for line in found if line.startswith(("-", "#"))]
