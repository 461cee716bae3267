"""The forecast as a whole: the matrix, what it leaves alone, rulings, and watching a branch."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
import yaml

from tests.support.upstreams import ENGINE, GUARD, SOURCES, cell, release, replaced
from tests.support.world import World, contents

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
PATCH = "0001-guard"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
AGAINST = replaced(ENGINE, HEAD, b"    def start(self):\n")


@pytest.fixture
def guarded(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.start(SOURCES)
    world.series(
        (PATCH, {CORE: GUARDED}),
        ("0002-apart", {"pkg/model.py": b"def first():\n    return 5\n"}),
        files=SOURCES,
    )
    return world


def test_matrix(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    release(guarded, "v3", {CORE: GUARDED})
    document = guarded.ok("forecast", "--all")
    assert document["bases"] == ["v1", "v2", "v3"]
    rows = {p["id"]: {b: c["verdict"] for b, c in p["cells"].items()} for p in document["patches"]}
    assert rows == {
        PATCH: {"v1": "clean", "v2": "conflict", "v3": "landed"},
        "0002-apart": {"v1": "clean", "v2": "clean", "v3": "clean"},
    }
    for patch in document["patches"]:
        for found in patch["cells"].values():
            assert {"verdict", "detail", "files"} <= found.keys()
    assert guarded.ok("forecast", "2", "--base", "v2", "--base", "v1")["bases"] == ["v1", "v2"]
    shown = guarded.patchq("forecast", "--all").out.splitlines()
    assert shown[0] == f"{PATCH}\tclean\tconflict\tlanded"
    assert shown[2].startswith(f"{PATCH} on v2: conflict: {CORE} ")


def test_same_bytes_twice_and_nothing_outside_the_cache(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    before = contents(guarded.project)
    first = guarded.patchq("forecast", "--all", "--json").out
    assert guarded.patchq("forecast", "--all", "--json").out == first
    for kept in (guarded.cache / "forecast").iterdir():
        kept.write_bytes(b"{damaged")
    assert guarded.patchq("forecast", "--all", "--json").out == first
    assert contents(guarded.project) == before
    assert list((guarded.cache / "scratch").iterdir()) == []


def test_what_a_killed_step_left_a_day_ago_is_taken_away(guarded: World) -> None:
    scratch = guarded.cache / "scratch"
    for name, age in (("merge-old", 100_000), ("merge-new", 0)):
        (scratch / name).mkdir(parents=True)
        (scratch / name / "ours").write_bytes(b"")
        os.utime(scratch / name, (time.time() - age, time.time() - age))
    guarded.ok("forecast")
    assert [p.name for p in scratch.iterdir()] == ["merge-new"]


def test_a_changed_body_gets_a_new_cell(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    assert cell(guarded, PATCH, "v2")["verdict"] == "conflict"
    author = guarded.top / "author"
    guarded.git("reset", "-q", "--hard", "main~2", cwd=author)
    guarded.commit(author, "[Test] guard", {CORE: replaced(ENGINE, b"import math\n", b"import cmath\n")})
    guarded.commit(author, "[Test] apart", {"pkg/model.py": b"def first():\n    return 5\n"})
    assert guarded.patchq("refresh", str(author)).code == 0
    assert cell(guarded, PATCH, "v2")["verdict"] == "clean"


def rule(world: World, verdict: str = "reworked", because: str = "They clamp it in the scheduler.") -> None:
    result = world.patchq("verdict", "set", "1", verdict, "--base", "v2", "--because", because)
    assert result.code == 0, result.err


def test_a_ruling_wins_and_says_what_it_overrules(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    rule(guarded)
    found = cell(guarded, PATCH, "v2")
    assert found["verdict"] == "reworked"
    assert found["detail"] == "ruled by a person: They clamp it in the scheduler."
    assert found["disagreement"] == "by its text and tests it is conflict"
    assert found["ruling"]["holds"] is True
    rule(guarded, "landed", "On second thought.")
    kept = yaml.safe_load((guarded.project / "series" / PATCH / "rulings.yaml").read_text())
    assert [(r["base"], r["verdict"]) for r in kept["rulings"]] == [("v2", "landed")]


def test_a_ruling_expires_with_the_base(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    rule(guarded)
    lock = guarded.project / "upstream.lock"
    lock.write_text(re.sub(r"  v2:\n(    .*\n)+", "", lock.read_text()))
    release(guarded, "v2", {CORE: AGAINST, "README.md": b"moved on\n"})
    found = cell(guarded, PATCH, "v2")
    assert (found["verdict"], found["ruling"]["holds"]) == ("conflict", False)
    assert "has expired" in found["detail"]


def test_a_ruling_expires_with_the_patch(guarded: World) -> None:
    release(guarded, "v2", {CORE: AGAINST})
    rule(guarded)
    author = guarded.top / "author"
    guarded.git("reset", "-q", "--hard", "main~2", cwd=author)
    guarded.commit(author, "[Test] guard", {CORE: GUARDED}, body="Said better.")
    guarded.commit(author, "[Test] apart", {"pkg/model.py": b"def first():\n    return 5\n"})
    assert guarded.patchq("refresh", str(author)).code == 0
    assert cell(guarded, PATCH, "v2")["verdict"] == "conflict"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rulings:\n- base: v2\n  verdict: gone\n", "rulings.yaml:3: rulings.0.verdict"),
        (
            "rulings:\n- base: v2\n  verdict: landed\n",
            "rulings.yaml:2: the key 'rulings.0.because' is missing",
        ),
        ("more: 1\n", "rulings.yaml:1: unknown key 'more'"),
        ("rulings: 3\n", "rulings.yaml:1"),
    ],
)
def test_a_damaged_ruling_is_refused_at_its_line(guarded: World, text: str, says: str) -> None:
    (guarded.project / "series" / PATCH / "rulings.yaml").write_text(text)
    result = guarded.patchq("forecast")
    assert result.code == 2
    assert says in result.err


def test_a_ruling_needs_a_verdict_and_a_reason(guarded: World) -> None:
    assert guarded.patchq("verdict", "set", "1", "gone", "--base", "v1", "--because", "x").code == 2
    assert guarded.patchq("verdict", "set", "1", "landed", "--base", "v1", "--because", " ").code == 2
    assert not (guarded.project / "series" / PATCH / "rulings.yaml").exists()


def test_watching_a_base(guarded: World) -> None:
    release(guarded, "v2", {"README.md": b"later\n"})
    release(guarded, "v3", {CORE: AGAINST})
    assert guarded.ok("forecast", "--watch", "v2")["watch"] == {"ref": "v2", "against": "v1", "worse": []}
    result = guarded.patchq("forecast", "--watch", "v3", "--json")
    assert result.code == 1
    assert result.json["watch"] == {
        "ref": "v3",
        "against": "v2",
        "worse": [{"id": PATCH, "was": "clean", "now": "conflict"}],
    }
    assert guarded.patchq("forecast", "0002-apart", "--watch", "v3").code == 0
    release(guarded, "v4", {CORE: AGAINST, "README.md": b"no worse\n"})
    assert guarded.patchq("forecast", "--watch", "v4").code == 0
    assert guarded.patchq("forecast", "--watch", "v4", "--base", "v2").code == 1
    assert guarded.patchq("forecast", "--watch", "v1").code == 2


def test_watching_a_branch(guarded: World) -> None:
    clone = guarded.clone("theirs", SOURCES)
    assert guarded.patchq("upstream", "add", "main-1", "--clone", str(clone), "--rev", "main").code == 0
    guarded.commit(clone, "Tidy", {"README.md": b"tidy\n"})
    document = guarded.ok("forecast", "--watch", "main")
    assert document["watch"] == {"ref": "main", "against": "main-1", "worse": []}
    assert document["bases"] == ["main-1", "main"]
    guarded.commit(clone, "Break", {CORE: AGAINST})
    result = guarded.patchq("forecast", "--watch", "main", "--json")
    assert (result.code, result.json["watch"]["worse"][0]["id"]) == (1, PATCH)
    assert guarded.patchq("forecast", "--watch", "nowhere").code == 2


def test_watching_without_a_git_source(guarded: World) -> None:
    result = guarded.patchq("forecast", "--watch", "main")
    assert result.code == 2
    assert "no base has a git source" in result.err


def test_without_a_lane(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start(SOURCES)
    result = world.patchq("forecast", "--all")
    assert result.code == 2
    assert "no lane yet" in result.err
