"""Patches from outside: files, mailboxes, commits, ranges and branches become patches at the end of the series."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.test_editing import ENGINE, files, holds, ids, meta, refused, trees
from tests.support.world import edited, three_patches

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World


def branch_of_three(world: World) -> Path:
    """A checkout with a branch on the series: one that needs the first patch, one without tags, one apart."""
    made = world.top / "made"
    world.ok("apply", "--create", str(made))
    world.git("checkout", "-q", "-b", "feature", cwd=made)
    second = dict(three_patches())["0002-second"][ENGINE]
    assert second is not None
    more = edited(ENGINE, 10, b"line 10, and more\n", {ENGINE: second})
    world.commit(made, "[Kernel][Test] Say more in line 10", {ENGINE: more}, "Signed-off-by: A <a@b>")
    world.commit(made, "no tags, Ümlaut", {"pkg/x.py": b"x\n", "tests/deep/test_x.py": b"x\n"})
    world.commit(made, "[Test] apart", {"pkg/y.py": b"y\n"})
    return made


def test_a_branch_gives_one_patch_a_commit(stacked: World) -> None:
    made = branch_of_three(stacked)
    before = files(stacked)
    document = stacked.ok("import", "feature", "--repo", str(made))
    new = [p for p in document["patches"] if p["new"]]
    assert [p["id"] for p in new] == ["0004-say-more-in-line-10", "0005-no-tags-mlaut", "0006-apart"]
    assert new[1]["title"] == "[FILL IN] no tags, Ümlaut"
    assert new[0]["unfilled"] == ["why", "changes", "drop_when", "tests"]
    assert meta(stacked, "0004-say-more-in-line-10")["depends"] == ["0001-first"]
    assert meta(stacked, "0005-no-tags-mlaut")["depends"] == []
    assert meta(stacked, "0005-no-tags-mlaut")["tests"] == [{"gate": "cpu", "run": ["tests/deep/test_x.py"]}]
    assert trees(stacked)["0006-apart"] == stacked.git("rev-parse", "feature^{tree}", cwd=made)
    assert b"Signed-off-by: A <a@b>" in files(stacked)["series/0004-say-more-in-line-10/v1.patch"]
    assert stacked.ok("deps")["agree"] is True
    holds(stacked)
    refused(stacked, "import", "feature~2", "--repo", str(made), says=("has the title",), code=2)
    stacked.ok("undo")
    assert files(stacked) == before


def test_a_mailbox_gives_back_what_was_mailed(stacked: World) -> None:
    made = branch_of_three(stacked)
    mailbox = stacked.top / "all.mbox"
    mailbox.write_text(stacked.git("format-patch", "--stdout", "patchq/v1..feature", cwd=made) + "\n")
    stacked.ok("import", str(mailbox))
    from_mail = files(stacked)
    stacked.ok("undo")
    stacked.ok("import", "patchq/v1..feature", "--repo", str(made))
    assert files(stacked) == from_mail
    body = stacked.project / "series/0006-apart/v1.patch"
    copy = stacked.top / "copy.patch"
    copy.write_bytes(body.read_bytes())
    stacked.ok("drop", "6")
    stacked.ok("import", str(copy))
    assert files(stacked) == from_mail


def test_a_commit_of_a_clone_that_knows_nothing_of_the_series(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "[Test] fourth", {ENGINE: edited(ENGINE, 55, b"line 55, patched\n")})
    document = stacked.ok("import", "HEAD", "--repo", str(clone), "--name", "line-55")
    assert ids(stacked)[-1] == "0004-line-55"
    assert document["lanes"][0]["patches"] == 4
    holds(stacked)


def test_what_does_not_apply_is_refused(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "[Test] clash", {ENGINE: edited(ENGINE, 10, b"mine\n")})
    says = ("'[Test] clash' does not apply on v1 after 0003-third", "hunk 1", ENGINE)
    refused(stacked, "import", "HEAD", "--repo", str(clone), says=says)
    stacked.git("checkout", "-q", "-b", "side", "HEAD~", cwd=clone)
    stacked.commit(clone, "[Test] side", {"z.py": b"z\n"})
    stacked.git("merge", "-q", "-m", "merged", "main", cwd=clone)
    refused(stacked, "import", "HEAD", "--repo", str(clone), says=("is a merge",))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"<!DOCTYPE html><html>", "this is an HTML page"),
        (b"diff --git a/x b/x\n", "does not begin with `From `"),
        (b"", "does not begin with `From `"),
        (b"From 0 Mon Sep 17 00:00:00 2001\nFrom: a <b>\n", "no empty line"),
    ],
)
def test_files_that_are_no_patches(stacked: World, text: bytes, says: str) -> None:
    path = stacked.top / "x.patch"
    path.write_bytes(text)
    refused(stacked, "import", str(path), says=(says,), code=2)


def test_names_that_lead_nowhere(stacked: World) -> None:
    clone = stacked.clone()
    for source in ("--output=x", "main...main", "nothing", "nothing..main", "main..main"):
        refused(stacked, "import", "--repo", str(clone), "--", source, says=(), code=2)
    refused(stacked, "import", str(stacked.top / "none.patch"), says=("cannot be read",), code=2)
