"""Reading an sdist: its files as git would have them, and a hostile archive refused by the member's name."""

from __future__ import annotations

import gzip
import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from patchq.errors import InputError, PatchqError, RefusedError
from patchq.git.objects import EXECUTABLE, REGULAR
from patchq.upstream import archive
from patchq.upstream.archive import TreeFile, read_sdist
from patchq.vllm.generated import is_generated
from tests.support.server import sdist

if TYPE_CHECKING:
    from pathlib import Path


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, target
    return info


def read(tmp_path: Path, data: bytes) -> list[TreeFile]:
    path = tmp_path / "archive"
    path.write_bytes(data)
    return list(read_sdist(path, "vllm-1.0.tar.gz", is_generated))


def refused(tmp_path: Path, data: bytes, *words: str) -> None:
    with pytest.raises(RefusedError) as caught:
        read(tmp_path, data)
    for word in ("vllm-1.0.tar.gz: ", *words):
        assert word in caught.value.message
    assert caught.value.remedy == "Do not use this archive."


def test_files_modes_and_bytes_are_kept(tmp_path: Path) -> None:
    name = "long/" * 40 + "\u00e4 b\tc"
    files = {"run.sh": b"#!/bin/sh\n", "vllm/a.py": b"a\r\nb\rc", "empty": b"", name: b"\0\xff"}
    found = read(tmp_path, sdist(files, member("vllm-1.0/dir", tarfile.DIRTYPE)))
    assert found == [TreeFile(n, EXECUTABLE if n == "run.sh" else REGULAR, d) for n, d in files.items()]


def test_generated_files_are_left_out(tmp_path: Path) -> None:
    kept = ["vllm/version.py", "tests/setup.cfg", "docs/PKG-INFO", "vllm/x.egg-info.py"]
    made = ["PKG-INFO", "setup.cfg", "vllm/_version.py", "vllm.egg-info/SOURCES.txt", "vllm.egg-info/a/b"]
    assert [f.path for f in read(tmp_path, sdist(dict.fromkeys([*kept, *made], b"x")))] == kept


@pytest.mark.parametrize(
    ("info", "words"),
    [
        (member("vllm-1.0/../escape"), "'../escape' is not a file inside the tree"),
        (member("vllm-1.0/a/../../escape"), "is not a file inside the tree"),
        (member("vllm-1.0/.git/hooks/post-checkout"), "is not a file inside the tree"),
        (member("vllm-1.0//etc/passwd"), "is not a file inside the tree"),
        (member("../escape"), "'../escape' is not under one top directory"),
        (member("/etc/passwd"), "'/etc/passwd' is not under one top directory"),
        (member("other/file"), "'other/file' is not under one top directory"),
        (member("loose"), "'loose' is not under one top directory"),
        (
            member("vllm-1.0/link", tarfile.SYMTYPE, target="/etc/passwd"),
            "'vllm-1.0/link' is not a plain file",
        ),
        (member("vllm-1.0/link", tarfile.LNKTYPE, target="vllm-1.0/a"), "is not a plain file"),
        (member("vllm-1.0/null", tarfile.CHRTYPE), "is not a plain file"),
        (member("vllm-1.0/disk", tarfile.BLKTYPE), "is not a plain file"),
        (member("vllm-1.0/pipe", tarfile.FIFOTYPE), "is not a plain file"),
        (member("vllm-1.0/a"), "'vllm-1.0/a' stands there twice"),
    ],
)
def test_hostile_members(tmp_path: Path, info: tarfile.TarInfo, words: str) -> None:
    refused(tmp_path, sdist({"a": b"a"}, info), words)


@pytest.mark.parametrize("top", ["/", "../", "./", "/etc/", "../../", "./vllm-1.0/"])
def test_the_first_member_decides_nothing_that_leaves_the_tree(tmp_path: Path, top: str) -> None:
    refused(tmp_path, sdist({"a": b"a", "b": b"b"}, top=top), "is not under one top directory")


def test_a_bomb_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    refused(tmp_path, sdist({}, member("vllm-1.0/big", size=(1 << 20) + 1)), "holds more than 1048576 bytes")
    assert len(read(tmp_path, sdist({}, member("vllm-1.0/big", size=1 << 20)))) == 1


def test_a_bomb_of_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    refused(
        tmp_path, sdist({}, *(member(f"vllm-1.0/{i}", size=1 << 17) for i in range(9))), "holds more than"
    )


def test_a_bomb_of_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 50)
    data = sdist({}, *(member(f"vllm-1.0/{i}", tarfile.DIRTYPE) for i in range(60)))
    refused(tmp_path, data, "has more than 50 members")


def test_a_bomb_in_a_header(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of one empty file may be as long as its header says; what is read is bounded whatever it says."""
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(archive, "MAX_FILES", 10)
    refused(tmp_path, sdist({}, member("vllm-1.0/" + "n" * (2 << 20))), "holds more than")


def test_a_sparse_file_that_claims_to_be_huge(tmp_path: Path) -> None:
    """A GNU sparse header claims a real size of 1 TiB and stores nothing."""
    head = bytearray(member("vllm-1.0/sparse", tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    head[386:410] = b"%011o\0%011o\0" % (0, 0)
    head[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    refused(tmp_path, gzip.compress(bytes(head) + b"\0" * 1024), "holds more than")


def pax(record: bytes) -> bytes:
    """An archive whose first member has a PAX header of this text."""
    head = member("vllm-1.0/x", tarfile.XHDTYPE)
    head.size = len(record)
    return gzip.compress(
        head.tobuf() + record.ljust(512, b"\0") + member("vllm-1.0/x").tobuf() + b"\0" * 1024
    )


@pytest.mark.parametrize("record", [b"9" * 40 + b" path=x\n", b"9" * 5000 + b" path=x\n"])
def test_a_header_with_numbers_that_are_none(tmp_path: Path, record: bytes) -> None:
    with pytest.raises(PatchqError) as caught:
        read(tmp_path, pax(record))
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive at all", gzip.compress(b"no tar" * 200), sdist({"a": b"x" * 9999})[:-30]],
    ids=["empty", "text", "gzip", "cut"],
)
def test_what_is_no_archive(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(InputError, match=r"^vllm-1\.0\.tar\.gz is not a readable archive") as caught:
        read(tmp_path, data)
    assert caught.value.remedy


def test_nothing_is_unpacked(tmp_path: Path) -> None:
    read(tmp_path, sdist({"a": b"a", "b/c": b"c"}))
    assert [p.name for p in tmp_path.iterdir() if p.name != "home"] == ["archive"]


def test_a_plain_tar_is_no_sdist(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as plain:
        plain.addfile(member("vllm-1.0/a"))
    with pytest.raises(InputError, match="is not a readable archive"):
        read(tmp_path, out.getvalue())
