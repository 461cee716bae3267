"""Upstream moved: files renamed, split, deleted, added on both sides; definitions gone while others look the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.upstreams import ENGINE, GUARD, SOURCES, cell, release, replaced, tree_id
from tests.support.world import World

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
TOTAL = b"    total = value + 1\n"
TIMES = b"    total = value * 10\n"
PATCH = "0001-change"


def change(data: bytes) -> bytes:
    """The patch: a guard in Engine.start, and another sum in helper, which has a twin."""
    return replaced(replaced(data, HEAD, HEAD + GUARD), TOTAL, TIMES)


@pytest.fixture
def changed(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start(SOURCES)
    world.series((PATCH, {CORE: change(ENGINE)}), files=SOURCES)
    return world


def test_offset(changed: World) -> None:
    later = replaced(ENGINE, b"import math\n", b"import os\nimport sys\nimport math\n")
    files = release(changed, "v2", {CORE: later})
    found = cell(changed, PATCH, "v2")
    assert found["verdict"] == "offset"
    assert found["files"] == [CORE]
    assert {o["lines"] for o in found["text"]["offsets"]} == {2}
    assert found["text"]["tree"] == tree_id(changed, {**files, CORE: change(later)})


def test_merged_where_only_the_context_changed(changed: World) -> None:
    later = replaced(ENGINE, b"class Engine:\n", b"class Engine(Base):\n")
    files = release(changed, "v2", {CORE: later})
    found = cell(changed, PATCH, "v2")
    assert (found["verdict"], found["files"]) == ("merged", [CORE])
    assert found["text"]["tree"] == tree_id(changed, {**files, CORE: change(later)})


def test_file_renamed(changed: World) -> None:
    later = replaced(ENGINE, b"import math\n", b"import math\nimport os\n")
    files = release(
        changed, "v2", {CORE: None, "pkg/deep/kernel.py": later, "pkg/unlike.py": b"x = 1\n" * 40}
    )
    found = cell(changed, PATCH, "v2")
    assert found["verdict"] == "merged"
    assert found["text"]["moved"] == [{"from": CORE, "to": "pkg/deep/kernel.py"}]
    assert "pkg/deep/kernel.py" in found["detail"]
    assert found["text"]["tree"] == tree_id(changed, {**files, "pkg/deep/kernel.py": change(later)})


def test_module_became_a_package(changed: World) -> None:
    at = ENGINE.index(b"def helper")
    one, two = ENGINE[:at], b"import os\n\n\n" + ENGINE[at:]
    start = b"from .engine import Engine\nfrom .sums import helper, other, tail\n"
    pieces: dict[str, bytes | None] = {
        "pkg/core/__init__.py": start,
        "pkg/core/engine.py": one,
        "pkg/core/sums.py": two,
    }
    files = release(changed, "v2", {CORE: None, **pieces})
    found = cell(changed, PATCH, "v2")
    assert found["verdict"] == "merged"
    assert {m["to"] for m in found["text"]["moved"]} == {"pkg/core/engine.py", "pkg/core/sums.py"}
    expected = {
        **files,
        "pkg/core/engine.py": replaced(one, HEAD, HEAD + GUARD),
        "pkg/core/sums.py": replaced(two, TOTAL, TIMES),
    }
    assert found["text"]["tree"] == tree_id(changed, expected)


def test_module_became_a_package_and_landed_there(changed: World) -> None:
    at = ENGINE.index(b"def helper")
    one, two = ENGINE[:at], b"import os\n\n\n" + ENGINE[at:]
    release(
        changed,
        "v2",
        {
            CORE: None,
            "pkg/core/engine.py": replaced(one, HEAD, HEAD + GUARD),
            "pkg/core/sums.py": replaced(two, TOTAL, TIMES),
        },
    )
    assert cell(changed, PATCH, "v2")["verdict"] == "landed"


def test_file_deleted(changed: World) -> None:
    release(changed, "v2", {CORE: None, "pkg/new.py": b"nothing = 'like it'\n"})
    found = cell(changed, PATCH, "v2")
    assert (found["verdict"], found["files"]) == ("missing", [CORE])
    assert found["text"]["tree"] == ""
    assert f"{CORE} is not there" in found["detail"]


@pytest.mark.parametrize("same", [True, False])
def test_both_sides_add_one_path(changed: World, same: bool) -> None:
    author = changed.top / "author"
    changed.describe("0002-new")
    ours = b"def fresh():\n    return 1\n"
    changed.commit(author, "[Test] new", {"pkg/fresh.py": ours})
    assert changed.patchq("refresh", str(author)).code == 0
    release(changed, "v2", {"pkg/fresh.py": ours if same else b"def theirs():\n    return 2\n"})
    found = cell(changed, "0002-new", "v2")
    assert found["verdict"] == ("landed" if same else "conflict")
    assert found["files"] == ["pkg/fresh.py"]
    assert cell(changed, PATCH, "v2")["verdict"] == "clean"


def test_empty_files_are_not_taken_for_one_another(changed: World) -> None:
    """Upstream adds one empty file and takes another away: neither is the patch's, nor what became of it."""
    author = changed.top / "author"
    changed.describe("0002-new")
    changed.commit(author, "[Test] new", {"pkg/marker": b"", "pkg/__init__.py": None})
    changed.ok("refresh", str(author))
    release(changed, "v2", {"pkg/other": b""})
    release(changed, "v3", {"pkg/other": b"", "pkg/__init__.py": None})
    assert cell(changed, "0002-new", "v2")["verdict"] == "clean"
    rest = cell(changed, "0002-new", "v3")
    assert (rest["text"]["moved"], rest["text"]["share"]) == ([], 0.5)
    release(changed, "v4", {"pkg/marker": b"", "pkg/__init__.py": None})
    assert cell(changed, "0002-new", "v4")["verdict"] == "landed"
    changed.ok("rebase", "--onto", "v3")
    body = (changed.project / "series/0002-new/v3.patch").read_bytes()
    assert (b"b/pkg/marker" in body, b"__init__" in body, b"other" in body) == (True, False, False)


