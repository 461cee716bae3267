"""Contents that are not plain text edits, on bases that have them, lack them, or changed them otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.upstreams import cell, release
from tests.support.world import UPSTREAM, World

if TYPE_CHECKING:
    from pathlib import Path

LATIN = "naïve = 'é'\xa0\n".encode("latin-1")
FILES = {
    **UPSTREAM,
    "data.bin": bytes(range(256)),
    "gone.bin": b"\0gone",
    "latin.py": b"a = 1\n" + LATIN + b"b = 2\n",
    'odd "name\ttab é.py': b"x = 1\ny = 2\n",
}
CASES: dict[str, tuple[str, bytes | None, bytes | None]] = {
    "binary changed": ("data.bin", b"\0\1\2", b"\0\7\7"),
    "binary added": ("new.bin", b"\0new", b"\0other"),
    "binary deleted": ("gone.bin", None, b"\0kept, and changed"),
    "CRLF": ("pkg/dos.py", b"one\r\nTWO\r\nthree\r\nfour\r\n", b"one\r\n2\r\nthree\r\nfour\r\n"),
    "no final newline": ("pkg/bare.py", b"no newline\nAT THE END", b"no newline\nat THE end"),
    "final newline added": ("pkg/bare.py", b"no newline\nat the end\n", b"no newline\nat another end"),
    "Latin-1": ("latin.py", b"a = 1\n" + LATIN.upper() + b"b = 2\n", b"a = 1\nc = 3\nb = 2\n"),
    "odd path": ('odd "name\ttab é.py', b"x = 1\ny = 3\n", b"x = 1\ny = 4\n"),
    "empty file added": ("empty.py", b"", b"something = 'else'\n"),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[World, str, bytes | None, bytes | None]:
    path, ours, theirs = CASES[request.param]
    world = World(tmp_path)
    world.start(FILES)
    world.series(("0001-it", {path: ours}), files=FILES)
    return world, path, ours, theirs


def become(world: World, name: str, path: str, data: bytes | None) -> None:
    """A base that is the first one with one file as given."""
    files: dict[str, bytes | None] = dict.fromkeys(("pkg/core.py",))
    files.update({k: v for k, v in FILES.items() if k not in UPSTREAM})
    release(world, name, {**files, path: data})


def test_there_already_elsewhere_or_otherwise(
    case: tuple[World, str, bytes | None, bytes | None],
) -> None:
    world, path, ours, theirs = case
    become(world, "unrelated", "README.md", b"unrelated\n")
    assert cell(world, "0001-it", "unrelated")["verdict"] == "clean"
    become(world, "against", path, theirs)
    found = cell(world, "0001-it", "against")
    assert (found["verdict"], found["files"]) == ("conflict", [path])
    become(world, "landed", path, ours)
    assert cell(world, "0001-it", "landed")["verdict"] == "landed"
    result = world.patchq("rebase", "--onto", "unrelated", "--json")
    assert result.code == 0, result.err
    before = (world.project / "series/0001-it/v1.patch").read_bytes()
    assert (world.project / "series/0001-it/unrelated.patch").read_bytes() == before
    stopped = world.patchq("rebase", "--onto", "against", "--json")
    assert stopped.code == 1
    assert stopped.json["pending"]["files"][0]["file"] == path


def test_modes_and_links(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start(FILES)
    author = world.clone("author", FILES)
    world.describe("0001-mode")
    world.describe("0002-link")
    (author / "pkg/model.py").chmod(0o755)
    world.commit(author, "[Test] mode", {})
    (author / "link").symlink_to("README.md")
    world.commit(author, "[Test] link", {})
    assert world.patchq("refresh", str(author)).code == 0
    become(world, "v2", "pkg/model.py", b"changed = True\n")
    found = cell(world, "0001-mode", "v2")
    assert found["verdict"] == "clean"
    become(world, "v2b", "pkg/model.py", None)
    assert cell(world, "0001-mode", "v2b")["verdict"] == "missing"
    top = world.top / "v3"
    world.write_upstream(FILES, at=top)
    (top / "pkg/model.py").chmod(0o755)
    (top / "link").symlink_to("README.md")
    assert world.patchq("upstream", "add", "v3", "--directory", str(top)).code == 0
    assert cell(world, "0001-mode", "v3")["verdict"] == "landed"
    assert cell(world, "0002-link", "v3")["verdict"] == "landed"
