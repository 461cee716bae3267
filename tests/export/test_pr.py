"""Branches for upstream: one for each patch, in a user's clone, with what is proved of it; nothing of the user's is touched."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.proving import BETTER, GOOD
from tests.support.world import UPSTREAM, World, edited, snapshot

if TYPE_CHECKING:
    from pathlib import Path

WHO = "C O Mitter <committer@example.com>"
WROTE = "Co-authored-by: A U Thor <author@example.com>"
TEMPLATE = b"""<!-- lint off -->
PLEASE FILL IN.

## Overview

<!-- One line. -->

## Validation

<!-- Show it. -->

## Screenshots

<!-- None? -->

---

- [ ] AI assistance was used during the creation of this PR.
- [ ] Everything was read.
"""
FILES = {
    **UPSTREAM,
    ".github/PULL_REQUEST_TEMPLATE.md": TEMPLATE,
    "docs/contributing/README.md": b"There is a cap\nfor contributors. The current\ncap is 2 open PRs.\n",
}
OTHER = b"from pathlib import Path\n\n\ndef test_line():\n    assert 'patched' in Path('pkg/engine.py').read_text()\n"
THIRD = b"from pkg import model\n\n\ndef test_sum():\n    assert model.first() + model.third() == 14\n"
IDS = ["0001-better", "0002-other", "0003-third"]


@pytest.fixture(scope="module")
def _proved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three proved patches, the third on the first, made once."""
    top = tmp_path_factory.mktemp("proved")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATCHQ_CACHE", str(top / "cache"))
        patch.setenv("HOME", str(top))
        world = World(top)
        world.start(FILES)
        third = BETTER.replace(b"return 3", b"return 4")
        world.series(
            ("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": GOOD}),
            (
                "0002-other",
                {"pkg/engine.py": edited("pkg/engine.py", 10, b"patched\n"), "tests/test_other.py": OTHER},
            ),
            ("0003-third", {"pkg/model.py": third, "tests/test_third.py": THIRD}),
            files=FILES,
        )
        world.describe("0001-better", why="The first\nis too small.", limits=["No more\nthan ten."])
        gates = [
            {"gate": "cpu", "run": ["tests/test_other.py"]},
            {"gate": "native", "run": ["tests/test_gpu.py"]},
        ]
        world.describe("0002-other", tests=gates, upstream={"state": "absent", "intent": "send"})
        world.describe(
            "0003-third", depends=["0001-better"], tests=[{"gate": "cpu", "run": ["tests/test_third.py"]}]
        )
        world.ok("test", "--prove", "--record", "--gate", "cpu", "--python", sys.executable)
    return top


@pytest.fixture
def proved(tmp_path: Path, _proved: Path) -> World:
    """The same for one test."""
    for name in ("project", "cache", "upstream", "author"):
        shutil.copytree(_proved / name, tmp_path / name, symlinks=True)
    return World(tmp_path)


def clone_of(world: World) -> Path:
    """A clone standing for upstream's, with the base as a tag, and one commit of the user's own."""
    clone = world.clone("vllm", FILES)
    world.git("tag", "v1", cwd=clone)
    world.commit(clone, "mine", {"note.txt": b"mine\n"})
    return clone


def export(world: World, clone: Path, *args: str, code: int = 0) -> Any:
    result = world.patchq("export", "pr", "--repo", str(clone), "--as", WHO, *args, "--json")
    assert result.code == code, result.err
    return result.json if code == 0 else result.err


def shown(world: World, clone: Path, branch: str, form: str) -> str:
    return world.git("show", "-s", f"--format={form}", branch, cwd=clone)


def test_a_branch_for_each_patch(proved: World) -> None:
    clone = clone_of(proved)
    before = snapshot(clone)
    document = export(proved, clone, "--limit", "3")
    assert [b["name"] for b in document["branches"]] == [f"patchq/pr/{i}" for i in IDS]
    assert [b["patches"] for b in document["branches"]] == [[IDS[0]], [IDS[1]], [IDS[0], IDS[2]]]
    assert document["onto"] == {
        "name": "v1",
        "commit": proved.git("rev-parse", "v1", cwd=clone),
        "match": "tree",
    }
    alone = {r["id"]: r["tree"] for r in proved.ok("evidence", "list")["results"]}
    for branch in document["branches"]:
        assert proved.git("rev-parse", f"{branch['name']}^{{tree}}", cwd=clone) == branch["tree"]
        assert branch["tree"] == alone[branch["id"]]
        assert branch["proved"] is True
        assert branch["status"] == "new"
        assert shown(proved, clone, branch["name"], "%s") == branch["title"]
        assert shown(proved, clone, branch["name"], "%an <%ae>") == WHO
        assert shown(proved, clone, branch["name"], "%b") == f"{WROTE}\nSigned-off-by: {WHO}"
        assert proved.git("merge-base", branch["name"], "v1", cwd=clone) == document["onto"]["commit"]
    assert proved.git("log", "--format=%s", "v1..patchq/pr/0003-third", cwd=clone).split("\n") == [
        "[Test] third",
        "[Test] better",
    ]
    after = snapshot(clone)
    assert after["files"] == before["files"]
    assert {k: after[k] for k in ("head", "index", "status", "left")} == {
        k: before[k] for k in ("head", "index", "status", "left")
    }
    assert proved.git("stash", "list", cwd=clone) == ""


