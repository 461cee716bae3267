"""The main job on the real vLLM trees: the whole way a newcomer goes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from patchq.git.commits import read_commit
from patchq.git.mail import parse_mail
from patchq.git.objects import Objects
from patchq.git.pick import pick
from patchq.series.series import load_series
from tests.support.shipped import PINNED, ROOT, shipped

pytestmark = pytest.mark.vllm

IDENTITY = {
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b.c",
    "GIT_CONFIG_GLOBAL": os.devnull,
}


def git(*args: str, cwd: Path) -> str:
    done = subprocess.run(
        ["git", *args], cwd=cwd, env={**os.environ, **IDENTITY}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().strip()


@pytest.fixture
def patchq(real_cache: Path) -> Any:
    """The command line on the real project, with the shared cache."""

    def call(*args: str, code: int = 0) -> Any:
        return json.loads(shipped(real_cache, *args, "--json", code=code).stdout)

    return call


@pytest.fixture
def locked_tree() -> str:
    return load_series(ROOT).lock.lanes[PINNED][-1].tree


def test_create_verify_unapply_apply(patchq: Any, tmp_path: Path, locked_tree: str) -> None:
    made = tmp_path / "vllm"
    document = patchq("apply", "--create", str(made))
    series = load_series(ROOT)
    assert [p["id"] for p in document["patches"]] == [p.id for p in series.patches]
    assert {p["verdict"] for p in document["patches"]} == {"clean"}
    assert document["tree"] == locked_tree == git("rev-parse", "HEAD^{tree}", cwd=made)
    assert git("log", "--reverse", "--format=%s", f"{PINNED}..", cwd=made).split("\n") == [
        p.title for p in series.patches
    ]
    assert set(git("log", "--format=%an <%ae>", cwd=made).split("\n")) == {
        "patchq maintainers <patchq@localhost>"
    }
    assert patchq("verify", str(made))["ok"] is True
    assert patchq("apply", "--create", str(made))["changed"] is False
    assert patchq("unapply", str(made))["tree"] == series.lock.bases[PINNED].tree
    assert git("status", "--porcelain", cwd=made) == ""
    assert patchq("apply", str(made))["head"] == document["head"]


def test_commit_ids_do_not_depend_on_the_machine(patchq: Any, tmp_path: Path) -> None:
    """The base's commit is made from the lock alone, the patches' from their bodies: two makings give one id."""
    one = patchq("apply", "--create", str(tmp_path / "one"))
    two = patchq("apply", "--create", str(tmp_path / "deeper" / "two"))
    assert one["head"] == two["head"]
    assert git("show", "-s", "--format=%an %ad", PINNED, cwd=tmp_path / "one") == (
        "patchq maintainers Tue Aug 11 00:00:00 2026 +0000"
    )


def test_git_am_alone_gives_the_locked_tree(patchq: Any, tmp_path: Path, locked_tree: str) -> None:
    made = tmp_path / "vllm"
    patchq("apply", "--create", str(made))
    git("checkout", "-q", PINNED, cwd=made)
    bodies = sorted((ROOT / "series").glob(f"*/{PINNED}.patch"))
    git("am", "-q", "--keep-non-patch", "--keep-cr", *map(str, bodies), cwd=made)
    assert git("rev-parse", "HEAD^{tree}", cwd=made) == locked_tree
    titles = git("log", "--reverse", f"-{len(bodies)}", "--format=%s", cwd=made).split("\n")
    assert titles == [p.title for p in load_series(ROOT).patches]


def test_each_patch_applies_on_its_closure_alone(real_cache: Path) -> None:
    series = load_series(ROOT)
    tree = series.lock.bases[PINNED].tree
    bodies = {b.id: b for b in series.lane(PINNED)}
    with Objects(real_cache / "store.git") as objects:
        for patch in series.patches:
            at = tree
            for needed in series.closure([patch.id]):
                body = bodies[needed.id]
                at = pick(objects, at, parse_mail(body.data, body.where), body.where).tree
            assert at != tree


@pytest.mark.parametrize("base", [PINNED, "v0.33.0"])
def test_trees_in_the_store_are_the_locked_ones(real_cache: Path, base: str) -> None:
    with Objects(real_cache / "store.git") as objects:
        tree = read_commit(objects, f"refs/patchq/bases/{base}").tree
        files = dict(objects.walk(tree))
    assert tree == load_series(ROOT).lock.bases[base].tree
    assert not {"PKG-INFO", "setup.cfg", "vllm/_version.py"} & files.keys()
    with Objects(real_cache / "store.git") as objects:
        for name in (
            "vllm/config/fault_tolerance.py",
            "tests/v1/ec_connector/integration/test_epd_correctness.py",
        ):
            data = objects.blob(files[name].oid)
            assert data.count(b"\r\n") == data.count(b"\n") > 0


def test_refresh_of_the_unchanged_series_writes_nothing(patchq: Any, tmp_path: Path) -> None:
    made = tmp_path / "vllm"
    patchq("apply", "--create", str(made))
    before = {
        p: p.read_bytes() for p in [ROOT / "upstream.lock", *(ROOT / "series").rglob("*")] if p.is_file()
    }
    assert patchq("refresh", str(made))["written"] == []
    after = {
        p: p.read_bytes() for p in [ROOT / "upstream.lock", *(ROOT / "series").rglob("*")] if p.is_file()
    }
    assert after == before
