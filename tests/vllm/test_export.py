"""The real patches handed on: over the files of the released package, to git am, to quilt."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patchq.git.objects import Objects
from patchq.series.series import load_series
from tests.support.shipped import PINNED, ROOT, shipped

pytestmark = pytest.mark.vllm


@pytest.fixture(scope="module")
def export(real_cache: Path) -> Any:
    def call(*args: str) -> Any:
        return json.loads(shipped(real_cache, "export", *args, "--json").stdout)

    return call


@pytest.fixture
def stock(real_cache: Path, tmp_path: Path) -> Path:
    """The files of the package that the lane touches, as the base has them, and a git tree of nothing else."""
    series = load_series(ROOT)
    top = tmp_path / "stock"
    with Objects(real_cache / "store.git") as objects:
        tree = series.lock.bases[PINNED].tree
        for body in series.lane(PINNED):
            for line in body.data.split(b"\n"):
                if line.startswith(b"diff --git a/"):
                    path = line[13:].partition(b" b/")[0].decode()
                    entry = objects.lookup(tree, path)
                    if entry is not None:
                        (top / path).parent.mkdir(parents=True, exist_ok=True)
                        (top / path).write_bytes(objects.blob(entry.oid))
    return top


def script(overlay: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-I", "-S", str(overlay / "install.py"), *args]
    return subprocess.run(command, capture_output=True, check=False, text=True)


def test_overlay_on_the_released_files(export: Any, stock: Path, tmp_path: Path) -> None:
    document = export("overlay", "--out", str(tmp_path / "overlay"))
    assert document["version"] == "0.27.1"
    assert document["tree"] == load_series(ROOT).lock.lanes[PINNED][-1].tree
    assert all(path.startswith("vllm/") for path in document["files"])
    info = stock / "vllm-0.27.1+cu129.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Version: 0.27.1+cu129\n")
    (info / "RECORD").write_text("vllm/__init__.py,,\n")
    for args, code in (
        (["--check"], 1),
        ([], 0),
        (["--check"], 0),
        ([], 0),
        (["--undo"], 0),
        (["--check"], 1),
    ):
        done = script(tmp_path / "overlay", *args, "--into", str(stock))
        assert done.returncode == code, (args, done.stderr)
    (info / "METADATA").write_text("Version: 0.28.0\n")
    done = script(tmp_path / "overlay", "--into", str(stock))
    assert (done.returncode, "is 0.28.0, the overlay is for 0.27.1" in done.stderr) == (1, True)


def test_git_am_and_quilt_agree(export: Any, stock: Path, tmp_path: Path) -> None:
    """On the files that the lane touches alone: the whole tree is applied in the test of the main job."""
    env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "EMAIL": "a@b.c", "QUILT_PC": str(tmp_path / "pc")}

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=stock, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().strip()

    run("git", "init", "-q")
    run("git", "add", "-A")
    run("git", "commit", "-qm", "stock")
    export("mbox", "--out", str(tmp_path / "all.mbox"))
    run("git", "am", "-q", "--keep-non-patch", "--keep-cr", str(tmp_path / "all.mbox"))
    mailed = run("git", "rev-parse", "HEAD^{tree}")
    assert run("git", "log", "--format=%s", "-1") == load_series(ROOT).patches[-1].title
    if shutil.which("quilt") is None:
        pytest.skip("quilt is not installed")
    run("git", "checkout", "-q", "--detach", f"HEAD~{len(load_series(ROOT).lane(PINNED))}")
    export("quilt", "--out", str(tmp_path / "patches"))
    env["QUILT_PATCHES"] = str(tmp_path / "patches")
    run("quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0")
    run("git", "add", "-A")
    assert run("git", "write-tree") == mailed
