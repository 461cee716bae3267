"""Quilt and mbox: what quilt and git am make of them is the tree that patchq makes."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from patchq.export.directory import RECORD
from tests.support.world import edited, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

needs_quilt = pytest.mark.skipif(shutil.which("quilt") is None, reason="quilt is not installed")


@pytest.fixture
def text_only(world: World) -> World:
    """Patches without binary files: line ends, no last newline, a new executable, odd names, an empty file."""
    first = edited("pkg/engine.py", 10, b"line 10, patched\nand more\n")
    second = edited("pkg/engine.py", 41, b"line 40, patched\n", {"pkg/engine.py": first})
    clone = world.series(
        ("0001-first", {"pkg/engine.py": first, "pkg/bare.py": b"still none", "pkg/empty": b""}),
        ("0002-second", {"pkg/engine.py": second, 'pkg/t\xeft "le.txt': b"a\n", "a b.txt": b"c\n"}),
        ("0003-third", {"pkg/dos.py": b"one\r\ntwo\r\nTHREE\r\nfour\r\n", "README.md": None}),
    )
    (clone / "tool.sh").write_bytes(b"#!/bin/sh\n")
    (clone / "tool.sh").chmod(0o755)
    (clone / "run.sh").chmod(0o644)
    world.git("add", "-A", cwd=clone)
    world.git("commit", "-q", "--amend", "--no-edit", cwd=clone)
    world.ok("refresh", str(clone))
    return world


def quilted(world: World, patches: Path) -> str:
    """The tree after quilt has pushed everything onto the upstream, without fuzz."""
    clone = world.clone("quilted")
    env = {**os.environ, "QUILT_PATCHES": str(patches), "QUILT_PC": str(world.top / "pc")}
    command = ["quilt", "--quiltrc", "-", "push", "-a", "--fuzz=0"]
    done = subprocess.run(command, cwd=clone, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    world.git("add", "-A", "-f", cwd=clone)
    return world.git("write-tree", cwd=clone)


def mailed(world: World, mbox: Path) -> str:
    """The tree after git am."""
    clone = world.clone("mailed")
    world.git("am", "-q", "--keep-non-patch", "--keep-cr", str(mbox), cwd=clone)
    return world.git("rev-parse", "HEAD^{tree}", cwd=clone)


@needs_quilt
def test_quilt_makes_the_locked_tree(text_only: World) -> None:
    out = text_only.top / "patches"
    document = text_only.ok("export", "quilt", "--out", str(out))
    assert document["files"] == ["0001-first.patch", "0002-second.patch", "0003-third.patch", "series"]
    last = (text_only.project / "upstream.lock").read_text().rstrip().rpartition("tree: ")[2]
    assert quilted(text_only, out) == document["tree"] == last


@needs_quilt
def test_quilt_of_some(text_only: World) -> None:
    out = text_only.top / "patches"
    document = text_only.ok("export", "quilt", "--only", "2", "--out", str(out))
    assert (out / "series").read_text() == "0002-second.patch\n"
    assert quilted(text_only, out) == document["tree"]


def test_quilt_refuses_what_patch_cannot_carry(stacked: World) -> None:
    refused = stacked.patchq("export", "quilt", "--out", str(stacked.top / "patches"))
    assert refused.code == 1
    assert "series/0003-third/v1.patch:" in refused.err
    assert "pkg/added.bin is binary, which quilt cannot carry" in refused.err
    assert not (stacked.top / "patches").exists()


def test_quilt_written_again_has_no_patch_of_before(text_only: World) -> None:
    out = text_only.top / "patches"
    text_only.ok("export", "quilt", "--out", str(out))
    text_only.ok("export", "quilt", "--upto", "1", "--out", str(out))
    assert sorted(p.name for p in out.iterdir()) == [RECORD, "0001-first.patch", "series"]


@pytest.mark.parametrize("name", ["series", "manifest.json", RECORD, "0001-first.patch"])
@pytest.mark.parametrize("kind", ["quilt", "overlay"])
def test_what_others_put_there_stays(text_only: World, kind: str, name: str) -> None:
    """Whatever its files are called, a directory that this did not write is not replaced; nor is one with more in it."""
    mine = text_only.top / "mine"
    (mine / "sub/deep").mkdir(parents=True)
    (mine / name).write_text("{}")
    (mine / "sub/deep/precious").write_text("x")
    before = snapshot(mine)
    refused = text_only.patchq("export", kind, "--out", str(mine))
    assert refused.code in ({2} if kind == "quilt" else {1, 2})
    assert snapshot(mine) == before


def test_an_export_that_was_changed_stays(text_only: World) -> None:
    out = text_only.top / "patches"
    text_only.ok("export", "quilt", "--out", str(out))
    for change in ("0001-first.patch", "mine", "sub/mine"):
        shutil.copytree(out, text_only.top / "copy")
        (text_only.top / "copy" / change).parent.mkdir(exist_ok=True)
        (text_only.top / "copy" / change).write_text("mine")
        refused = text_only.patchq("export", "quilt", "--out", str(text_only.top / "copy"))
        assert (refused.code, f"did not write there: {change}" in refused.err) == (2, True)
        assert (text_only.top / "copy" / change).read_text() == "mine"
        shutil.rmtree(text_only.top / "copy")


def test_the_project_is_no_place_for_an_export(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stacked.project)
    before = snapshot(stacked.project)
    for out in (".", "", str(stacked.project)):
        assert stacked.patchq("export", "quilt", "--upto", "1", "--out", out).code == 2
    for command in (["export", "mbox", "--out"], ["report", "--html"], ["verify", "--script"]):
        for file in ("upstream.lock", "series/0001-first/v1.patch", "series/0001-first/patch.yaml"):
            refused = stacked.patchq(*command, str(stacked.project / file))
            assert refused.code == 2, (command, file, refused.err)
    assert snapshot(stacked.project) == before


def test_what_was_written_before_is_written_again(stacked: World) -> None:
    for command in (["export", "mbox", "--out"], ["report", "--html"], ["verify", "--script"]):
        for _ in range(2):
            done = stacked.patchq(*command, str(stacked.top / "made"))
            assert done.code == 0, done.err
        (stacked.top / "made").unlink()


@pytest.mark.parametrize(
    "args", [[], ["--upto", "2"], ["--only", "2"], ["--only", "1", "--only", "3"]], ids=str
)
def test_git_am_makes_the_tree(stacked: World, args: list[str]) -> None:
    out = stacked.top / "out" / "all.mbox"
    document = stacked.ok("export", "mbox", *args, "--out", str(out))
    assert document["files"] == [str(out)]
    assert mailed(stacked, out) == document["tree"]


def test_the_whole_lane_keeps_its_bytes(stacked: World) -> None:
    out = stacked.top / "all.mbox"
    stacked.ok("export", "mbox", "--out", str(out))
    bodies = sorted((stacked.project / "series").glob("*/v1.patch"))
    assert out.read_bytes() == b"".join(body.read_bytes() for body in bodies)


def test_where_it_cannot_be_written(stacked: World) -> None:
    assert stacked.patchq("export", "mbox", "--out", str(stacked.top)).code == 2
    assert stacked.patchq("export", "mbox").code == 2
    (stacked.top / "file").write_text("mine")
    assert stacked.patchq("export", "quilt", "--upto", "1", "--out", str(stacked.top / "file")).code == 2
    assert (stacked.top / "file").read_text() == "mine"
