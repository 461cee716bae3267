"""What a cubin says of itself is read from its bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from patchq.gpu.cubin import NotACubinError, collect_cubins, read_cubin
from tests.support.cubins import make_cubin

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("abi", "number"), [(7, 86), (7, 80), (8, 86), (8, 90), (8, 120)])
def test_the_target_is_in_the_flags_of_either_abi(abi: int, number: int) -> None:
    assert read_cubin(make_cubin(abi=abi, number=number)).target == f"sm_{number}"


def test_resources_are_a_threads_and_a_blocks() -> None:
    found = read_cubin(make_cubin(registers=255, stack=1208, static=512), dynamic=1024)
    assert (found.name, found.registers, found.stack_bytes, found.shared_bytes) == ("kernel", 255, 1208, 1536)


def test_what_humming_asks_for_at_launch_stands_in_its_cubin() -> None:
    assert read_cubin(make_cubin(dynamic=66_560, static=16)).shared_bytes == 66_576
    assert read_cubin(make_cubin(static=16)).shared_bytes == 16


def test_newer_instructions_are_found_in_code_and_not_in_comments() -> None:
    ptx = ".version 8.0\n.target sm_86\n// wgmma.fence\ncp.async.cg.shared.global [a], [b], 16;\n"
    found = read_cubin(make_cubin(), ptx=ptx)
    assert (found.ptx_target, found.newer) == ("sm_86", ())
    newer = read_cubin(make_cubin(), ptx=f"{ptx}wgmma.fence.sync.aligned;\n")
    assert newer.newer == ("wgmma.fence.sync.aligned;",)


@pytest.mark.parametrize(
    "data",
    [b"", b"\x7fELF", b"not a cubin" * 20, make_cubin(machine=62), make_cubin()[:200], make_cubin()[:-64]],
)
def test_anything_else_is_no_cubin(data: bytes) -> None:
    with pytest.raises(NotACubinError):
        read_cubin(data)


def test_every_kernel_of_a_cache_is_found_once(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "it.cubin").write_bytes(make_cubin(static=512))
        (tmp_path / folder / "it.json").write_text(json.dumps({"shared": 53_632}))
        (tmp_path / folder / "it.ptx").write_text(".target sm_86\n")
    (tmp_path / "h").mkdir()
    (tmp_path / "h" / "kernel.cubin").write_bytes(make_cubin(dynamic=4096))
    (tmp_path / "h" / "kernel.cu").write_text("")
    (tmp_path / "broken.cubin").write_bytes(b"half")
    found = {c.origin: c for c in collect_cubins(tmp_path)}
    assert set(found) == {"triton", "humming"}
    assert (found["triton"].shared_bytes, found["triton"].ptx_target) == (512 + 53_632, "sm_86")
    assert (found["humming"].shared_bytes, found["humming"].ptx_target) == (4096, "")
