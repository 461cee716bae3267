"""The series edited: each command recomputes every lane, refuses what would break a later patch, and writes all or nothing."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from patchq.series.series import load_series
from tests.support.world import UPSTREAM, edited, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import Result, World

ENGINE = "pkg/engine.py"


def files(world: World) -> dict[str, bytes]:
    """The project's files and their bytes."""
    return {
        p.relative_to(world.project).as_posix(): p.read_bytes()
        for p in world.project.rglob("*")
        if p.is_file()
    }


def trees(world: World, base: str = "v1") -> dict[str, str]:
    """The tree after each patch of a lane, by patch."""
    return {s.id: s.tree for s in load_series(world.project).lock.lanes[base]}


def ids(world: World) -> list[str]:
    return [p.id for p in load_series(world.project).patches]


def meta(world: World, patch: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((world.project / "series" / patch / "patch.yaml").read_text())
    return found


def holds(world: World) -> None:
    """Plain `git am` of the lane gives the locked tree, and patchq agrees with its own lock."""
    number = len(list(world.top.glob("judge*")))
    clone = world.clone(f"judge{number}")
    bodies = sorted((world.project / "series").glob("*/v1.patch"))
    world.git("am", "-q", "--keep-non-patch", "--keep-cr", *map(str, bodies), cwd=clone)
    assert world.git("rev-parse", "HEAD^{tree}", cwd=clone) == list(trees(world).values())[-1]
    assert world.ok("status")["patches"]


def refused(world: World, *args: str, says: tuple[str, ...], code: int = 1) -> Result:
    before = files(world)
    result = world.patchq(*args)
    assert result.code == code, (result.out, result.err)
    for word in says:
        assert word in result.err
    assert "patchq itself failed" not in result.err
    assert files(world) == before
    return result


def test_a_day_of_edits(stacked: World) -> None:
    top = list(trees(stacked).values())[-1]
    before = files(stacked)

    moved = stacked.ok("move", "3", "--before", "2")
    assert [p["id"] for p in moved["patches"]] == ["0001-first", "0002-third", "0003-second"]
    assert [p["was"] for p in moved["patches"]] == [None, "0003-third", "0002-second"]
    assert moved["lanes"] == [{"base": "v1", "tree": top, "patches": 3, "untouched": False}]
    body = (stacked.project / "series/0002-third/v1.patch").read_bytes()
    assert body == before["series/0003-third/v1.patch"]
    holds(stacked)

    split = stacked.ok("split", "third", "--files", "pkg/*.py", "--name", "text")
    assert [p["id"] for p in split["patches"]] == ["0001-first", "0002-third", "0003-text", "0004-second"]
    assert [p["new"] for p in split["patches"]] == [False, False, True, False]
    assert trees(stacked)["0004-second"] == top
    assert meta(stacked, "0003-text")["depends"] == ["0002-third"]
    holds(stacked)

    renamed = stacked.ok("rename", "text", "crlf", "--title", "[Test] Shout three")
    assert renamed["patches"][2] == {
        "id": "0003-crlf",
        "title": "[Test] Shout three",
        "was": "0003-text",
        "new": False,
        "unfilled": [],
    }
    assert b"Subject: [Test] Shout three\n" in (stacked.project / "series/0003-crlf/v1.patch").read_bytes()
    holds(stacked)

    folded = stacked.ok("fold", "crlf", "--into", "third")
    assert [p["id"] for p in folded["patches"]] == ["0001-first", "0002-third", "0004-second"]
    assert (stacked.project / "series/0002-third/v1.patch").read_bytes() == body
    assert trees(stacked)["0004-second"] == top
    holds(stacked)

    dropped = stacked.ok("drop", "first")
    assert [p["id"] for p in dropped["patches"]] == ["0002-third", "0004-second"]
    assert not (stacked.project / "series/0001-first").exists()
    holds(stacked)

    for _ in range(5):
        stacked.ok("undo")
    assert files(stacked) == before


def test_a_dry_run_writes_nothing(stacked: World) -> None:
    before = files(stacked)
    entries = stacked.ok("log")["entries"]
    document = stacked.ok("drop", "3", "--dry-run")
    assert (document["entry"], document["changed"], bool(document["files"])) == (None, False, True)
    assert files(stacked) == before
    assert stacked.ok("log")["entries"] == entries


def test_moving_to_where_it_is_changes_no_byte(stacked: World) -> None:
    before = files(stacked)
    times = {p: p.stat().st_mtime_ns for p in stacked.project.rglob("*")}
    document = stacked.ok("move", "2", "--after", "1")
    assert (document["changed"], document["files"], document["entry"]) == (False, [], None)
    assert files(stacked) == before
    assert {p: p.stat().st_mtime_ns for p in stacked.project.rglob("*")} == times


def overlapping(world: World) -> None:
    """Two patches on one line, and one that is apart."""
    first = edited(ENGINE, 10, b"ten\n")
    second = edited(ENGINE, 10, b"ten and more\n", {ENGINE: first})
    world.series(
        ("0001-ten", {ENGINE: first}), ("0002-more", {ENGINE: second}), ("0003-apart", {"x.py": b"x\n"})
    )


def test_what_would_break_a_later_patch_is_refused(world: World) -> None:
    overlapping(world)
    says = ("would break 0002-more on v1", "series/0002-more/v1.patch", "pkg/engine.py", "hunk 1")
    refused(world, "drop", "1", says=("dropping 0001-ten", *says))
    refused(world, "move", "2", "--before", "1", says=("moving 0002-more", *says))
    refused(world, "move", "1", "--after", "3", says=("moving 0001-ten", *says))
    refused(world, "fold", "1", "--into", "3", says=("folding 0001-ten into 0003-apart", *says))
    world.ok("fold", "1", "--into", "2")
    assert ids(world) == ["0002-more", "0003-apart"]
    holds(world)


def test_declared_needs_are_kept(stacked: World) -> None:
    stacked.describe("0002-second", depends=["0001-first"], because={"0001-first": "It says so."})
    refused(stacked, "drop", "1", says=("0002-second depends on 0001-first",))
    refused(stacked, "move", "2", "--before", "1", says=("0002-second depends on 0001-first",))
    stacked.ok("rename", "1", "premier")
    assert meta(stacked, "0002-second")["depends"] == ["0001-premier"]
    assert meta(stacked, "0002-second")["because"] == {"0001-premier": "It says so."}
    stacked.ok("move", "3", "--before", "1")
    assert meta(stacked, "0003-second")["depends"] == ["0002-premier"]


def test_references_follow_and_prose_is_named(stacked: World) -> None:
    path = stacked.project / "series/0001-first/patch.yaml"
    path.write_text(path.read_text() + "# kept as it is\nlimits:\n  - See 0003-third for the rest.\n")
    evidence = (
        b'{"id": "0003-third", "base": "v1", "tree": "t", "gate": "cpu", "command": "test 0003-third"}\n'
    )
    (stacked.project / "series/0003-third/evidence.jsonl").write_bytes(evidence)
    (stacked.project / "series/0003-third/notes").mkdir()
    (stacked.project / "series/0003-third/notes/why.md").write_bytes(b"mine\n")
    document = stacked.ok("rename", "3", "last")
    line = path.read_text().split("\n").index("  - See 0003-third for the rest.") + 1
    assert document["notes"] == [f"series/0001-first/patch.yaml:{line} names 0003-third in its text"]
    moved = (stacked.project / "series/0003-last/evidence.jsonl").read_bytes()
    assert moved == evidence.replace(b'"id": "0003-third"', b'"id": "0003-last"')
    assert (stacked.project / "series/0003-last/notes/why.md").read_bytes() == b"mine\n"
    assert not (stacked.project / "series/0003-third").exists()
    assert "# kept as it is" in path.read_text()
    assert stacked.ok("evidence", "list")["results"][0]["id"] == "0003-last"


def test_every_lane_is_handled(stacked: World) -> None:
    later = {**UPSTREAM, ENGINE: b"a new first line\n" + UPSTREAM[ENGINE]}
    stacked.write_upstream(later, at=stacked.top / "later")
    stacked.ok("upstream", "add", "v2", "--directory", str(stacked.top / "later"))
    stacked.ok("rebase", "--onto", "v2")
    document = stacked.ok("move", "3", "--before", "1")
    assert [(lane["base"], lane["untouched"]) for lane in document["lanes"]] == [("v1", False), ("v2", False)]
    assert list(trees(stacked, "v2")) == ["0001-third", "0002-first", "0003-second"]
    stacked.ok("split", "third", "--files", "pkg/added.bin", "--name", "blob")
    assert len(trees(stacked, "v2")) == len(trees(stacked)) == 4
    stacked.ok("drop", "blob")
    clone = stacked.clone()
    stacked.commit(clone, "[Test] fourth", {"pkg/fourth.py": b"4\n"})
    document = stacked.ok("import", "HEAD", "--repo", str(clone))
    assert [lane["untouched"] for lane in document["lanes"]] == [False, True]
    assert "the lanes of v2 do not have it yet: patchq rebase --onto BASE" in document["notes"]
    document = stacked.ok("drop", "fourth")
    assert [lane["untouched"] for lane in document["lanes"]] == [False, True]


def test_folding_joins_what_the_two_need_and_are_tested_by(stacked: World) -> None:
    stacked.describe("0002-second", depends=["0001-first"], neighbours=["tests/a.py"])
    stacked.describe(
        "0003-third", depends=["0002-second"], tests=[{"gate": "cpu", "run": ["tests/test_third.py"]}]
    )
    document = stacked.ok("fold", "2", "--into", "1")
    assert [p["id"] for p in document["patches"]] == ["0001-first", "0003-third"]
    assert meta(stacked, "0001-first")["neighbours"] == ["tests/a.py"]
    assert meta(stacked, "0001-first")["depends"] == []
    assert meta(stacked, "0003-third")["depends"] == ["0001-first"]
    stacked.ok("fold", "3", "--into", "1")
    assert meta(stacked, "0001-first")["tests"] == [
        {"gate": "cpu", "run": ["tests/test_it.py", "tests/test_third.py"]}
    ]
    holds(stacked)


def test_splitting_by_hunks(world: World) -> None:
    both = edited(ENGINE, 40, b"forty\n", {ENGINE: edited(ENGINE, 10, b"ten\n")})
    world.series(("0001-both", {ENGINE: both, "x.py": b"x\n"}), ("0005-after", {"y.py": b"y\n"}))
    body = (world.project / "series/0005-after/v1.patch").read_bytes()
    top = trees(world)["0005-after"]
    world.ok("split", "1", "--hunks", f"{ENGINE}:2", "--name", "forty")
    assert ids(world) == ["0001-both", "0002-forty", "0005-after"]
    assert trees(world)["0005-after"] == top
    second = (world.project / "series/0002-forty/v1.patch").read_bytes()
    assert (b"+forty" in second, b"+ten" in second, b"x.py" in second) == (True, False, False)
    assert (world.project / "series/0005-after/v1.patch").read_bytes() == body
    holds(world)


def test_splitting_gives_the_new_patch_its_tests(world: World) -> None:
    world.series(("0001-both", {"pkg/x.py": b"x\n", "tests/test_x.py": b"def test(): pass\n"}))
    world.describe(
        "0001-both", tests=[{"gate": "cpu", "run": ["tests/test_x.py::test", "tests/test_old.py"]}]
    )
    world.ok("split", "1", "--files", "tests/*", "--name", "tests")
    assert meta(world, "0002-tests")["tests"] == [{"gate": "cpu", "run": ["tests/test_x.py::test"]}]
    assert meta(world, "0001-both")["tests"] == [{"gate": "cpu", "run": ["tests/test_old.py"]}]


@pytest.mark.parametrize(
    ("args", "says", "code"),
    [
        (("--files", "nothing*"), ("changes nothing at nothing*",), 2),
        (("--files", "*"), ("would leave nothing of it",), 1),
        (("--hunks", "pkg/engine.py:7"), ("changes nothing at pkg/engine.py:7",), 2),
        (("--hunks", "pkg/engine.py"), ("does not name hunks",), 2),
        ((), ("nothing is chosen",), 2),
        (("--files", "pkg/dos.py", "--title", "no tags"), ("does not begin with upstream's tags",), 2),
    ],
)
def test_wrong_choices_for_a_split(
    stacked: World, args: tuple[str, ...], says: tuple[str, ...], code: int
) -> None:
    refused(stacked, "split", "3", "--name", "x", *args, says=says, code=code)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("rename", "1", "Upper"), ("is not a name for a patch",)),
        (("rename", "1", "0007-x"), ("another number",)),
        (("rename", "1", "../x"), ("is not a name for a patch",)),
        (("rename", "9", "x"), ("no patch is called '9'",)),
        (("new", "-x"), ()),
        (("new", "first"), ("has the number or the name of 0001-first",)),
        (("new", "0002-x"), ("has the number or the name of 0002-second",)),
        (("new", "x", "--title", "[Test] first"), ("0001-first has the title",)),
        (("move", "1"), ("name one of --before ID and --after ID",)),
        (("move", "1", "--before", "1"), ("cannot be moved next to itself",)),
        (("fold", "1", "--into", "1"), ("cannot be folded into itself",)),
    ],
)
def test_wrong_words(stacked: World, args: tuple[str, ...], says: tuple[str, ...]) -> None:
    refused(stacked, *args, says=says, code=2)


