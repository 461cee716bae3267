"""Proving a checkout: every file that is not as it must be is named, and how."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.world import UPSTREAM, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World


@pytest.fixture
def made(stacked: World) -> Path:
    path = stacked.top / "made"
    stacked.ok("apply", "--create", str(path))
    return path


def problems(world: World, path: Path, *args: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The files that verify names; its exit code agrees, and looking changes nothing."""
    before = snapshot(path)
    result = world.patchq("verify", str(path), *args, "--json")
    assert snapshot(path) == before
    document = result.json
    assert (result.code, document["ok"]) == ((0, True) if not document["files"] else (1, False))
    return {f["path"]: f["problem"] for f in document["files"]}, document


def test_ok(stacked: World, made: Path) -> None:
    found, document = problems(stacked, made)
    assert found == {}
    assert (document["match"], document["tree"]) == ("tree", document["expected"])
    assert [p["id"] for p in document["patches"]] == ["0001-first", "0002-second", "0003-third"]


def test_every_kind_of_difference_in_the_work_tree(stacked: World, made: Path) -> None:
    (made / "pkg/engine.py").write_bytes(b"tampered\n")
    (made / "pkg/new/deep.py").unlink()
    (made / "README.md").write_bytes(b"not touched by any patch\n")
    (made / "run.sh").chmod(0o644)
    (made / "pkg/bare.py").write_bytes(b"a file that the patches took away\n")
    found, _ = problems(stacked, made)
    assert found == {
        "pkg/engine.py": "uncommitted",
        "pkg/new/deep.py": "missing",
        "README.md": "uncommitted",
        "run.sh": "uncommitted",
        "pkg/bare.py": "extra",
    }


def test_every_kind_of_difference_in_commits(stacked: World, made: Path) -> None:
    stacked.commit(made, "mine", {"pkg/engine.py": b"x\n", "README.md": None, "mine.txt": b"x"})
    found, _ = problems(stacked, made)
    assert found == {"pkg/engine.py": "differs", "README.md": "missing", "mine.txt": "extra"}


def test_a_change_behind_gits_back_is_seen(stacked: World, made: Path) -> None:
    """Same size, same times, and git told not to look: a touched file is read anew."""
    path = made / "pkg/added.bin"
    times = path.stat()
    path.write_bytes(bytes(range(255, -1, -1)))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    stacked.git("update-index", "--assume-unchanged", "pkg/added.bin", cwd=made)
    assert problems(stacked, made)[0] == {"pkg/added.bin": "differs"}


def test_a_mode_behind_gits_back_is_seen(stacked: World, made: Path) -> None:
    stacked.git("config", "core.filemode", "false", cwd=made)
    path = made / "pkg/engine.py"
    path.unlink()
    path.symlink_to("model.py")
    assert set(problems(stacked, made)[0]) == {"pkg/engine.py"}


def test_the_base_is_not_the_patched_tree(stacked: World) -> None:
    found, document = problems(stacked, stacked.clone())
    assert found == {
        "pkg/engine.py": "differs",
        "pkg/dos.py": "differs",
        "pkg/bare.py": "extra",
        "pkg/new/deep.py": "missing",
        "pkg/added.bin": "missing",
    }
    assert document["match"] == "tree"


def test_a_part_of_the_series(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone), "--upto", "2")
    assert problems(stacked, clone, "--upto", "2")[0] == {}
    assert set(problems(stacked, clone)[0]) == {"pkg/dos.py", "pkg/bare.py", "pkg/added.bin"}
    assert set(problems(stacked, clone, "--upto", "1")[0]) == {"pkg/engine.py", "pkg/new/deep.py"}


def test_on_another_base_the_touched_files_count(stacked: World) -> None:
    clone = stacked.clone("other")
    stacked.commit(clone, "mine", {"README.md": b"mine\n"})
    stacked.git("checkout", "-q", "--orphan", "fresh", cwd=clone)
    stacked.git("commit", "-q", "-m", "one root", cwd=clone)
    stacked.ok("apply", str(clone))
    found, document = problems(stacked, clone)
    assert (found, document["match"]) == ({}, "blobs")
    (clone / "README.md").write_bytes(UPSTREAM["README.md"])
    assert problems(stacked, clone)[0] == {}
    (clone / "pkg/dos.py").write_bytes(b"x")
    assert problems(stacked, clone)[0] == {"pkg/dos.py": "uncommitted"}


def test_people_are_told_the_files(stacked: World, made: Path) -> None:
    assert "ok, by every tracked file" in stacked.patchq("verify", str(made)).out
    (made / "pkg/engine.py").write_bytes(b"tampered\n")
    result = stacked.patchq("verify", str(made))
    assert (result.code, result.out.splitlines()[0]) == (1, "pkg/engine.py\tuncommitted")
