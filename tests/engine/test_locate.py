"""Where a checkout stands: which base, which patches, and what is in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.world import edited, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

IDS = ["0001-first", "0002-second", "0003-third"]


def status(world: World, path: Path) -> dict[str, Any]:
    """What status says; looking changes nothing."""
    before = snapshot(path)
    document: dict[str, Any] = world.ok("status", str(path))
    assert snapshot(path) == before
    return document


@pytest.mark.parametrize("count", range(4))
def test_how_far_it_is_applied(stacked: World, count: int) -> None:
    clone = stacked.clone()
    if count:
        stacked.ok("apply", str(clone), "--upto", IDS[count - 1])
    found = status(stacked, clone)
    assert (found["base"], found["match"], found["applied"], found["own_commits"]) == (
        "v1",
        "tree",
        IDS[:count],
        [],
    )
    assert [p["applied"] for p in found["patches"]] == [i < count for i in range(3)]


def test_patches_that_are_not_a_beginning(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone), "--only", "third")
    assert status(stacked, clone)["applied"] == ["0003-third"]


def test_patches_squashed_into_one_commit(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.git("reset", "-q", "--soft", "main", cwd=clone)
    stacked.git("commit", "-q", "-m", "all in one", cwd=clone)
    found = status(stacked, clone)
    assert (found["match"], found["applied"], found["own_commits"]) == ("tree", IDS, ["all in one"])


def test_a_patch_reverted_again(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.git("revert", "--no-edit", "HEAD", cwd=clone)
    assert status(stacked, clone)["applied"] == IDS[:2]


def test_commits_of_the_users_own(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "below", {"below.txt": b"x"})
    stacked.ok("apply", str(clone))
    stacked.commit(clone, "above", {"above.txt": b"x"})
    found = status(stacked, clone)
    assert (found["match"], found["applied"], found["own_commits"]) == ("blobs", IDS, ["above"])


def test_history_that_does_not_show_the_base(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.git("checkout", "-q", "--orphan", "root", cwd=clone)
    stacked.git("commit", "-q", "-m", "all at once", cwd=clone)
    found = status(stacked, clone)
    assert (found["match"], found["applied"]) == ("tree", IDS)
    assert len(found["own_commits"]) == 1


@pytest.mark.parametrize(
    "files",
    [
        {"pkg/engine.py": b"mine\n"},
        {"pkg/bare.py": None, "pkg/engine.py": b"x\n"},
        {"pkg/added.bin": b"mine\n"},
    ],
    ids=["changed", "deleted", "added"],
)
def test_a_file_that_is_neither(stacked: World, files: dict[str, bytes | None]) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "mine", files)
    before = snapshot(clone)
    result = stacked.patchq("status", str(clone), "--json")
    assert result.code == 1
    named = result.json["error"]["files"]
    assert set(named) <= set(files)
    assert named
    assert snapshot(clone) == before


def test_half_of_one_patch(stacked: World) -> None:
    """The second patch writes two files; only one of them is as it leaves it."""
    clone = stacked.clone()
    stacked.ok("apply", str(clone), "--upto", "1")
    stacked.commit(clone, "half", {"pkg/new/deep.py": b"new\n"})
    result = stacked.patchq("status", str(clone), "--json")
    assert (result.code, result.json["error"]["files"] != []) == (1, True)


def test_a_change_made_by_hand_to_the_same_bytes(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "by hand", {"pkg/engine.py": edited("pkg/engine.py", 10, b"line 10, patched\n")})
    assert status(stacked, clone)["applied"] == IDS[:1]