@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        ("pkg/fresh.py", "pkg/fresh.py/one.py", "pkg/fresh.py is a directory here"),
        ("pkg/fresh/one.py", "pkg/fresh", "pkg/fresh/one.py cannot be there, as pkg/fresh is a file here"),
    ],
)
def test_a_file_on_one_side_and_a_directory_on_the_other(
    changed: World, ours: str, theirs: str, said: str
) -> None:
    author = changed.top / "author"
    changed.describe("0002-new")
    changed.commit(author, "[Test] new", {ours: b"def fresh():\n    return 1\n"})
    changed.ok("refresh", str(author))
    release(changed, "v2", {theirs: b"def theirs():\n    return 2\n"})
    found = cell(changed, "0002-new", "v2")
    assert (found["verdict"], found["detail"]) == ("conflict", said)
    stopped = changed.patchq("rebase", "--onto", "v2", "--json")
    assert stopped.code == 1
    work = Path(stopped.json["pending"]["work"])
    assert changed.git("status", "--porcelain", cwd=work) == f"UA {ours}"
    result = changed.patchq("rebase", "--continue")
    assert (result.code, f"{ours} in {work} is not resolved" in result.err) == (1, True)
    (work / "pkg/else.py").write_bytes(b"def fresh():\n    return 1\n")
    changed.git("rm", "-q", "--cached", ours, cwd=work)
    changed.ok("rebase", "--continue")
    assert b"+++ b/pkg/else.py" in (changed.project / "series/0002-new/v2.patch").read_bytes()


def test_target_function_deleted_while_a_twin_remains(changed: World) -> None:
    start, end = ENGINE.index(b"def helper"), ENGINE.index(b"def other")
    release(changed, "v2", {CORE: ENGINE[:start] + ENGINE[end:]})
    found = cell(changed, PATCH, "v2")
    assert found["verdict"] == "missing"
    assert found["text"]["troubles"][0]["reason"] == "no longer has def helper, which hunk 2 changes"


def test_target_method_deleted_while_a_twin_in_the_same_class_remains(changed: World) -> None:
    start, end = ENGINE.index(HEAD), ENGINE.index(b"    def stop")
    release(changed, "v2", {CORE: ENGINE[:start] + ENGINE[end:]})
    found = cell(changed, PATCH, "v2")
    assert found["verdict"] == "missing"
    assert "def start" in found["detail"]


