"""Upstream's rules as the real trees state them, and as they are taken where a tree does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.git.commits import read_commit
from patchq.git.objects import EMPTY_TREE, REGULAR, Entry, Objects
from patchq.git.run import run
from patchq.vllm import rules

if TYPE_CHECKING:
    from pathlib import Path

TITLES = {
    "[Kernel] Load it": True,
    "[Kernel][MoE] Load it": True,
    "[Kernel] [MoE]Load it": True,
    "[Kernel]Load it": False,
    "Load it": False,
    "[] Load it": False,
    "[[Kernel]] Load it": False,
    "[Kernel]  ": False,
}


@pytest.mark.vllm
@pytest.mark.parametrize(("base", "stated"), [("v0.27.1", ""), ("v0.33.0", rules.TITLE_CHECK)])
def test_real_trees(real_cache: Path, base: str, stated: str) -> None:
    with Objects(real_cache / "store.git") as objects:
        tree = read_commit(objects, f"refs/patchq/bases/{base}").tree
        assert rules.title_rule(objects, tree).where == stated
        pattern = rules.title_pattern(objects, tree)
        assert {title: bool(pattern.match(title)) for title in TITLES} == TITLES
        assert (rules.open_pr_limit(objects, tree), rules.size_limit(objects, tree)) == (6, 500)
        template = rules.pr_template(objects, tree)
        assert template is not None
        assert "BEFORE SUBMITTING" in template


def test_a_rule_is_the_trees_own(tmp_path: Path) -> None:
    run(["init", "-q", "--bare", str(tmp_path / "r.git")])
    objects = Objects(tmp_path / "r.git")
    files = {
        rules.TITLE_CHECK: b"run: |\n  pattern='^[[:digit:]]+: .*$'\n",
        rules.CONTRIBUTING: b"changes (>70 LOC\nexcluding data)\nThe current\ncap is 9 open PRs.\n",
    }
    entries = {name: Entry(REGULAR, objects.put("blob", data)) for name, data in files.items()}
    tree = objects.edit_tree(EMPTY_TREE, entries)
    assert rules.title_pattern(objects, tree).match("12: a")
    assert not rules.title_pattern(objects, tree).match("[A] a")
    assert (rules.open_pr_limit(objects, tree), rules.size_limit(objects, tree)) == (9, 70)
    assert rules.pr_template(objects, tree) is None


def test_sign_offs_are_read_as_they_are_written() -> None:
    message = f"T\n\nText.\n\n{rules.sign_off('A B', 'a@b')}\nSigned-off-by:  C <c@d> \n"
    assert rules.sign_offs(message) == ("A B <a@b>", "C <c@d>")