def test_the_description(proved: World) -> None:
    clone = clone_of(proved)
    document = export(proved, clone, "better", "--assisted-by", "Some Tool", "--out", str(proved.top / "out"))
    (branch,) = document["branches"]
    assert document["files"] == [str(proved.top / "out" / "0001-better.md")]
    body = (proved.top / "out" / "0001-better.md").read_text()
    assert branch["body"] == body
    sections = dict(part.partition("\n")[::2] for part in body.split("\n## ")[1:])
    assert list(sections) == ["Overview", "Validation", "Screenshots", "Changes", "Details"]
    assert sections["Overview"].strip() == "The first is too small."
    validation = sections["Validation"]
    assert "pytest tests/test_it.py\n" in validation
    assert "| cpu | 1 passed | 1 failed |" in validation
    assert "tests/test_it.py::test_first: assert 1 == 10" in validation
    assert f"The tests ran on this branch's tree, `{branch['tree']}`." in validation
    assert "`patchq test --base v1 --alone --prove --gate cpu 0001-better`" in validation
    assert "Show it." not in body
    assert sections["Screenshots"].strip() == "<!-- None? -->"
    assert branch["open"] == ["Screenshots"]
    assert "- No more than ten." in sections["Details"]
    assert "- [x] AI assistance was used" in body
    assert "- [ ] Everything was read." in body
    assert shown(proved, clone, branch["name"], "%b").split("\n") == [
        WROTE,
        "Co-authored-by: Some Tool",
        f"Signed-off-by: {WHO}",
    ]


def test_what_was_not_run_and_what_it_stands_on(proved: World) -> None:
    clone = clone_of(proved)
    bodies = {b["id"]: b["body"] for b in export(proved, clone, "2", "3")["branches"]}
    assert "- tests/test_gpu.py (needs native sm_86)" in bodies["0002-other"]
    assert "- [ ] AI assistance was used" in bodies["0002-other"]
    assert "stands on commits that have to go in first: `[Test] better`" in bodies["0003-third"]


def test_for_people(proved: World) -> None:
    clone = clone_of(proved)
    result = proved.patchq("export", "pr", "3", "--repo", str(clone), "--as", WHO)
    assert result.code == 0
    assert "patchq/pr/0003-third: stacked on 0001-better" in result.out
    assert f"git -C {clone} push FORK patchq/pr/0003-third" in result.out
    assert "0003-third: its patch.yaml says that it is to be held back" in result.out


def test_too_many_at_once(proved: World) -> None:
    clone = clone_of(proved)
    before = snapshot(clone)
    said = export(proved, clone, code=1)
    assert "3 pull requests would be open at once, and 2 may be (docs/contributing/README.md)" in said
    assert "--limit 3" in said
    proved.describe("0001-better", upstream={"state": "open", "intent": "send"})
    assert "3 pull requests" in export(proved, clone, "2", "3", code=1)
    assert snapshot(clone) == before


UNPROVED = "0001-better is not proved as it stands on v1"
RED = "0001-better is red at the gate cpu"


def test_what_is_not_proved_is_refused(proved: World) -> None:
    """The patch itself, or one that it stands on."""
    clone = clone_of(proved)
    before = snapshot(clone)
    path = proved.project / "series" / "0001-better" / "evidence.jsonl"
    record = json.loads(path.read_text())
    failed = {"passed": 1, "failed": 1, "skipped": 0, "errors": 0}
    for more, words in (
        ({"patch_sha256": "0" * 64}, UNPROVED),
        ({"tree": "0" * 40}, UNPROVED),
        ({"mode": "stack"}, UNPROVED),
        ({"base": "v0"}, UNPROVED),
        ({"proved": None}, UNPROVED),
        ({"proved": False}, RED),
        ({"after": failed}, RED),
    ):
        path.write_text(json.dumps({**record, **more}) + "\n")
        for asked in ("1", "3"):
            said = export(proved, clone, asked, code=1)
            assert words in said, more
            assert "patchq test --prove --record --base v1 0001-better" in said
    path.unlink()
    assert UNPROVED in export(proved, clone, "3", code=1)
    assert snapshot(clone) == before


