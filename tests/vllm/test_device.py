"""The kit for a machine with a card takes its extensions from the one place that keeps released ones."""

from __future__ import annotations

import hashlib
import lzma
import zipfile
from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError
from patchq.progress import Silent
from patchq.upstream.index import Release
from patchq.vllm import device, extensions

if TYPE_CHECKING:
    from pathlib import Path


def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *members: str) -> list[str]:
    """An index with one wheel of these members; the versions that are asked for are noted."""
    asked: list[str] = []
    wheel = tmp_path / "vllm.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in members:
            archive.writestr(name, name.encode())

    def find(project: str, version: str, _: str) -> Release:
        asked.append(f"{project} {version}")
        return Release("vllm.whl", "", "b" * 64, None)

    monkeypatch.setattr(extensions, "find_wheel", find)
    monkeypatch.setattr(extensions, "download", lambda *_: wheel)
    return asked


def test_extensions_for_cards_are_compressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = release(tmp_path, monkeypatch, *device.EXTENSIONS, "vllm/_flash.abi3.so")
    first = device._released_extensions("1.2.4", lambda _: False, Silent())
    times = {e.path: e.path.stat().st_mtime_ns for e in first.values()}
    again = device._released_extensions("1.2.4", lambda _: False, Silent())
    assert asked == ["vllm 1.2.4"]
    assert first == again
    assert {e.path: e.path.stat().st_mtime_ns for e in again.values()} == times
    assert list(first) == list(device.EXTENSIONS)
    for name, extension in first.items():
        assert lzma.decompress(extension.path.read_bytes()) == name.encode()
        assert extension.sha256 == hashlib.sha256(name.encode()).hexdigest()


def test_a_release_without_them_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release(tmp_path, monkeypatch, device.EXTENSIONS[0])
    with pytest.raises(EnvironmentLacksError, match=r"_moe_C_stable_libtorch.abi3.so"):
        device._released_extensions("1.2.5", lambda _: False, Silent())
