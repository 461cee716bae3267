"""No kind of trouble without a case, and no case that is not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.scenarios.kinds import KINDS, files, is_case, table

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def collected() -> list[str]:
    """The tests of all files that hold cases."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "--no-header",
            "-p",
            "no:cacheprovider",
            *files(),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "500"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()[-2000:]
    return [line for line in done.stdout.decode().splitlines() if "::" in line]


def test_every_kind_has_a_case_and_every_case_is_there(collected: list[str]) -> None:
    cases = [
        (f"{group}: {kind}", case)
        for group, kinds in KINDS.items()
        for kind, all_ in kinds.items()
        for case in all_
    ]
    assert [c for c in cases if not any(is_case(c[1], node) for node in collected)] == []
    assert all(cases for kinds in KINDS.values() for cases in kinds.values())


def test_the_table_counts_what_passed_and_names_what_is_wanting(collected: list[str]) -> None:
    text, wanting = table(dict.fromkeys(collected, "passed"))
    assert wanting == []
    assert len(text.splitlines()) == 2 + sum(map(len, KINDS.values()))
    outcomes = dict.fromkeys(collected, "passed")
    outcomes.update({n: "skipped" for n in collected if n.endswith("::test_linked_worktree")})
    outcomes.update({n: "failed" for n in collected if n.endswith("::test_detached_head")})
    text, wanting = table(outcomes)
    assert wanting == ["Checkout: detached HEAD", "Checkout: linked worktree"]
    assert "| Checkout | linked worktree | 1 | 0 (1 skipped) |" in text
