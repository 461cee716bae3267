"""Recording commits as a lane: plain git am input, written one way, and nothing written when anything is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.support.world import UPSTREAM, edited

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

NASTY: dict[str, bytes | None] = {
    "a b\t\u00e4.py": b"x\xe9\r\n\xa0\nend",
    'quo"te': b"",
    "pkg/engine.py": edited("pkg/engine.py", 3, b"line 3\r\n"),
    "pkg/bare.py": b"no newline\nat the very end",
    "blob.bin": bytes(range(256)),
}


def files(world: World) -> dict[str, bytes]:
    return {
        str(p.relative_to(world.project)): p.read_bytes() for p in world.project.rglob("*") if p.is_file()
    }


def locked(world: World) -> list[dict[str, str]]:
    lanes: dict[str, Any] = yaml.safe_load((world.project / "upstream.lock").read_text())["lanes"]
    return list(lanes["v1"])


def refused(world: World, clone: Path, *words: str, code: int = 1) -> None:
    before = files(world)
    result = world.patchq("refresh", str(clone))
    assert result.code == code, result.err
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err
    assert "patchq itself failed" not in result.err
    assert files(world) == before


def test_plain_git_am_gives_the_locked_trees(world: World) -> None:
    author = world.series(
        ("0001-nasty", NASTY), ("0002-more", {"blob.bin": None, 'quo"te': b"full\n", "new/run.sh": b"#!\n"})
    )
    (author / "run.sh").chmod(0o644)
    (author / "link").symlink_to("README.md")
    world.describe("0003-modes")
    world.commit(author, "[Test] modes", {})
    assert world.patchq("refresh", str(author)).code == 0
    clone = world.clone()
    for step in locked(world):
        body = world.project / "series" / step["id"] / "v1.patch"
        world.git("am", "-q", "--keep-non-patch", "--keep-cr", str(body), cwd=clone)
        assert world.git("rev-parse", "HEAD^{tree}", cwd=clone) == step["tree"]
    assert world.git("log", "--format=%an %ae %ad%n%B", cwd=clone) == world.git(
        "log", "--format=%an %ae %ad%n%B", cwd=author
    )


def test_an_unchanged_series_changes_no_byte(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    before = files(stacked)
    times = {p: p.stat().st_mtime_ns for p in stacked.project.rglob("*")}
    assert stacked.ok("refresh", str(made))["written"] == []
    assert files(stacked) == before
    assert {p: p.stat().st_mtime_ns for p in stacked.project.rglob("*")} == times


def test_one_changed_commit_writes_one_body(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    before = files(stacked)
    (made / "pkg/added.bin").write_bytes(b"other\n")
    stacked.git("commit", "-q", "-a", "--amend", "--no-edit", cwd=made)
    assert stacked.ok("refresh", str(made))["written"] == ["0003-third"]
    after = files(stacked)
    assert {n for n in after if after[n] != before.get(n)} == {"series/0003-third/v1.patch", "upstream.lock"}


def test_settings_and_attributes_change_no_byte(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    before = files(stacked)
    (made / ".git/info").mkdir(exist_ok=True)
    (made / ".git/info/attributes").write_text("*.py -diff\n")
    for name, value in (
        ("diff.context", "9"),
        ("diff.algorithm", "histogram"),
        ("diff.noprefix", "true"),
        ("diff.interHunkContext", "9"),
    ):
        stacked.git("config", name, value, cwd=made)
    monkeypatch.chdir(made)
    stacked.ok("refresh", str(made))
    assert files(stacked) == before


def test_a_commit_of_no_patch(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    stacked.commit(made, "mine", {"x": b"x"})
    refused(stacked, made, "x could belong to 0001-first or 0002-second or 0003-third", "--into ID")


def test_two_commits_of_one_patch(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    stacked.commit(made, "[Test] third", {"x": b"x"})
    refused(stacked, made, "two commits have the title of 0003-third")


def test_a_patch_without_a_commit(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made), "--upto", "2")
    before = files(stacked)
    document = stacked.ok("refresh", str(made))
    assert document["notes"] == ["0003-third: not in the checkout, kept as it was"]
    assert files(stacked) == before


def test_a_lane_that_is_new_needs_a_commit_of_each_patch(world: World) -> None:
    world.describe("0001-first")
    clone = world.clone()
    refused(world, clone, "no commit has the title of 0001-first")


def test_commits_in_another_order(world: World) -> None:
    for patch in ("0001-first", "0002-second"):
        world.describe(patch)
    clone = world.clone()
    world.commit(clone, "[Test] second", {"b": b"b"})
    world.commit(clone, "[Test] first", {"a": b"a"})
    refused(world, clone, "in another order than the series (0002-second, 0001-first)")


def test_an_empty_commit(world: World) -> None:
    world.describe("0001-first")
    clone = world.clone()
    world.commit(clone, "[Test] first", {"x": b"x"})
    world.describe("0002-second")
    world.commit(clone, "[Test] second", {})
    refused(world, clone, "series/0002-second/v1.patch", "changes no file", code=2)


@pytest.mark.parametrize("body", ["text\n---\nmore", "diff --git a/x b/x", "From: A <a@b>\n\ntext"])
def test_a_message_that_git_am_would_cut(world: World, body: str) -> None:
    world.describe("0001-first")
    clone = world.clone()
    world.commit(clone, "[Test] first", {"x": b"x"}, body)
    refused(world, clone, "series/0001-first/v1.patch: line", "of the commit message", code=2)


def test_a_checkout_that_is_not_on_the_base(world: World) -> None:
    world.describe("0001-first")
    clone = world.clone()
    world.commit(clone, "base, differently", {"README.md": b"other\n"})
    world.git("checkout", "-q", "--orphan", "other", cwd=clone)
    world.git("commit", "-q", "-m", "root", cwd=clone)
    world.commit(clone, "[Test] first", {"x": b"x"})
    refused(world, clone, "the tree of v1 is not under HEAD")


def test_a_shallow_clone_that_ends_above_the_base(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    stacked.git("rebase", "-q", "--force-rebase", "v1", cwd=made)
    shallow = stacked.top / "shallow"
    stacked.git("clone", "-q", "--depth=2", made.as_uri(), str(shallow), cwd=stacked.top)
    refused(stacked, shallow, "the tree of v1 is not under HEAD")


def test_the_base_itself(stacked: World) -> None:
    before = files(stacked)
    assert stacked.ok("refresh", str(stacked.clone()))["written"] == []
    assert files(stacked) == before
    assert (stacked.upstream / "README.md").read_bytes() == UPSTREAM["README.md"]
