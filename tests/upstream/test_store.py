"""The store: the same ids for the same files, and the lock's word against what it holds."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError, InputError, RefusedError
from patchq.git.commits import read_commit
from patchq.git.objects import REGULAR
from patchq.series.lock import Base, Source
from patchq.upstream.archive import TreeFile
from patchq.upstream.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = [TreeFile("b/c", REGULAR, b"c\n"), TreeFile("a", REGULAR, b"a\n")]
SOURCE = Source("directory", path="/nowhere")


def test_the_same_files_give_the_same_commit_in_any_order() -> None:
    store = Store()
    one = store.take_files(FILES, "title", "2026-08-11")
    assert store.take_files(reversed(FILES), "title", "2026-08-11") == one
    assert store.take_files(FILES, "title", "2026-08-12") != one
    with store.objects() as objects:
        commit = read_commit(objects, one)
        assert [p for p, _ in objects.walk(commit.tree)] == ["a", "b/c"]
    assert (commit.title, commit.parents, str(commit.author)) == (
        "title",
        (),
        "patchq maintainers <patchq@localhost> 1786406400 +0000",
    )


def test_no_file_is_an_empty_tree() -> None:
    store = Store()
    assert store.tree_of(store.take_files([], "nothing", "")) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_what_the_lock_says_is_checked() -> None:
    store = Store()
    commit = store.take_files(FILES, "title", "")
    tree = store.tree_of(commit)
    assert store.commit("x", Base(SOURCE)) is None
    with pytest.raises(InputError, match="the base x is not in the store") as caught:
        store.require("x", Base(SOURCE))
    assert "patchq upstream fetch x" in caught.value.remedy
    store.keep("x", commit)
    assert store.require("x", Base(SOURCE, tree=tree)) == commit
    assert store.require("x", Base(SOURCE)) == commit
    assert store.refs() == {"x": commit}
    with pytest.raises(RefusedError, match="the store's x is tree"):
        store.commit("x", Base(SOURCE, tree="0" * 40))


def test_a_reader_that_fails_leaves_no_ref() -> None:
    def files() -> Iterator[TreeFile]:
        yield FILES[0]
        raise RefusedError("no", "no")

    store = Store()
    with pytest.raises(RefusedError, match="no"):
        store.take_files(files(), "title", "")
    said = subprocess.run(["git", "for-each-ref"], cwd=store.git_dir, capture_output=True, check=True)
    assert said.stdout == b""


@pytest.mark.parametrize("as_file", ["cache", "cache/store.git"])
def test_a_cache_that_cannot_be_made(tmp_path: Path, as_file: str) -> None:
    path = tmp_path / as_file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"")
    with pytest.raises(EnvironmentLacksError, match="cannot be made") as caught:
        Store()
    assert "PATCHQ_CACHE" in caught.value.remedy
