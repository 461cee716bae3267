"""Upstream's rules on the real trees: each planted fault is found, and nothing is said of what was there before."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from patchq.git.commits import read_commit
from patchq.git.objects import REGULAR, Entry, Objects
from patchq.progress import Silent
from patchq.vllm.lint.change import Change, TextFile
from patchq.vllm.lint.run import lint
from patchq.vllm.lint.shape import check_message

if TYPE_CHECKING:
    from pathlib import Path

AUTHOR = "A B <a@b.c>"
SPDX = "# SPDX-License-Identifier: Apache-2.0\n# SPDX-FileCopyrightText: Copyright contributors to the vLLM project\n"
OLD = "vllm/sampling_params.py"


def change(objects: Objects, base: str, files: dict[str, str], message: str = "[Test] It\n") -> Change:
    before = read_commit(objects, f"refs/patchq/bases/{base}").tree
    entries = {path: Entry(REGULAR, objects.put("blob", text.encode())) for path, text in files.items()}
    return Change("x", objects, before, objects.edit_tree(before, entries), message, AUTHOR)


def text_of(objects: Objects, base: str, path: str) -> str:
    entry = objects.lookup(read_commit(objects, f"refs/patchq/bases/{base}").tree, path)
    assert entry is not None
    return objects.blob(entry.oid).decode()


@pytest.mark.slow  # installs upstream's linters at their versions, and runs mypy over vLLM twice
@pytest.mark.vllm
def test_planted_faults_are_found_and_old_ones_are_not(
    real_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATCHQ_CACHE", str(real_cache))
    with Objects(real_cache / "store.git") as objects:
        old = text_of(objects, "v0.33.0", OLD)
        shape = "logger = init_logger(__name__)\n"
        assert shape in old
        big = "".join(f"VALUE_{n} = {n}\n" for n in range(510))
        planted = {
            OLD: old.replace(shape, "logger = init_logger(\n    __name__\n)\n"),
            "vllm/planted.py": f"import os\nimport re\n\nX = 're{'c'}ieve it'\n{big}LONG = {'1 + ' * 30}1\n",
            "tests/nowhere/test_planted.py": f"{SPDX}\n\ndef test_it():\n    assert True\n",
            "tests/v1/core/test_planted.py": (
                f"{SPDX}import time\nfrom unittest.mock import MagicMock\n\nimport pytest\n\n\n"
                "@pytest.mark.skip\ndef test_it() -> None:\n    time.sleep(1)\n    assert MagicMock()\n    None + 1\n"
                "\n\ndef test_seam(monkeypatch) -> None:\n    card = MagicMock()\n"
                "    monkeypatch.setattr(time, 'sleep', lambda _: card)\n"
                "    monkeypatch.setattr(time, 'sleep', lambda _: pytest.skip('no'))\n"
            ),
        }
        message = "No tag\n\nSigned-off-by: C <c@d>\n"
        report = lint([change(objects, "v0.33.0", planted, message)], Silent())
    found = defaultdict(set)
    for finding in report.findings:
        found[finding.rule].add((finding.file, finding.line))
    new, core = "vllm/planted.py", "tests/v1/core/test_planted.py"
    assert found["title"] == found["sign-off"] == found["size"] == {("", 0)}
    assert (new, 1) in found["ruff:F401"]
    assert found["ruff:E501"] == {(new, 515)}
    assert (new, 4) in found["ruff-format"]
    assert found["typos"] == {(new, 4)}
    assert found["check-spdx-header"] == {(new, 0)}
    assert found["check-forbidden-imports"] == {(new, 2)}
    assert found["check-test-tethering"] == {("tests/nowhere/test_planted.py", 0)}
    assert found["tests-guide"] == {(core, 9), (core, 11), (core, 12), (core, 19)}
    assert found["mypy"] == {(core, 13)}
    assert {file for file, _ in found["reformatting"]} == {OLD}
    assert {"ruff==0.14.0", "typos==1.43.5", "mypy==1.20.2"} <= set(report.tools)
    assert not report.left_out


def test_a_change_is_signed_by_its_author(tmp_path: Path) -> None:
    from patchq.git.objects import EMPTY_TREE
    from patchq.git.run import run

    run(["init", "-q", "--bare", str(tmp_path / "r.git")])
    objects = Objects(tmp_path / "r.git")

    def rules(message: str, *, signed: bool) -> list[str]:
        made = Change("x", objects, EMPTY_TREE, EMPTY_TREE, message, AUTHOR, signed=signed)
        return [f.rule for f in check_message(made)]

    good = f"[Test] It\n\nSigned-off-by: {AUTHOR}\n"
    assert rules(good, signed=True) == []
    assert rules("[Test] It\n", signed=False) == []
    assert rules("[Test] It\n", signed=True) == ["sign-off"]
    assert rules("[Test] It\n\nSigned-off-by: C <c@d>\n", signed=False) == ["sign-off"]
    assert rules("It\n", signed=False) == ["title"]


def test_added_lines_are_those_of_the_change() -> None:
    text = TextFile("x", ("a", "b", "c", "d"), ("a", "x", "c", "d", "e"))
    assert text.added == {2, 5}
    assert [(e.old, e.new, e.start) for e in text.edits] == [(("b",), ("x",), 2), ((), ("e",), 5)]
