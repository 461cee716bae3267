"""Checkouts in every state a user leaves them in: the right result, or a refusal that changes nothing."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.world import UPSTREAM, contents, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

PATCHED = {
    **{k: v for k, v in UPSTREAM.items() if k != "pkg/bare.py"},
    "pkg/engine.py": UPSTREAM["pkg/engine.py"]
    .replace(b"line 10\n", b"line 10, patched\n")
    .replace(b"line 40\n", b"line 40, patched\n"),
    "pkg/dos.py": b"one\r\ntwo\r\nTHREE\r\nfour\r\n",
    "pkg/new/deep.py": b"new\n",
    "pkg/added.bin": bytes(range(256)),
}


def refused(world: World, path: Path, *words: str, code: int = 1, args: tuple[str, ...] = ()) -> None:
    """Apply must say no, name `words`, and change not a byte."""
    before = snapshot(path)
    result = world.patchq("apply", str(path), *args)
    assert result.code == code, result.err
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err
    assert snapshot(path) == before


def test_base(stacked: World) -> None:
    clone = stacked.clone()
    before = snapshot(clone)
    main = stacked.git("rev-parse", "main", cwd=clone)
    document = stacked.ok("apply", str(clone))
    assert document["match"] == "tree"
    assert document["branch"] == "patchq/v1"
    assert [p["verdict"] for p in document["patches"]] == ["clean"] * 3
    assert contents(clone) == PATCHED
    assert stacked.git("rev-parse", "main", cwd=clone) == main
    assert stacked.git("status", "--porcelain", "--ignored", cwd=clone) == ""
    assert stacked.git("log", "--format=%s|%an|%ae|%ad|%cn", "main..", cwd=clone).split("\n")[::-1] == [
        f"[Test] {name}|A U Thor|author@example.com|Fri Jan 2 03:04:05 2026 +0100|A U Thor"
        for name in ("first", "second", "third")
    ]
    untouched = {"README.md", "pkg/model.py", "run.sh", "pkg/__init__.py"}
    after = snapshot(clone)
    assert {n: after["files"][n] for n in untouched} == {n: before["files"][n] for n in untouched}
    assert after["left"] == []


def test_apply_then_unapply_is_identity(stacked: World) -> None:
    clone = stacked.clone()
    before = snapshot(clone)
    stacked.ok("apply", str(clone))
    stacked.ok("unapply", str(clone))
    after = snapshot(clone)
    for state in (before, after):
        state["files"] = {n: v[:2] for n, v in state["files"].items()}
    assert after == before


def test_second_apply_changes_nothing(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    before = snapshot(clone)
    result = stacked.patchq("apply", str(clone))
    assert "already applied" in result.out
    assert len(result.out.splitlines()) == 1
    assert snapshot(clone) == before
    assert stacked.ok("apply", str(clone))["changed"] is False


def test_unrelated_commits_on_top(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "mine", {"mine.txt": b"mine\n", "pkg/model.py": b"mine\n"})
    document = stacked.ok("apply", str(clone))
    assert document["match"] == "blobs"
    assert contents(clone) == {**PATCHED, "mine.txt": b"mine\n", "pkg/model.py": b"mine\n"}
    assert stacked.ok("verify", str(clone))["ok"] is True
    stacked.ok("unapply", str(clone))
    assert stacked.git("symbolic-ref", "HEAD", cwd=clone) == "refs/heads/main"


def test_touched_file_differs(stacked: World) -> None:
    clone = stacked.clone()
    stacked.commit(clone, "mine", {"pkg/engine.py": b"mine\n"})
    refused(stacked, clone, "pkg/engine.py")


def test_dirty_touched_file(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg/engine.py").write_bytes(b"dirty\n")
    refused(stacked, clone, "pkg/engine.py", "stash")


def test_staged_touched_file(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg/engine.py").write_bytes(b"dirty\n")
    stacked.git("add", "-A", cwd=clone)
    refused(stacked, clone, "pkg/engine.py")


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree", ""])
def test_an_edit_that_git_does_not_see(stacked: World, mark: str) -> None:
    """Git was told not to look, or the file's size and times are as before: what lies there is read."""
    clone = stacked.clone()
    path = clone / "pkg/engine.py"
    times = path.stat()
    stacked.git("config", "core.trustctime", "false", cwd=clone)
    if mark:
        stacked.git("update-index", mark, "pkg/engine.py", cwd=clone)
    else:
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns - 10**10))
        stacked.git("update-index", "--refresh", cwd=clone)
        times = path.stat()
    path.write_bytes(path.read_bytes().replace(b"line 20\n", b"LINE 20\n"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert stacked.git("status", "--porcelain", cwd=clone) == ""
    refused(stacked, clone, "pkg/engine.py", "changes that git does not see")


def test_dirty_and_staged_files_elsewhere_stay(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg/model.py").write_bytes(b"dirty\n")
    (clone / "README.md").write_bytes(b"staged\n")
    stacked.git("add", "README.md", cwd=clone)
    stacked.ok("apply", str(clone))
    assert contents(clone) == {**PATCHED, "pkg/model.py": b"dirty\n", "README.md": b"staged\n"}
    assert stacked.git("diff", "--cached", "--name-only", cwd=clone) == "README.md"
    assert stacked.git("diff", "--name-only", cwd=clone) == "pkg/model.py"


@pytest.mark.parametrize("ignored", [False, True])
def test_file_in_the_way(stacked: World, ignored: bool) -> None:
    clone = stacked.clone()
    (clone / "pkg/added.bin").write_bytes(b"mine\n")
    if ignored:
        (clone / ".git/info").mkdir(exist_ok=True)
        (clone / ".git/info/exclude").write_text("*.bin\n")
    refused(stacked, clone, "pkg/added.bin")


def test_directory_where_a_file_goes(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg/added.bin").mkdir()
    (clone / "pkg/added.bin/inside").write_bytes(b"mine\n")
    refused(stacked, clone, "pkg/added.bin")


def test_file_where_a_directory_goes(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg/new").write_bytes(b"mine\n")
    refused(stacked, clone, "pkg/new")


def test_symlink_where_a_directory_goes(stacked: World) -> None:
    clone = stacked.clone()
    outside = stacked.top / "outside"
    outside.mkdir()
    (clone / "pkg/new").symlink_to(outside)
    refused(stacked, clone, "pkg/new")
    assert list(outside.iterdir()) == []


def test_not_a_repository(stacked: World) -> None:
    result = stacked.patchq("apply", str(stacked.upstream))
    assert result.code == 2
    assert "is not a git repository" in result.err
    assert "--create" in result.err


def test_path_that_is_not_there(stacked: World) -> None:
    result = stacked.patchq("apply", str(stacked.top / "nowhere"))
    assert (result.code, "does not exist" in result.err) == (2, True)


def test_inside_another_repository(stacked: World) -> None:
    clone = stacked.clone()
    result = stacked.patchq("apply", str(clone / "pkg"))
    assert result.code == 2
    assert f"inside the repository {clone}" in result.err


def test_bare_repository(stacked: World) -> None:
    stacked.git("init", "-q", "--bare", str(stacked.top / "bare"), cwd=stacked.top)
    result = stacked.patchq("apply", str(stacked.top / "bare"))
    assert (result.code, "without a working tree" in result.err) == (2, True)


def test_repository_without_a_commit(stacked: World) -> None:
    stacked.git("init", "-q", str(stacked.top / "fresh"), cwd=stacked.top)
    result = stacked.patchq("apply", str(stacked.top / "fresh"))
    assert (result.code, "has no commit yet" in result.err) == (2, True)


def test_half_applied_is_completed(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone), "--upto", "first")
    first = stacked.git("rev-parse", "HEAD", cwd=clone)
    assert stacked.ok("status", str(clone))["applied"] == ["0001-first"]
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED
    assert stacked.git("rev-parse", "HEAD~2", cwd=clone) == first


def test_half_applied_by_git_am_on_the_users_branch(stacked: World) -> None:
    clone = stacked.clone()
    body = (stacked.project / "series/0001-first/v1.patch").read_bytes()
    stacked.git("am", "-q", "--keep-non-patch", "--keep-cr", cwd=clone, stdin=body)
    main = stacked.git("rev-parse", "main", cwd=clone)
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED
    assert stacked.git("rev-parse", "main", cwd=clone) == main


def test_fewer_patches_are_asked_for(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    document = stacked.ok("apply", str(clone), "--only", "third")
    assert [p["id"] for p in document["patches"]] == ["0003-third"]
    assert (clone / "pkg/engine.py").read_bytes() == UPSTREAM["pkg/engine.py"]
    assert stacked.ok("status", str(clone))["applied"] == ["0003-third"]
    assert stacked.ok("verify", str(clone), "--only", "third")["ok"] is True
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED


def test_commits_of_the_users_own_on_the_patches_are_never_left_behind(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.commit(clone, "mine", {"mine.txt": b"mine\n"})
    before = snapshot(clone)
    for command in (["unapply", str(clone)], ["apply", str(clone), "--upto", "first"]):
        result = stacked.patchq(*command)
        assert (result.code, "'mine'" in result.err) == (1, True)
        assert snapshot(clone) == before
    assert stacked.patchq("apply", str(clone)).code == 0


def test_branch_that_holds_other_commits_is_not_moved(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("branch", "patchq/v1", cwd=clone)
    stacked.git("checkout", "-q", "patchq/v1", cwd=clone)
    stacked.commit(clone, "mine", {"mine.txt": b"mine\n"})
    stacked.git("checkout", "-q", "main", cwd=clone)
    refused(stacked, clone, "patchq/v1", "--branch")
    stacked.ok("apply", str(clone), "--branch", "other")
    assert stacked.git("symbolic-ref", "HEAD", cwd=clone) == "refs/heads/other"


def test_users_own_branch_is_not_moved(stacked: World) -> None:
    clone = stacked.clone()
    refused(stacked, clone, "a branch of your own", args=("--branch", "main"))


@pytest.mark.parametrize("name", ["-x", "a..b", "a b", "refs/../x", ""])
def test_branch_names_that_git_refuses(stacked: World, name: str) -> None:
    clone = stacked.clone()
    refused(stacked, clone, "is not a name for a branch", code=2, args=(f"--branch={name}",))


def test_detached_head(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("checkout", "-q", "--detach", cwd=clone)
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED
    stacked.ok("unapply", str(clone))
    assert stacked.git("rev-parse", "--abbrev-ref", "HEAD", cwd=clone) == "HEAD"


@pytest.mark.parametrize("name", ["rebase-merge", "MERGE_HEAD", "CHERRY_PICK_HEAD", "sequencer/todo"])
def test_mid_rebase(stacked: World, name: str) -> None:
    clone = stacked.clone()
    (clone / ".git" / name).mkdir(parents=True)
    refused(stacked, clone, "is under way")


def test_linked_worktree(stacked: World) -> None:
    clone = stacked.clone()
    linked = stacked.top / "linked"
    stacked.git("worktree", "add", "-q", "--detach", str(linked), cwd=clone)
    stacked.ok("apply", str(linked))
    assert contents(linked) == {**PATCHED, ".git": (linked / ".git").read_bytes()}
    assert contents(clone) == UPSTREAM
    refused(stacked, clone, "is checked out in")


def test_sparse_checkout(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("sparse-checkout", "set", "--no-cone", "/README.md", "/run.sh", cwd=clone)
    assert set(contents(clone)) == {"README.md", "run.sh"}
    stacked.ok("apply", str(clone))
    assert set(contents(clone)) == {"README.md", "run.sh"}
    assert stacked.git("status", "--porcelain", cwd=clone) == ""
    assert stacked.ok("verify", str(clone))["ok"] is True
    stacked.git("sparse-checkout", "disable", cwd=clone)
    assert contents(clone) == PATCHED


def test_blobless_clone_lacking_a_preimage(stacked: World) -> None:
    origin = stacked.clone("origin")
    stacked.git("config", "uploadpack.allowFilter", "true", cwd=origin)
    stacked.commit(origin, "upstream, again", {"pkg/later.py": b"later\n"})
    lean = stacked.top / "lean"
    stacked.git("clone", "-q", "--filter=blob:none", "--sparse", origin.as_uri(), str(lean), cwd=stacked.top)
    origin.rename(stacked.top / "gone")
    stacked.ok("apply", str(lean))
    assert stacked.git("rev-list", "--count", "HEAD", cwd=lean) == "5"
    assert stacked.git("show", "HEAD:pkg/added.bin", cwd=lean) is not None


def test_shallow_clone(stacked: World) -> None:
    origin = stacked.clone("origin")
    stacked.commit(origin, "more", {"more.txt": b"more\n"})
    shallow = stacked.top / "shallow"
    stacked.git("clone", "-q", "--depth=1", origin.as_uri(), str(shallow), cwd=stacked.top)
    stacked.ok("apply", str(shallow))
    assert contents(shallow) == {**PATCHED, "more.txt": b"more\n"}
    stacked.ok("unapply", str(shallow))


def test_submodule_with_recurse(stacked: World) -> None:
    clone = stacked.clone()
    other = stacked.clone("other")
    stacked.git(
        "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub", cwd=clone
    )
    stacked.git("commit", "-q", "-m", "submodule", cwd=clone)
    stacked.git("config", "submodule.recurse", "true", cwd=clone)
    (clone / "sub/README.md").write_bytes(b"dirty inside\n")
    stacked.ok("apply", str(clone))
    assert (clone / "sub/README.md").read_bytes() == b"dirty inside\n"
    stacked.ok("unapply", str(clone))


HOSTILE = """
[core]
    autocrlf = input
    quotepath = true
    fsmonitor = false
    hooksPath = {hooks}
    abbrev = 4
    pager = false
[color]
    ui = always
[diff]
    noprefix = true
    external = false
    renames = copies
    algorithm = patience
    context = 1
[apply]
    whitespace = fix
[commit]
    gpgsign = true
[merge]
    conflictStyle = zdiff3
[rerere]
    enabled = true
[status]
    short = true
    showUntrackedFiles = no
[user]
    useConfigOnly = true
[init]
    defaultObjectFormat = sha256
    templateDir = {hooks}
[log]
    showSignature = true
"""


def test_hostile_user_configuration(stacked: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = stacked.clone()
    hooks = stacked.top / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "pre-commit", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {stacked.top}/hook-ran\n")
        (hooks / name).chmod(0o755)
    (stacked.top / "home/.gitconfig").write_text(HOSTILE.format(hooks=hooks))
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (clone / ".git/hooks").mkdir(exist_ok=True)
        (clone / ".git/hooks" / name).write_text(f"#!/bin/sh\ntouch {stacked.top}/hook-ran\n")
        (clone / ".git/hooks" / name).chmod(0o755)
    monkeypatch.setenv("GIT_DIR", str(stacked.top / "elsewhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(stacked.top / "no-index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED
    made = stacked.top / "made"
    document = stacked.ok("apply", "--create", str(made))
    assert contents(made) == PATCHED
    assert document["tree"] == stacked.ok("verify", str(made))["tree"]
    assert not (stacked.top / "hook-ran").exists()


def test_line_endings_as_the_user_has_them(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("config", "core.autocrlf", "true", cwd=clone)
    for name in ("pkg/engine.py", "pkg/model.py", "README.md"):
        (clone / name).unlink()
    stacked.git("checkout", "-q", "--", ".", cwd=clone)
    assert b"\r\n" in (clone / "pkg/engine.py").read_bytes()
    stacked.ok("apply", str(clone))
    assert (clone / "pkg/engine.py").read_bytes() == PATCHED["pkg/engine.py"].replace(b"\n", b"\r\n")
    assert stacked.git("status", "--porcelain", cwd=clone) == ""
    assert stacked.ok("verify", str(clone))["ok"] is True


def test_filters_of_the_users_are_never_run(stacked: World) -> None:
    clone = stacked.clone()
    (clone / ".git/info").mkdir(exist_ok=True)
    (clone / ".git/info/attributes").write_text("*.py filter=evil\n")
    stacked.git("config", "filter.evil.smudge", f"touch {stacked.top}/filter-ran; cat", cwd=clone)
    stacked.git("config", "filter.evil.clean", f"touch {stacked.top}/filter-ran; cat", cwd=clone)
    stacked.ok("apply", str(clone))
    assert stacked.ok("verify", str(clone))["ok"] is True
    assert not (stacked.top / "filter-ran").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where others may not")
def test_read_only_directory(stacked: World) -> None:
    clone = stacked.clone()
    (clone / "pkg").chmod(0o555)
    try:
        refused(stacked, clone, "cannot be switched", code=3)
    finally:
        (clone / "pkg").chmod(0o755)


def test_case_clash_where_the_file_system_folds_case(stacked: World) -> None:
    clone = stacked.clone()
    stacked.git("config", "core.ignorecase", "true", cwd=clone)
    (clone / "pkg/ADDED.bin").write_bytes(b"mine\n")
    refused(stacked, clone, "pkg/ADDED.bin")


def test_other_git_at_work(stacked: World) -> None:
    clone = stacked.clone()
    (clone / ".git/index.lock").write_bytes(b"")
    before = contents(clone)
    result = stacked.patchq("apply", str(clone))
    assert (result.code, "index.lock" in result.err) == (3, True)
    assert contents(clone) == before
    (clone / ".git/index.lock").unlink()
    stacked.ok("apply", str(clone))


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/patchq/v1.lock"])
def test_a_lock_that_a_dead_git_left(stacked: World, name: str) -> None:
    """The lock is named, and once it is gone nothing of what was refused happens by itself."""
    clone = stacked.clone()
    before = snapshot(clone)
    lock = clone / ".git" / name
    lock.parent.mkdir(parents=True, exist_ok=True)
    lock.touch()
    result = stacked.patchq("apply", str(clone))
    assert (result.code, str(lock) in result.err, len(result.err.splitlines())) == (3, True, 2)
    lock.unlink()
    assert stacked.ok("status", str(clone))["applied"] == []
    after = snapshot(clone)
    for state in (before, after):
        state["files"] = {n: v[:2] for n, v in state["files"].items()}
    assert after == before
    stacked.ok("apply", str(clone))
    assert contents(clone) == PATCHED


def test_dry_run_writes_nothing(stacked: World) -> None:
    clone = stacked.clone()
    before = snapshot(clone)
    document = stacked.ok("apply", str(clone), "--dry-run")
    assert (document["changed"], document["would_change"]) == (False, True)
    assert snapshot(clone) == before
    stacked.ok("apply", "--create", str(stacked.top / "made"), "--dry-run")
    assert not (stacked.top / "made").exists()


def test_created_on_the_branch_of_the_base(stacked: World) -> None:
    result = stacked.patchq("apply", "--create", str(stacked.top / "made"), "--branch", "v1")
    assert (result.code, "the branch of the base itself" in result.err) == (2, True)
    assert not (stacked.top / "made").exists()


def test_created_in_an_empty_directory(stacked: World) -> None:
    made = stacked.top / "made"
    made.mkdir()
    assert stacked.patchq("apply", "--create", str(made), "--branch", "v1").code == 2
    assert list(made.iterdir()) == []
    stacked.ok("apply", "--create", str(made))
    assert contents(made) == PATCHED