def test_what_has_landed_or_is_not_for_upstream(proved: World) -> None:
    clone = clone_of(proved)
    proved.git("checkout", "-q", "-b", "later", "v1", cwd=clone)
    proved.commit(clone, "better, squashed", {"pkg/model.py": BETTER, "tests/test_it.py": GOOD})
    assert "0001-better has landed in later" in export(proved, clone, "1", "--onto", "later", code=1)
    (third,) = export(proved, clone, "3", "--onto", "later")["branches"]
    assert third["patches"] == ["0003-third"]
    proved.describe("0001-better", upstream={"state": "merged", "intent": "send"})
    assert "patch.yaml says merged" in export(proved, clone, "1", code=1)
    proved.describe("0001-better", upstream={"state": "absent", "intent": "local"})
    assert "not meant for upstream" in export(proved, clone, "1", code=1)


def test_on_another_commit(proved: World) -> None:
    """Moved lines are followed; the evidence says nothing of that tree, and a run there does."""
    clone = clone_of(proved)
    proved.git("checkout", "-q", "-b", "later", "v1", cwd=clone)
    proved.commit(clone, "more", {"pkg/model.py": b"import os\n\n\n" + FILES["pkg/model.py"]})
    proved.git("checkout", "-q", "main", cwd=clone)
    (branch,) = export(proved, clone, "3", "--onto", "later")["branches"]
    assert branch["proved"] is False
    assert "**Not run on this branch's tree.**" in branch["body"]
    assert proved.git("show", f"{branch['name']}:pkg/model.py", cwd=clone).startswith("import os")
    result = proved.patchq("export", "pr", "3", "--repo", str(clone), "--as", WHO, "--onto", "later")
    assert "NOT proved on these trees (add --prove)" in result.out
    (again,) = export(proved, clone, "3", "--onto", "later", "--prove", "--python", sys.executable)[
        "branches"
    ]
    assert (again["proved"], again["status"], again["tree"]) == (True, "unchanged", branch["tree"])
    assert f"The tests ran on this branch's tree, `{branch['tree']}`." in again["body"]


def test_red_on_another_commit(proved: World) -> None:
    clone = clone_of(proved)
    proved.git("checkout", "-q", "-b", "later", "v1", cwd=clone)
    proved.commit(clone, "other", {"pkg/model.py": FILES["pkg/model.py"] + b"\n\nfirst = lambda: 5\n"})
    before = snapshot(clone)
    said = export(proved, clone, "1", "--onto", "later", "--prove", "--python", sys.executable, code=1)
    assert "0001-better is not proved on the branch's tree" in said
    assert snapshot(clone) == before


def test_a_conflict(proved: World) -> None:
    clone = clone_of(proved)
    proved.git("checkout", "-q", "-b", "later", "v1", cwd=clone)
    other = FILES["pkg/model.py"].replace(b"return 1", b"return 99")
    proved.commit(clone, "other", {"pkg/model.py": other})
    before = snapshot(clone)
    assert "pkg/model.py was changed upstream where the patch changes it" in export(
        proved, clone, "1", "--onto", "later", code=1
    )
    assert snapshot(clone) == before


def test_a_tag_that_has_more_files_than_the_release(proved: World) -> None:
    clone = proved.clone("vllm", {**FILES, ".git-blame-ignore-revs": b"# none\n"})
    proved.git("tag", "v1", cwd=clone)
    document = export(proved, clone, "1")
    assert document["onto"]["match"] == "files"
    assert document["branches"][0]["proved"] is True
    assert "has besides one file that the release archive does not have" in document["branches"][0]["body"]
    proved.commit(clone, "a test setting", {"tests/conftest.py": b"collect_ignore = ['test_it.py']\n"})
    proved.git("tag", "-f", "v1", cwd=clone)
    document = export(proved, clone, "1")
    assert document["onto"]["match"] == "other"
    assert document["branches"][0]["proved"] is False


def test_the_base_is_found_under_head_or_nowhere(proved: World) -> None:
    clone = clone_of(proved)
    base = proved.git("rev-parse", "v1", cwd=clone)
    proved.git("tag", "-d", "v1", cwd=clone)
    proved.commit(clone, "changed", {"pkg/model.py": BETTER})
    assert (
        export(proved, clone, "1")["onto"]["commit"] == proved.git("rev-parse", "HEAD~1", cwd=clone) != base
    )
    lost = proved.clone("lost", {**FILES, "pkg/model.py": b"other\n"})
    assert f"{lost} does not have v1" in export(proved, lost, "1", code=1)
    assert "has no commit 'nope'" in export(proved, lost, "1", "--onto", "nope", code=2)


