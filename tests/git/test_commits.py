"""Commits: other people's bytes read as text, and names that git resolves."""

from __future__ import annotations

import pytest

from patchq.git.commits import Commit, Identity, read_commit, resolve
from patchq.git.objects import EMPTY_TREE
from tests.support.oracle import Oracle


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(tmp_path_factory.mktemp("commits") / "repo").start()


@pytest.mark.parametrize(
    ("raw", "encoding", "name", "message"),
    [
        ("J\u00fcrgen".encode(), "", "J\u00fcrgen", "gr\u00fcn\n"),
        ("J\u00fcrgen".encode("latin-1"), "", "J\u00fcrgen", "gr\u00fcn\n"),
        ("J\u00fcrgen".encode("latin-1"), "ISO-8859-1", "J\u00fcrgen", "gr\u00fcn\n"),
        ("\u0416\u0443\u043a".encode("cp1251"), "cp1251", "\u0416\u0443\u043a", "gr\u044cn\n"),
        (b"plain", "nonsense", "plain", "gr\u00fcn\n"),
    ],
)
def test_other_peoples_commits(git: Oracle, raw: bytes, encoding: str, name: str, message: str) -> None:
    text = message.encode(encoding if encoding == "cp1251" else "latin-1")
    head = b"tree %s\nauthor %s <a@b.c> 1767319445 -0730\ncommitter X <x@y> 1 +0000\n" % (
        git.tree({}).encode(),
        raw,
    )
    extra = f"encoding {encoding}\n".encode() if encoding else b""
    oid = git.says(
        "hash-object",
        "-w",
        "-t",
        "commit",
        "--literally",
        "--stdin",
        stdin=head + extra + b"gpgsig a\n b\n\n" + text,
    )
    with git.objects() as objects:
        found = read_commit(objects, oid)
    assert found == Commit(EMPTY_TREE, (), Identity(name, "a@b.c", 1767319445, "-0730"), message)


def test_a_commit_with_a_broken_author(git: Oracle) -> None:
    data = b"tree %s\nauthor nobody\ncommitter X <x@y> 1 +0000\n\nt\n" % git.tree({}).encode()
    oid = git.says("hash-object", "-w", "-t", "commit", "--literally", "--stdin", stdin=data)
    with git.objects() as objects:
        assert read_commit(objects, oid).author.seconds == 0


def test_revisions(git: Oracle) -> None:
    commit = git.commit(git.tree({}), b"t\n")
    git.git("tag", "-a", "-m", "t", "heavy", commit)
    git.git("branch", "-f", "side", commit)
    assert [resolve(git.path, r) for r in ("heavy", "side", commit, commit[:12])] == [commit] * 4
    assert [resolve(git.path, r) for r in ("none", "-x", "--all", "", "heavy^{tree}", "HEAD:x")] == [None] * 6
