"""Bringing bases into the store from each kind of source, by the command line, with the tree that git itself gives."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from patchq.upstream.store import Store
from tests.support.server import Index, sdist, serving
from tests.support.world import EXECUTABLE, UPSTREAM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.world import World

NAME = "vllm-1.0.tar.gz"
GENERATED = {"PKG-INFO": b"x", "vllm.egg-info/SOURCES.txt": b"x", "setup.cfg": b"x", "vllm/_version.py": b"x"}


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(Index({NAME: sdist({**UPSTREAM, **GENERATED})})) as made:
        monkeypatch.setenv("PIP_INDEX_URL", made.url)
        yield made


def tree_of(world: World, clone: Path, revision: str = "HEAD") -> str:
    return world.git("rev-parse", f"{revision}^{{tree}}", cwd=clone)


def row(world: World, name: str) -> dict[str, object]:
    return next(r for r in world.ok("upstream", "list")["bases"] if r["name"] == name)


def refused(world: World, code: int, *args: str) -> str:
    """The call fails with one message on stderr, and lock and bases are as they were."""
    lock = (world.project / "upstream.lock").read_bytes()
    refs = Store().refs()
    result = world.patchq(*args)
    assert result.code == code, result.err
    assert result.out == ""
    assert "Traceback" not in result.err
    assert (world.project / "upstream.lock").read_bytes() == lock
    assert Store().refs() == refs
    assert world.git("for-each-ref", "refs/patchq/incoming", cwd=world.cache / "store.git") == ""
    return result.err


@pytest.mark.usefixtures("index")
def test_every_source_gives_the_tree_that_git_gives(world: World) -> None:
    clone = world.clone()
    tree = tree_of(world, clone)
    assert row(world, "v1")["tree"] == tree
    world.ok("upstream", "add", "from-sdist", "--sdist", "1.0")
    world.ok("upstream", "add", "from-clone", "--clone", str(clone))
    world.ok("upstream", "add", "from-git", "--git", clone.as_uri())
    bases = {r["name"]: r for r in world.ok("upstream", "list")["bases"]}
    assert {n: (r["tree"], r["present"], r["verified"]) for n, r in bases.items()} == dict.fromkeys(
        ["v1", "from-sdist", "from-clone", "from-git"], (tree, True, True)
    )
    assert bases["from-sdist"]["source"]["version"] == "1.0"
    assert list((world.cache / "downloads").iterdir()) == []
    modes = world.git("ls-tree", "-r", tree, cwd=world.cache / "store.git").splitlines()
    assert {line.split("\t")[1] for line in modes if line.startswith("100755")} == EXECUTABLE


@pytest.mark.parametrize("kind", ["branch", "tag", "annotated", "commit", "older commit"])
@pytest.mark.parametrize("source", ["git", "clone"])
def test_a_commit_a_branch_and_a_tag(world: World, source: str, kind: str) -> None:
    clone = world.clone()
    older = world.git("rev-parse", "HEAD", cwd=clone)
    world.git("checkout", "-q", "-b", "side/branch", cwd=clone)
    newer = world.commit(clone, "more", {"more.txt": b"more\n"})
    world.git("tag", "light", cwd=clone)
    world.git("tag", "-a", "-m", "t", "heavy", cwd=clone)
    world.git("checkout", "-q", "main", cwd=clone)
    revision = {
        "branch": "side/branch",
        "tag": "light",
        "annotated": "heavy",
        "commit": newer,
        "older commit": older,
    }[kind]
    where = clone.as_uri() if source == "git" else str(clone)
    world.ok("upstream", "add", "x", f"--{source}", where, "--rev", revision)
    commit = older if kind == "older commit" else newer
    found = row(world, "x")
    assert found["tree"] == tree_of(world, clone, commit)
    assert found["source"]["revision"] == commit
    world.git("tag", "-d", "light", cwd=clone)
    shutil.rmtree(world.cache)
    world.ok("upstream", "fetch", "x")
    assert row(world, "x")["present"] is True


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--git", "file:///nowhere/at/all"), 3, "cannot be fetched from file:///nowhere/at/all"),
        (("--git", "CLONE", "--rev", "no-such"), 2, "has no 'no-such'"),
        (("--git", "CLONE", "--rev", "f" * 40), 2, "has no"),
        (("--git", "CLONE", "--rev=-x"), 2, "does not begin with a dash"),
        (("--git", "CLONE", "--rev", "HEAD^{tree}"), 3, "cannot be fetched"),
        (("--git", "ext::sh -c touch% /tmp/patchq-owned"), 2, "is not a git source"),
        (("--git=--upload-pack=touch x",), 2, "does not begin with a dash"),
        (("--clone", "nowhere"), 2, "is not a directory"),
        (("--clone", "CLONE", "--rev", "no-such"), 2, "has no commit 'no-such'"),
        (("--directory", "nowhere"), 2, "is not a directory"),
        (("--sdist", "9.9"), 2, "no sdist of vllm 9.9"),
        ((), 2, "name exactly one source"),
        (("--sdist", "1.0", "--git", "CLONE"), 2, "name exactly one source"),
    ],
)
@pytest.mark.usefixtures("index")
def test_sources_that_are_none(world: World, args: tuple[str, ...], code: int, words: str) -> None:
    clone = world.clone()
    args = tuple(
        str(clone) if a == "CLONE" and "--clone" in args else clone.as_uri() if a == "CLONE" else a
        for a in args
    )
    assert words in refused(world, code, "upstream", "add", "x", *args)


def test_a_wrong_hash_in_the_lock(world: World, index: Index) -> None:
    world.ok("upstream", "add", "x", "--sdist", "1.0")
    shutil.rmtree(world.cache)
    index.files[NAME] = sdist({**UPSTREAM, "README.md": b"tampered\n"})
    assert "has sha256" in refused(world, 3, "upstream", "fetch", "x")
    index.files[NAME] = sdist({**UPSTREAM, **GENERATED})
    assert row(world, "x")["present"] is False


def test_cut_off_midway_then_again(world: World, index: Index) -> None:
    index.files[NAME] = sdist({**UPSTREAM, "noise": os.urandom(400_000)})
    index.cut = 200_000
    error = refused(world, 3, "upstream", "add", "x", "--sdist", "1.0")
    assert f"the download of {NAME} stopped after 196,608 of" in error
    assert "goes on from there" in error
    index.cut = None
    world.ok("upstream", "add", "x", "--sdist", "1.0")
    assert index.asked == [None, "bytes=196608-"]


def test_no_network(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Index()) as gone:
        pass
    monkeypatch.setenv("PIP_INDEX_URL", gone.url)
    error = refused(world, 3, "upstream", "add", "x", "--sdist", "1.0")
    assert len(error.strip().splitlines()) == 2
    assert "the package index cannot be reached" in error


def test_a_hostile_archive_leaves_nothing_behind(world: World, index: Index) -> None:
    index.files[NAME] = sdist({"a": b"a"}, top="/etc/")
    store = world.cache / "store.git"
    before = sorted(store.rglob("*"))
    assert "is not under one top directory" in refused(world, 1, "upstream", "add", "x", "--sdist", "1.0")
    assert sorted(store.rglob("*")) == before
    index.files[NAME] = sdist(UPSTREAM)
    world.ok("upstream", "add", "x", "--sdist", "1.0")


def test_a_bare_ipv6_address_is_a_url(world: World) -> None:
    error = refused(world, 3, "upstream", "add", "x", "--git", "http://[::1]:1/vllm.git")
    assert "cannot be fetched from http://[::1]:1/vllm.git" in error


@pytest.mark.parametrize("url", ["ext::sh -c x", "fd::17", "::x", "no-such::x", "EXT::x", "ext+x.y::z"])
def test_a_program_as_a_url(world: World, url: str) -> None:
    assert "is not a git source" in refused(world, 2, "upstream", "add", "x", "--git", url)


def test_an_import_that_was_killed_leaves_nothing_in_the_store(world: World) -> None:
    """Killed while files stream in, with git: the store has not grown, and the next fetch takes the rest away."""
    store = world.cache / "store.git"
    before = sorted(p.relative_to(store) for p in store.rglob("*"))
    killed = (
        "import os, signal\nimport patchq.upstream.fetch as f\nreal = f._read_directory\n"
        "def some(top):\n    from patchq.upstream.archive import TreeFile\n"
        "    yield TreeFile('noise', 0o100644, os.urandom(1 << 20))\n    os.killpg(0, signal.SIGKILL)\n"
        "f._read_directory = some\nos.setpgid(0, 0)"
    )
    done = world.child("upstream", "fetch", "v1", "--again", before=killed)
    assert done.returncode == -9
    left = [p for p in store.rglob("*") if p.relative_to(store) not in before]
    assert {p.relative_to(store).parts[0] for p in left} == {"patchq-incoming"}
    world.git("update-ref", "refs/patchq/incoming/1", "refs/patchq/bases/v1", cwd=store)
    old, new = (store / "objects/pack" / f"tmp_pack_{n}" for n in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half a pack")
    os.utime(old, (0, 0))
    world.ok("upstream", "fetch", "v1", "--again")
    assert [p for p in store.rglob("*") if p.relative_to(store) not in before] == [new]
    assert world.git("for-each-ref", "refs/patchq/incoming", cwd=store) == ""


def test_a_directory_that_has_changed(world: World) -> None:
    (world.upstream / "README.md").write_bytes(b"changed\n")
    assert "upstream.lock says" in refused(world, 1, "upstream", "fetch", "v1", "--again")
    assert world.ok("upstream", "fetch", "v1")["bases"][0]["present"] is True


def test_a_directory_with_all_kinds_of_files(world: World) -> None:
    odd = world.top / "odd"
    names = ["a b", "t\tt", 'q"q', "back\\slash", "n\nn", "\u00e4", os.fsdecode(b"\xff")]
    world.write_upstream({n: n.encode("utf-8", "surrogateescape") for n in names}, at=odd)
    (odd / "link").symlink_to("nowhere")
    (odd / "to-dir").symlink_to("sub", target_is_directory=True)
    (odd / "sub").mkdir()
    (odd / "sub/run").write_bytes(b"#!\n")
    (odd / "sub/run").chmod(0o755)
    world.git("init", "-q", "-b", "main", cwd=odd)
    world.git("-c", "core.autocrlf=false", "add", "-A", "-f", cwd=odd)
    world.git("commit", "-q", "-m", "odd", cwd=odd)
    (odd / "__pycache__").mkdir()
    (odd / "__pycache__/x.pyc").write_bytes(b"x")
    world.ok("upstream", "add", "odd", "--directory", str(odd))
    assert row(world, "odd")["tree"] == tree_of(world, odd)


def test_an_unverified_base_is_told_as_such(world: World) -> None:
    clone = world.clone()
    lock = world.project / "upstream.lock"
    commit = world.git("rev-parse", "HEAD", cwd=clone)
    text = lock.read_text()
    lock.write_text(
        text.replace(
            "lanes:",
            f"  fork:\n    source:\n      kind: git\n      url: {clone.as_uri()}\n      revision: {commit}\nlanes:",
        )
    )
    assert (row(world, "fork")["verified"], row(world, "fork")["present"]) == (False, False)
    assert "unverified" in world.patchq("upstream", "list").out
    world.ok("upstream", "fetch", "--all")
    assert row(world, "fork")["present"] is False
    world.ok("upstream", "fetch", "fork")
    assert row(world, "fork")["present"] is True