def test_a_new_patch_says_what_is_to_be_filled_in(stacked: World) -> None:
    document = stacked.ok("new", "rope-bound")
    (made,) = [p for p in document["patches"] if p["new"]]
    assert made["id"] == "0004-rope-bound"
    assert made["unfilled"] == ["title", "why", "changes", "drop_when", "tests"]
    assert stacked.ok("status")["patches"][3]["id"] == "0004-rope-bound"
    clone = stacked.top / "made"
    stacked.ok("apply", "--create", str(clone))
    (clone / "rope.py").write_bytes(b"bound\n")
    stacked.git("add", "rope.py", cwd=clone)
    stacked.git("config", "user.name", "A U Thor", cwd=clone)
    stacked.git("config", "user.email", "author@example.com", cwd=clone)
    done = stacked.ok("refresh", str(clone), "--into", "rope-bound")
    assert done["written"] == ["0004-rope-bound"]
    assert stacked.git("status", "--porcelain", cwd=clone) == ""
    assert stacked.git("log", "-1", "--format=%an %s", cwd=clone) == "A U Thor [FILL IN] Rope bound"
    assert stacked.ok("verify", str(clone))["ok"]
    holds(stacked)


def test_two_at_once(stacked: World) -> None:
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
import sys
from pathlib import Path
from patchq.engine.project import changing
with changing(Path({str(stacked.project)!r}), 'moving a patch'):
    print('held', flush=True)
    sys.stdin.read()
""",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        said = f"process {holder.pid}, moving a patch in {stacked.project}, since 20"
        for args in (
            ("drop", "3"),
            ("undo",),
            ("upstream", "add", "v9", "--directory", str(stacked.upstream)),
        ):
            refused(stacked, *args, says=(said,), code=3)
        stacked.ok("status")
    finally:
        holder.kill()
        holder.communicate()
    stacked.ok("drop", "3")


def test_reading_a_checkout_is_no_change(stacked: World, tmp_path: Path) -> None:
    made = tmp_path / "made"
    stacked.ok("apply", "--create", str(made))
    before = snapshot(made)
    stacked.ok("move", "3", "--before", "1")
    assert snapshot(made) == before
