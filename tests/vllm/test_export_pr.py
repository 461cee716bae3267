"""The v0.33.0 lane as pull requests: a branch for each patch in a clone of upstream, as upstream would take it."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from patchq.series.series import load_series
from tests.support.shipped import ROOT, shipped

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.vllm
BASE = "v0.33.0"
WHO = "A Person <person@example.org>"


class Clone:
    """A clone of upstream whose main branch is the release, and what was exported to it."""

    def __init__(self, cache: Path, top: Path) -> None:
        self.cache = cache
        self.top = top / "clone"
        self.git("init", "-q", "-b", "main", str(self.top), at=top)
        (self.top / ".git/objects/info/alternates").write_text(f"{cache / 'store.git/objects'}\n")
        self.base = self.git("commit-tree", load_series(ROOT).lock.bases[BASE].tree or "", "-m", BASE)
        self.git("update-ref", "refs/heads/main", self.base)
        count = str(len(load_series(ROOT).lock.lanes[BASE]))
        words = ("--base", BASE, "--repo", str(self.top), "--as", WHO, "--limit", count, "--json")
        self.exported = json.loads(shipped(cache, "export", "pr", *words).stdout)

    def git(self, *words: str, at: Path | None = None) -> str:
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "EMAIL": "upstream@example.org"}
        done = subprocess.run(["git", *words], cwd=at or self.top, env=env, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode().removesuffix("\n")


@pytest.fixture(scope="module")
def clone(real_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Clone:
    return Clone(real_cache, tmp_path_factory.mktemp("upstream"))


def evidence(patch: str) -> list[dict[str, Any]]:
    """What is recorded of a patch alone on the base."""
    lines = (ROOT / "series" / patch / "evidence.jsonl").read_text().splitlines()
    return [e for line in lines if (e := json.loads(line))["base"] == BASE and e["mode"] == "alone"]


def test_each_patch_has_a_branch_on_the_base_whose_tree_was_proved(clone: Clone) -> None:
    series = load_series(ROOT).on(BASE)
    locked = series.locked(BASE)
    branches = {b["id"]: b for b in clone.exported["branches"]}
    assert list(branches) == list(locked)
    for patch, branch in branches.items():
        below = [p.id for p in series.closure([patch])]
        assert branch["patches"] == below
        assert clone.git("merge-base", branch["name"], "main") == clone.base
        assert clone.git("rev-list", "--count", f"main..{branch['name']}") == str(len(below))
        assert clone.git("rev-parse", f"{branch['name']}^{{tree}}") == branch["tree"]
        proofs = [e for e in evidence(patch) if e["patch_sha256"] == locked[patch].sha256]
        assert any(e["gate"] == "cpu" and e["proved"] and e["tree"] == branch["tree"] for e in proofs)
        title, _, rest = clone.git("log", "-1", "--format=%an <%ae>%n%B", branch["name"]).partition("\n")
        assert title == WHO
        assert rest.startswith(f"{series.find(patch).title}\n")
        assert f"\nSigned-off-by: {WHO}" in rest


def test_each_patch_goes_onto_the_base_by_git_alone(clone: Clone) -> None:
    """What a branch brings, as a diff, laid on the base's tree by git gives the branch's tree."""
    for branch in clone.exported["branches"]:
        difference = clone.git("diff", "--binary", "--full-index", "main", branch["name"]) + "\n"
        env = {**os.environ, "GIT_INDEX_FILE": str(clone.top / ".git/scratch")}
        for words, given in (
            (["read-tree", "main"], b""),
            (["apply", "--cached", "--whitespace=nowarn"], difference.encode()),
            (["write-tree"], b""),
        ):
            done = subprocess.run(
                ["git", *words], cwd=clone.top, env=env, input=given, capture_output=True, check=True
            )
        assert done.stdout.decode().strip() == branch["tree"]


def test_each_description_says_what_was_run(clone: Clone) -> None:
    """In the form of the tree's own template, by the newest proof: commands, results, and how it failed before."""
    template = clone.git("show", "main:.github/PULL_REQUEST_TEMPLATE.md")
    headings = [line for line in template.splitlines() if line.startswith("## ")]
    assert headings
    locked = load_series(ROOT).locked(BASE)
    for branch in clone.exported["branches"]:
        body = branch["body"]
        assert branch["open"] == []
        assert [h for h in headings if h not in body] == []
        proofs = {
            e["gate"]: e for e in evidence(branch["id"]) if e["patch_sha256"] == locked[branch["id"]].sha256
        }
        assert "cpu" in proofs
        for proof in proofs.values():
            assert f"`{proof['command']}`" in body
            assert any(line in body for line in proof["before_output"])
            outcomes = Counter(proof["after"]) - Counter(failed=0)
            assert f"| {outcomes['passed']} passed |" in body
        assert f"`{branch['tree']}`" in body
        assert "Not run:" in body
        assert all(heading not in template or f"{heading}\n\n<!--" not in body for heading in headings)


@pytest.mark.slow  # upstream's linters over nine commits; mypy, which takes minutes, is left out
def test_each_branch_passes_upstreams_rules(clone: Clone) -> None:
    names = [b["name"] for b in clone.exported["branches"]]
    words = [w for name in names for w in ("--commit", name)]
    done = shipped(clone.cache, "lint", "--repo", str(clone.top), *words, "--no-mypy", "--json", code=None)
    document = json.loads(done.stdout)
    assert document["findings"] == []
    assert document["linted"] == [b["commit"] for b in clone.exported["branches"]]
    assert {left["rule"] for left in document["left_out"]} == {"mypy"}
