"""Objects in memory: the ids that git gives them, and a repository that has them once they are flushed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.git import objects as database
from patchq.git import packs as module
from patchq.git.commits import Commit, Identity, put_commit, read_commit
from patchq.git.objects import (
    EMPTY_BLOB,
    EMPTY_TREE,
    EXECUTABLE,
    REGULAR,
    SYMLINK,
    Entry,
    Objects,
    format_tree,
    object_id,
    parse_tree,
)
from tests.support.oracle import File, Oracle, link

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["a", "a.b", "a/b", "a-b", "a0", "b/c/d", "b/c/e", "\u00e4", "z z", "q\nq", os.fsdecode(b"\xff")]


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(tmp_path_factory.mktemp("oracle") / "repo").start()


def usable(names: list[str]) -> list[str]:
    """Names of which none is a directory of another."""
    return [n for n in names if not any(o.startswith(n + "/") for o in names)]


@given(
    old=st.lists(st.sampled_from(NAMES), unique=True),
    changes=st.dictionaries(st.sampled_from(NAMES), st.sampled_from([None, b"one", b"two"])),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_edited_trees_are_gits(git: Oracle, old: list[str], changes: dict[str, bytes | None]) -> None:
    files: dict[str, File | bytes] = {
        n: File(n.encode("utf-8", "surrogateescape"), SYMLINK if n == "a0" else REGULAR) for n in usable(old)
    }
    after = {**files, **{n: d for n, d in changes.items() if d is not None}}
    after = {n: d for n, d in after.items() if changes.get(n, d) is not None}
    if usable(list(after)) != list(after):
        return
    before = git.tree(files)
    with git.objects() as objects:
        entries = {
            n: None if d is None else Entry(REGULAR, objects.put("blob", d)) for n, d in changes.items()
        }
        made = objects.edit_tree(before, entries)
        assert made == git.tree(after)
        assert [p for p, _ in objects.walk(made)] == os.fsdecode(
            git.git("ls-tree", "-r", "-z", "--name-only", made).stdout
        ).split("\0")[:-1]
        for path, entry in objects.walk(made):
            assert objects.lookup(made, path) == entry


def test_a_file_and_a_directory_of_one_name(git: Oracle) -> None:
    tree = git.tree({"a/b": b"", "c": b""})
    with git.objects() as objects:
        blob = Entry(REGULAR, objects.put("blob", b"x"))
        for changes in ({"a": blob}, {"c/d": blob}):
            with pytest.raises(ValueError, match=r"^[ac]$"):
                objects.edit_tree(tree, changes)
        assert objects.edit_tree(tree, {"a": blob, "a/b": None}) == git.tree({"a": b"x", "c": b""})
        assert objects.edit_tree(tree, {"c/d": blob, "c": None}) == git.tree({"a/b": b"", "c/d": b"x"})
        assert objects.edit_tree(tree, {"a/b": None, "c": None}) == EMPTY_TREE
        assert objects.edit_tree(tree, {"no/such": None, "a": None, "c/d": None}) == tree


def test_lookups_that_find_nothing(git: Oracle) -> None:
    tree = git.tree({"a/b": b"", "l": link(b"a")})
    with git.objects() as objects:
        for path in ("b", "a/c", "a/b/c", "l/b", "", "a/"):
            assert objects.lookup(tree, path) is None, path
        found = objects.lookup(tree, "a")
        assert found is not None
        assert found.mode == 0o040000


def test_trees_survive_being_read_and_written(git: Oracle) -> None:
    tree = git.tree(dict.fromkeys(usable(NAMES), b"") | {"run": File(b"", EXECUTABLE)})
    raw = git.git("cat-file", "tree", tree).stdout
    assert format_tree(parse_tree(raw)) == raw
    assert object_id("tree", raw) == tree
    assert (object_id("blob", b""), object_id("tree", b"")) == (EMPTY_BLOB, EMPTY_TREE)


@pytest.mark.parametrize("limit", [0, 2000])
def test_flushed_objects_are_in_the_repository(
    tmp_path: Path, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNPACK_LIMIT", limit)
    git = Oracle(tmp_path / "repo").start()
    with git.objects() as objects:
        assert objects.flush(git.path / ".git") == 0
        blobs = {f"d/{i}": Entry(REGULAR, objects.put("blob", bytes([i]) * i * 100)) for i in range(50)}
        tree = objects.edit_tree(EMPTY_TREE, blobs)
        commit = put_commit(objects, Commit(tree, (), Identity("A", "a@b", 5, "+0100"), "title\n"))
        assert git.git("cat-file", "-e", commit, check=False).returncode != 0
        assert objects.flush(git.path / ".git") == 53
    assert git.says("fsck", "--full", "--strict", commit) in {"", f"dangling commit {commit}"}
    assert (
        git.says("log", "-1", "--format=%an|%ae|%ad|%cn|%s", "--date=raw", commit) == "A|a@b|5 +0100|A|title"
    )
    assert git.git("cat-file", "blob", blobs["d/49"].oid).stdout == b"1" * 4900


def test_what_is_not_there(git: Oracle) -> None:
    tree = git.tree({"a": b""})
    with git.objects() as objects:
        for name in ("0" * 40, "no such", "HEAD~99", "a\nb", "", tree[:3] + "\u00e4"):
            with pytest.raises(KeyError):
                objects.get(name)
            assert not objects.has(name)
        with pytest.raises(KeyError):
            objects.blob(tree)
        with pytest.raises(KeyError):
            objects.tree(EMPTY_BLOB)
        with pytest.raises(KeyError):
            read_commit(objects, tree)
        assert objects.has(tree)


def test_alternates_are_read(git: Oracle, tmp_path: Path) -> None:
    other = Oracle(tmp_path / "other").start()
    blob = other.says("hash-object", "-w", "--stdin", stdin=b"elsewhere")
    with (
        Objects(git.path / ".git") as alone,
        Objects(git.path / ".git", [other.path / ".git/objects"]) as both,
    ):
        assert (alone.has(blob), both.blob(blob)) == (False, b"elsewhere")


def test_what_was_read_ahead_needs_no_reader(git: Oracle) -> None:
    tree = git.tree({"d/e/one": b"1", "d/e/two": b"2", "f": b"3"})
    with git.objects() as objects:
        objects.read_ahead(tree, ["d/e/one", "d/e/none", "d/none/x", "f/x", "f", "d/e", "f"])
        one, f = objects.lookup(tree, "d/e/one"), objects.lookup(tree, "f")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Objects, "_read", lambda _, name: pytest.fail(f"{name} was asked for"))
            assert one is not None
            assert f is not None
            assert (objects.blob(one.oid), objects.blob(f.oid)) == (b"1", b"3")
            assert objects.lookup(tree, "d/e/none") is None
        assert objects.blob(one.oid) == b"1"
        objects.read_ahead("0" * 40, ["a"])
        assert objects.lookup(tree, "d/e/two") is not None


def test_trees_that_were_not_asked_for_are_let_go(git: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_TREES", 3)
    tree = git.tree({f"{name}/x": name.encode() for name in "abcdefgh"})
    with git.objects() as objects:
        objects.read_ahead(tree, [f"{name}/x" for name in "abcdefgh"])
        for name in "abcdefgha":
            entry = objects.lookup(tree, f"{name}/x")
            assert entry is not None
            assert objects.blob(entry.oid) == name.encode()
        assert len(objects._trees) == 3
