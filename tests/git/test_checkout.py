"""Looking at a checkout: what it is, where it stands, what is dirty; and looking changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from patchq.errors import InputError, RefusedError
from patchq.git.checkout import (
    branch_commit,
    branches_at,
    elsewhere,
    hash_files,
    left_out,
    open_checkout,
    read_head,
    refuse_underway,
)
from patchq.git.objects import REGULAR, SYMLINK, Entry, object_id
from tests.support.world import UPSTREAM, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World


def test_a_clone(world: World) -> None:
    clone = world.clone()
    before = snapshot(clone)
    checkout = open_checkout(clone)
    assert (checkout.top, checkout.git_dir, checkout.common_dir) == (clone, clone / ".git", clone / ".git")
    assert (checkout.sparse, checkout.ignore_case) == (False, False)
    head = read_head(checkout)
    assert (head.commit, head.ref, head.branch) == (
        world.git("rev-parse", "HEAD", cwd=clone),
        "refs/heads/main",
        "main",
    )
    assert (head.dirty, head.unmerged) == ((), ())
    assert snapshot(clone) == before


def test_by_way_of_a_link_and_of_dots(world: World) -> None:
    clone = world.clone()
    (world.top / "link").symlink_to(clone)
    for path in (world.top / "link", clone / "pkg" / "..", clone / "."):
        assert open_checkout(path).top == clone


def test_a_linked_worktree(world: World) -> None:
    clone = world.clone()
    linked = world.top / "linked"
    world.git("worktree", "add", "-q", "-b", "side", str(linked), cwd=clone)
    checkout = open_checkout(linked)
    assert (checkout.top, checkout.common_dir, checkout.object_dir) == (
        linked,
        clone / ".git",
        clone / ".git/objects",
    )
    assert checkout.git_dir == clone / ".git/worktrees/linked"
    assert elsewhere(checkout, "refs/heads/main") == clone
    assert elsewhere(checkout, "refs/heads/side") is None
    assert elsewhere(open_checkout(clone), "refs/heads/side") == linked


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nowhere", "does not exist"),
        ("clone/README.md", "is not a directory"),
        ("upstream", "is not a git repository"),
        ("clone/pkg", "is a directory inside the repository"),
        ("clone/.git", "without a working tree"),
        ("sha256", "uses sha256 object ids"),
    ],
)
def test_what_is_no_checkout(world: World, name: str, words: str) -> None:
    world.clone()
    world.git("init", "-q", "--object-format=sha256", "sha256", cwd=world.top)
    with pytest.raises(InputError) as caught:
        open_checkout(world.top / name)
    assert words in caught.value.message
    assert "--create" in caught.value.remedy


def test_dirty_of_every_kind(world: World) -> None:
    clone = world.clone()
    odd = "a b\t\u00e4\n"
    world.commit(clone, "odd", {odd: b"x"})
    (clone / "README.md").write_bytes(b"changed\n")
    (clone / "pkg/engine.py").unlink()
    (clone / "run.sh").chmod(0o644)
    (clone / odd).write_bytes(b"y")
    (clone / "untracked").write_bytes(b"")
    world.git("mv", "pkg/dos.py", "pkg/moved.py", cwd=clone)
    assert set(read_head(open_checkout(clone)).dirty) == {
        "README.md",
        "pkg/engine.py",
        "run.sh",
        odd,
        "pkg/dos.py",
        "pkg/moved.py",
    }


def test_a_touched_file_with_the_same_bytes_is_not_dirty(world: World) -> None:
    clone = world.clone()
    os.utime(clone / "README.md", (1, 1))
    assert read_head(open_checkout(clone)).dirty == ()


def test_unmerged(world: World) -> None:
    clone = world.clone()
    world.git("checkout", "-q", "-b", "side", cwd=clone)
    world.commit(clone, "side", {"README.md": b"side\n"})
    world.git("checkout", "-q", "main", cwd=clone)
    world.commit(clone, "main", {"README.md": b"main\n"})
    with pytest.raises(AssertionError):
        world.git("merge", "-q", "side", cwd=clone)
    checkout = open_checkout(clone)
    assert read_head(checkout).unmerged == ("README.md",)
    with pytest.raises(RefusedError, match="a merge is under way"):
        refuse_underway(checkout)


def test_detached_and_branches(world: World) -> None:
    clone = world.clone()
    world.git("branch", "side", cwd=clone)
    world.git("checkout", "-q", "--detach", cwd=clone)
    checkout = open_checkout(clone)
    head = read_head(checkout)
    assert (head.ref, head.branch) == (None, None)
    assert branch_commit(checkout, "refs/heads/side") == head.commit
    assert branch_commit(checkout, "refs/heads/none") is None
    assert branches_at(checkout, head.commit) == ["refs/heads/main", "refs/heads/side"]


def test_a_damaged_index(world: World) -> None:
    clone = world.clone()
    (clone / ".git/index").write_bytes(b"damaged")
    with pytest.raises(RefusedError, match="git status fails"):
        read_head(open_checkout(clone))


def test_files_are_hashed_as_they_lie(world: World, tmp_path: Path) -> None:
    clone = world.clone()
    (clone / "link").symlink_to("README.md")
    (clone / "README.md").write_bytes(b"changed\n")
    expected = {
        n: Entry(REGULAR, object_id("blob", UPSTREAM[n])) for n in ("README.md", "run.sh", "pkg/dos.py")
    }
    found = hash_files(
        open_checkout(clone), {**expected, "link": Entry(SYMLINK, "0" * 40), "none": None, "pkg": None}
    )
    assert found == {
        "README.md": object_id("blob", b"changed\n"),
        "run.sh": expected["run.sh"].oid,
        "pkg/dos.py": expected["pkg/dos.py"].oid,
        "link": object_id("blob", b"README.md"),
        "none": None,
        "pkg": None,
    }
    assert tmp_path.is_dir()


def test_line_endings_of_the_users_are_taken_out(world: World) -> None:
    clone = world.clone()
    (clone / "README.md").write_bytes(b"an upstream\r\n")
    expected = {"README.md": Entry(REGULAR, object_id("blob", UPSTREAM["README.md"]))}
    assert hash_files(open_checkout(clone), expected)["README.md"] != expected["README.md"].oid
    world.git("config", "core.autocrlf", "true", cwd=clone)
    assert hash_files(open_checkout(clone), expected)["README.md"] == expected["README.md"].oid


def test_a_sparse_checkout(world: World) -> None:
    clone = world.clone()
    world.git("sparse-checkout", "set", "--no-cone", "/README.md", cwd=clone)
    checkout = open_checkout(clone)
    assert checkout.sparse
    assert left_out(checkout) == set(UPSTREAM) - {"README.md"}
    assert hash_files(checkout, {"run.sh": None}) == {}
