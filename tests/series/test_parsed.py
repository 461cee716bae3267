"""What was read and found right before: not read again while its bytes are the same, and never trusted when damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.cache import cache_dir
from patchq.errors import InputError
from patchq.series import yamlfile
from patchq.series.parsed import read_known
from patchq.series.rulings import Rulings
from patchq.series.series import load_series

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World

GOOD = f"rulings:\n- base: v1\n  verdict: landed\n  because: It is.\n  patch_sha256: '{'2' * 64}'\n  base_tree: '{'1' * 40}'\n  date: '2026-01-02'\n"
DAMAGED = [
    b"",
    b"[",
    b"[]",
    b"[[]]",
    b"null",
    b"3",
    b'[{"rulings": 3}]',
    b'[{"rulings": [{}]}]',
    b'[{"other": []}]',
]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The YAML files that were really read."""
    found: list[Path] = []
    real = yamlfile.read_yaml

    def noted(path: Path, noun: type, *, where: str = "") -> object:
        found.append(path)
        return real(path, noun, where=where)

    monkeypatch.setattr(yamlfile, "read_yaml", noted)
    return found


def read(path: Path) -> Rulings:
    return read_known(path, Rulings, where="rulings.yaml")


def entries() -> list[Path]:
    return sorted((cache_dir() / "parsed").glob("*.json"))


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "rulings.yaml"
    path.write_text(GOOD, encoding="utf-8")
    return path


def test_the_same_bytes_are_read_once(file: Path, reads: list[Path]) -> None:
    first = read(file)
    other = file.with_name("copy.yaml")
    other.write_bytes(file.read_bytes())
    assert read(file) == read(other) == first
    assert first.rulings[0].because == "It is."
    assert reads == [file]


def test_other_bytes_are_read_anew(file: Path, reads: list[Path]) -> None:
    read(file)
    file.write_text(GOOD.replace("It is.", "It is not."), encoding="utf-8")
    assert read(file).rulings[0].because == "It is not."
    file.write_text(GOOD.replace("landed", "landing"), encoding="utf-8")
    for _ in range(2):
        with pytest.raises(InputError, match=r"rulings.yaml:3"):
            read(file)
    assert len(reads) == 4


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_is_damaged_is_read_anew(file: Path, reads: list[Path], damage: bytes) -> None:
    first = read(file)
    (entry,) = entries()
    entry.write_bytes(damage)
    assert read(file) == first
    assert len(reads) == 2


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_series_whose_entry_is_damaged(stacked: World, damage: bytes) -> None:
    first = load_series(stacked.project)
    for entry in entries():
        entry.write_bytes(damage)
    assert load_series(stacked.project) == first
