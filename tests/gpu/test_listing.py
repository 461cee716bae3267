"""Humming's PTX is listed again by the command that it kept, and what comes out is what the emulated gate is judged by."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from patchq.gpu.cubin import collect_cubins
from patchq.gpu.judge import contradictions
from patchq.gpu.listing import list_ptx
from tests.support.cubins import make_cubin

if TYPE_CHECKING:
    from pathlib import Path

H200 = {"name": "NVIDIA H200", "capability": [9, 0]}
COMPILER = """import pathlib, sys
assert "-ptx" in sys.argv and "-cubin" not in sys.argv
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(pathlib.Path(__file__).with_name("stored.ptx").read_text())
"""


def kept(cache: Path, listing: str | None) -> Path:
    """A cache as Humming leaves it on an SM90 card, with a compiler that gives a stored listing."""
    folder = cache / "humming" / "0123"
    folder.mkdir(parents=True)
    (cache / "compiler.py").write_text(COMPILER)
    if listing is not None:
        (cache / "stored.ptx").write_text(listing)
    (folder / "kernel.cu").write_text("")
    (folder / "kernel.cubin").write_bytes(make_cubin(number=90, dynamic=4096))
    words = [sys.executable, str(cache / "compiler.py"), "kernel.cu", "-o", "kernel.cubin", "-cubin"]
    (folder / "cmdline.json").write_text(json.dumps(words))
    return folder


@pytest.mark.parametrize(
    ("listing", "said"),
    [
        (".target sm_86\nldmatrix.sync.aligned.m8n8.x4.shared.b16 {a}, [b];\n", ""),
        (".target sm_90a\nmov.u32 a, b;\n", "its PTX is for sm_90a, not sm_86"),
        (".target sm_86\nwgmma.fence.sync.aligned;\n", "sm_86 has no wgmma.fence"),
        (None, "its PTX is for an unknown target"),
    ],
)
def test_a_listing_decides(tmp_path: Path, listing: str | None, said: str) -> None:
    folder = kept(tmp_path, listing)
    list_ptx(tmp_path)
    assert (folder / "kernel.ptx").exists() is (listing is not None)
    cubins = [c.as_dict() for c in collect_cubins(tmp_path)]
    found = contradictions("emulated", "sm_86", H200, cubins)
    assert bool(found) is bool(said)
    assert said in "".join(found)
    assert (folder / "kernel.cubin").read_bytes() == make_cubin(number=90, dynamic=4096)
