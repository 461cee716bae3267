"""What is read from a tree for its environment, and what is put right when one is moved to its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.errors import EnvironmentLacksError
from patchq.git.objects import EMPTY_TREE, REGULAR, Entry, Objects
from patchq.git.run import run
from patchq.progress import Silent
from patchq.series.lock import Base, Source
from patchq.vllm import environment
from patchq.vllm.requirements import read_requirements

if TYPE_CHECKING:
    from pathlib import Path

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