def test_conflict_names_file_and_hunk(changed: World) -> None:
    release(changed, "v2", {CORE: replaced(ENGINE, TOTAL, b"    total = value - 7\n")})
    found = cell(changed, PATCH, "v2")
    assert (found["verdict"], found["files"]) == ("conflict", [CORE])
    assert found["text"]["troubles"][0]["hunks"] == [2]
    assert "hunk 2" in found["detail"]


def test_a_patch_is_told_blocked_by_what_it_depends_on(changed: World) -> None:
    author = changed.top / "author"
    changed.describe("0002-more", depends=[PATCH])
    changed.describe("0003-apart")
    more = change(ENGINE).replace(GUARD, GUARD + b"        size += 1\n")
    changed.commit(author, "[Test] more", {CORE: more})
    changed.commit(author, "[Test] apart", {"pkg/model.py": b"apart = 1\n"})
    assert changed.patchq("refresh", str(author)).code == 0
    release(changed, "v2", {CORE: replaced(ENGINE, HEAD, b"    def start(self, size, *, count):\n")})
    cells = {row["id"]: row["cells"]["v2"] for row in changed.ok("forecast", "--base", "v2")["patches"]}
    assert cells[PATCH]["verdict"] == "conflict"
    assert cells["0002-more"]["text"]["blocked_by"] == [PATCH]
    assert cells["0002-more"]["detail"].startswith(f"blocked by {PATCH}, which does not go on here: ")
    assert cells["0003-apart"]["verdict"] == "clean"


def test_nothing_waits_for_a_patch_that_a_person_ruled_out(changed: World) -> None:
    author = changed.top / "author"
    changed.describe("0002-more", depends=[PATCH], because={PATCH: "It is meant for guarded sizes."})
    changed.commit(author, "[Test] more", {"pkg/model.py": b"more = 1\n"})
    assert changed.patchq("refresh", str(author)).code == 0
    release(changed, "v2", {CORE: replaced(ENGINE, HEAD, b"    def start(self, size, *, count):\n")})
    found = cell(changed, "0002-more", "v2")
    assert (found["verdict"], found["text"]["blocked_by"]) == ("clean", [PATCH])
    why = ["--base", "v2", "--because", "The scheduler guards it."]
    assert changed.patchq("verdict", "set", "1", "reworked", *why).code == 0
    assert cell(changed, "0002-more", "v2")["text"]["blocked_by"] == []


def test_lines_of_patches_that_are_not_needed_are_no_offset(changed: World) -> None:
    """A body is made on all patches before it; alone on its base, its hunks stand higher, and that is home."""
    author = changed.top / "author"
    changed.describe("0002-apart")
    end = change(ENGINE) + b"\n\nend = 1\n"
    changed.commit(author, "[Test] apart", {CORE: end})
    assert changed.patchq("refresh", str(author)).code == 0
    release(changed, "v2", {"README.md": b"later\n"})
    later = b"import os\n" + ENGINE
    release(changed, "v3", {CORE: later})
    assert cell(changed, "0002-apart", "v1")["verdict"] == "clean"
    assert cell(changed, "0002-apart", "v2")["verdict"] == "clean"
    found = cell(changed, "0002-apart", "v3")
    assert (found["verdict"], [o["lines"] for o in found["text"]["offsets"]]) == ("offset", [1])
    assert {p["verdict"] for p in changed.ok("rebase", "--onto", "v2")["patches"]} == {"clean"}


def test_a_patch_stands_on_what_it_depends_on(changed: World) -> None:
    author = changed.top / "author"
    changed.describe("0002-more", depends=[PATCH])
    more = change(ENGINE).replace(GUARD, GUARD + b"        size += 1\n")
    changed.commit(author, "[Test] more", {CORE: more})
    assert changed.patchq("refresh", str(author)).code == 0
    files = release(changed, "v2", {"README.md": b"later\n"})
    found = cell(changed, "0002-more", "v2")
    assert found["verdict"] == "clean"
    assert found["text"]["tree"] == tree_id(changed, {**files, CORE: more})
    files = release(changed, "v3", {CORE: change(ENGINE)})
    found = cell(changed, "0002-more", "v3")
    assert found["verdict"] == "clean"
    assert found["text"]["tree"] == tree_id(changed, {**files, CORE: more})