def test_exporting_again(proved: World) -> None:
    clone = clone_of(proved)
    first = export(proved, clone, "2", "3")
    refs = proved.git("for-each-ref", cwd=clone)
    assert {b["status"] for b in export(proved, clone, "2", "3")["branches"]} == {"unchanged"}
    assert proved.git("for-each-ref", cwd=clone) == refs
    (dry,) = export(proved, clone, "2", "--assisted-by", "Some Tool", "--dry-run")["branches"]
    assert (dry["status"], proved.git("for-each-ref", cwd=clone)) == ("updated", refs)
    (told,) = export(proved, clone, "2", "--assisted-by", "Some Tool")["branches"]
    assert told["status"] == "updated"
    assert told["was"] == first["branches"][0]["commit"]
    assert told["changes"] == [{"id": "0002-other", "difference": "message changed"}]
    assert told["push"] == f"git -C {clone} push --force-with-lease FORK patchq/pr/0002-other"
    (moved,) = export(proved, clone, "3", "--onto", "main")["branches"]
    assert [c["id"] for c in moved["changes"]] == [None]
    assert proved.git("merge-base", moved["name"], "main", cwd=clone) == proved.git(
        "rev-parse", "main", cwd=clone
    )


def test_a_branch_that_is_not_as_patchq_left_it(proved: World) -> None:
    clone = clone_of(proved)
    proved.git("branch", "patchq/pr/0002-other", "main", cwd=clone)
    before = snapshot(clone)
    said = export(proved, clone, "1", "2", code=1)
    assert "the branch patchq/pr/0002-other is not as patchq left it" in said
    assert snapshot(clone) == before
    proved.git("branch", "-m", "patchq/pr/0002-other", "mine", cwd=clone)
    export(proved, clone, "2")
    proved.git("checkout", "-q", "patchq/pr/0002-other", cwd=clone)
    assert export(proved, clone, "2")["branches"][0]["status"] == "unchanged"
    said = export(proved, clone, "2", "--assisted-by", "Tool", code=1)
    assert f"is checked out in {clone}" in said
    proved.commit(clone, "[Test] review", {"pkg/engine.py": b"mine\n"})
    proved.git("checkout", "-q", "main", cwd=clone)
    before = snapshot(clone)
    assert "is not as patchq left it" in export(proved, clone, "2", code=1)
    assert snapshot(clone) == before


def test_all_branches_or_none(proved: World) -> None:
    """No hook runs; a name that cannot be a branch's leaves nothing behind."""
    clone = clone_of(proved)
    hook = clone / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {proved.top}/hooked\nexit 1\n")
    hook.chmod(0o755)
    proved.git("config", "core.hooksPath", str(hook.parent), cwd=clone)
    export(proved, clone, "1")
    assert not (proved.top / "hooked").exists()
    hook.unlink()
    proved.git("update-ref", "-d", "refs/heads/patchq/pr/0001-better", cwd=clone)
    proved.git("branch", "patchq", cwd=clone)
    before = snapshot(clone)
    assert "none was changed" in export(proved, clone, "1", "2", code=3)
    assert snapshot(clone) == before


def test_who_signs(proved: World, monkeypatch: pytest.MonkeyPatch) -> None:
    clone = clone_of(proved)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    call = ("export", "pr", "1", "--repo", str(clone))
    nobody = proved.patchq(*call)
    assert (nobody.code, "nobody is named who signs" in nobody.err) == (2, True)
    for name in (
        "",
        "Me",
        "me@example.com",
        "<me@example.com>",
        "Me <me>",
        "patchq maintainers <patchq@localhost>",
    ):
        assert proved.patchq(*call, "--as", name).code == 2, name
    proved.git("config", "user.name", "U Ser", cwd=clone)
    proved.git("config", "user.email", "user@example.com", cwd=clone)
    (branch,) = proved.ok(*call)["branches"]
    assert shown(proved, clone, branch["name"], "%an <%ae>|%b") == (
        f"U Ser <user@example.com>|{WROTE}\nSigned-off-by: U Ser <user@example.com>"
    )
    (branch,) = proved.ok(*call, "--as", "A U Thor <author@example.com>")["branches"]
    assert shown(proved, clone, branch["name"], "%an|%b") == (
        "A U Thor|Signed-off-by: A U Thor <author@example.com>"
    )
