"""The package index over real HTTP: found, fetched, resumed, and every trouble in one clear sentence."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError, InputError
from patchq.progress import Silent
from patchq.upstream.index import CHUNK, Release, download, find_sdist, find_wheel
from tests.support.server import Index, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = bytes(range(256)) * 4096
SHA = hashlib.sha256(DATA).hexdigest()
NAME = "vllm-1.0.tar.gz"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    files = {
        NAME: DATA,
        "vllm-1.0-cp38-abi3-manylinux1_x86_64.whl": b"wheel",
        "vllm-2.0.tar.gz": b"two",
        "vllm-1.0.zip": b"old",
    }
    with serving(Index(files)) as made:
        monkeypatch.setenv("PIP_INDEX_URL", made.url)
        yield made


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "downloads"


def release() -> Release:
    return find_sdist("vllm", "1.0")


def failed(release: Release, kept: Path, *words: str) -> EnvironmentLacksError:
    with pytest.raises(EnvironmentLacksError) as caught:
        download(release, kept, Silent())
    for word in words:
        assert word in caught.value.message
    assert "again" in caught.value.remedy
    assert not (kept / SHA).exists()
    return caught.value


def names(kept: Path) -> list[str]:
    return sorted(p.name for p in kept.iterdir())


def test_an_sdist_is_found(index: Index) -> None:
    assert find_sdist("vllm", "1.0") == Release(
        NAME, f"http://127.0.0.1:{index.port}/files/{NAME}", SHA, None
    )


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_index_url_may_end_in_a_slash(index: Index, slash: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", index.url + slash)
    assert find_sdist("vllm", "2.0").filename == "vllm-2.0.tar.gz"


@pytest.mark.usefixtures("index")
def test_a_wheel_is_found() -> None:
    found = find_wheel("vllm", "1.0", "x86_64")
    assert found is not None
    assert found.filename == "vllm-1.0-cp38-abi3-manylinux1_x86_64.whl"
    assert find_wheel("vllm", "1.0", "aarch64") is None
    assert find_wheel("vllm", "2.0", "x86_64") is None


@pytest.mark.usefixtures("index")
def test_a_version_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"no sdist of vllm 3\.0"):
        find_sdist("vllm", "3.0")


@pytest.mark.usefixtures("index")
def test_a_project_that_is_not_there() -> None:
    with pytest.raises(EnvironmentLacksError, match="has no project nothing"):
        find_sdist("nothing", "1.0")


def test_an_index_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(Index()) as gone:
        pass
    monkeypatch.setenv("PIP_INDEX_URL", gone.url)
    with pytest.raises(EnvironmentLacksError, match="cannot be reached") as caught:
        find_sdist("vllm", "1.0")
    assert "Check the network and PIP_INDEX_URL" in caught.value.remedy
    assert "object at 0x" not in caught.value.message


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/simple", "http://"])
def test_an_index_url_that_is_none(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", url)
    with pytest.raises(EnvironmentLacksError, match="cannot be reached"):
        find_sdist("vllm", "1.0")


def test_an_index_that_fails_keeps_the_password_to_itself(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.page_status = 503
    monkeypatch.setenv("PIP_INDEX_URL", index.url.replace("//", "//user:secret@"))
    with pytest.raises(EnvironmentLacksError, match="503") as caught:
        find_sdist("vllm", "1.0")
    assert "secret" not in caught.value.message


def test_an_index_of_tomorrow(index: Index) -> None:
    index.meta = '<meta name="pypi:repository-version" content="99.0">'
    with pytest.raises(EnvironmentLacksError, match=r"99\.0"):
        find_sdist("vllm", "1.0")


def test_a_download(index: Index, kept: Path) -> None:
    done = download(release(), kept, Silent())
    assert (done, done.read_bytes(), names(kept)) == (kept / SHA, DATA, [SHA])
    assert download(release(), kept, Silent()) == done
    assert index.asked == [None]


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("cut", [0, 1, 300_000, len(DATA) - 1])
def test_a_download_cut_off_goes_on(index: Index, kept: Path, ranges: bool, cut: int) -> None:
    index.cut, index.ranges = cut, ranges
    came = cut - cut % CHUNK
    words = f"stopped after {came:,} of {len(DATA):,} bytes (the connection closed)"
    assert failed(release(), kept, NAME, words).exit_code == 3
    assert (kept / f"{SHA}.part").read_bytes() == DATA[:came]
    index.cut = None
    assert download(release(), kept, Silent()).read_bytes() == DATA
    assert names(kept) == [SHA]
    assert index.asked == [None, f"bytes={came}-" if came else None]


def test_cut_off_twice(index: Index, kept: Path) -> None:
    index.cut = CHUNK
    failed(release(), kept, f"{CHUNK:,} of")
    failed(release(), kept, f"{2 * CHUNK:,} of")
    index.cut = None
    assert download(release(), kept, Silent()).read_bytes() == DATA
    assert index.asked == [None, f"bytes={CHUNK}-", f"bytes={2 * CHUNK}-"]


@pytest.mark.parametrize("size", [None, len(DATA)])
def test_killed_after_the_last_byte(index: Index, kept: Path, size: int | None) -> None:
    """All is there and only the rename is missing: nothing is fetched again."""
    kept.mkdir()
    (kept / f"{SHA}.part").write_bytes(DATA)
    assert download(replace(release(), size=size), kept, Silent()).read_bytes() == DATA
    assert (index.asked, names(kept)) == ([], [SHA])


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize("size", [None, len(DATA)])
@pytest.mark.parametrize("extra", [b"", b"more"])
def test_what_lies_there_is_as_long_and_wrong(kept: Path, size: int | None, extra: bytes) -> None:
    """The server has nothing behind its end (416); then the file is fetched from its beginning."""
    kept.mkdir()
    (kept / f"{SHA}.part").write_bytes(b"\0" * len(DATA) + extra)
    assert download(replace(release(), size=size), kept, Silent()).read_bytes() == DATA


@pytest.mark.usefixtures("index")
def test_what_lies_there_is_of_another_file(kept: Path) -> None:
    kept.mkdir()
    (kept / f"{SHA}.part").write_bytes(b"\0" * 1000)
    failed(release(), kept, "has sha256", "thrown away")
    assert names(kept) == []
    assert download(release(), kept, Silent()).read_bytes() == DATA


@pytest.mark.usefixtures("index")
def test_what_was_kept_is_damaged(kept: Path) -> None:
    """A power cut can leave a file of the right name with other bytes."""
    kept.mkdir()
    (kept / SHA).write_bytes(b"")
    assert download(release(), kept, Silent()).read_bytes() == DATA


@pytest.mark.usefixtures("index")
def test_a_wrong_hash(kept: Path) -> None:
    wanted = replace(release(), sha256="0" * 64)
    failed(wanted, kept, NAME, SHA[:12], "0" * 12, "thrown away")
    assert names(kept) == []


@pytest.mark.parametrize("status", [403, 404, 500])
def test_the_file_is_refused(index: Index, kept: Path, status: int) -> None:
    index.status = status
    failed(release(), kept, NAME, str(status))
    index.status = 200
    assert download(release(), kept, Silent()).read_bytes() == DATA


@pytest.mark.usefixtures("index")
def test_the_server_is_gone_before_the_file(kept: Path) -> None:
    wanted = release()
    with serving(Index()) as gone:
        pass
    failed(replace(wanted, url=f"http://127.0.0.1:{gone.port}/{NAME}"), kept, "cannot be reached")


@pytest.mark.usefixtures("index")
def test_the_cache_is_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        download(release(), tmp_path / "file" / "downloads", Silent())
