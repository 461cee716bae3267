"""Carrying a series to another base: what moves, what leaves, what stops, and what is never touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from patchq.series.series import load_series
from tests.support.upstreams import ENGINE, GUARD, SOURCES, lane_tree, release, replaced, tree_id
from tests.support.world import World, contents, snapshot

CORE = "pkg/core.py"
HEAD = b"    def start(self, size):\n"
STOP = b"    def stop(self, size):\n"
GUARDED = replaced(ENGINE, HEAD, HEAD + GUARD)
BOTH = replaced(GUARDED, b"    rest = value - 1\n", b"    rest = value - 2\n")
MODEL = b"def first():\n    return 5\n"
TESTS = b"def test_it():\n    pass\n"
IDS = ["0001-guard", "0002-tail", "0003-apart"]
AUTHORS = ("Ann A <ann@example.com>", "2026-03-04T05:06:07+0200")


@pytest.fixture
def three(tmp_path: Path) -> World:
    """Three patches: a guard and a number in one module, and another file."""
    world = World(tmp_path)
    world.start(SOURCES)
    world.series(
        ("0001-guard", {CORE: GUARDED}),
        ("0002-tail", {CORE: BOTH}),
        ("0003-apart", {"pkg/model.py": MODEL, "tests/test_it.py": TESTS}),
        files=SOURCES,
    )
    return world


def verdicts(document: Any) -> dict[str, str]:
    return {p["id"]: p["verdict"] for p in document["patches"]}


def old_lane(world: World) -> dict[str, bytes]:
    return {p.as_posix(): p.read_bytes() for p in world.project.glob("series/*/v1.patch")}


def test_what_goes_moves_by_itself(three: World) -> None:
    before = old_lane(three)
    clone = three.clone("mine")
    seen = snapshot(clone)
    later = b"import os\n" + replaced(ENGINE, b"class Engine:\n", b"class Engine(Base):\n")
    files = release(three, "v2", {CORE: later})
    document = three.ok("rebase", "--onto", "v2")
    assert verdicts(document) == dict(zip(IDS, ["merged", "offset", "clean"], strict=True))
    assert document["base"] == "v2"
    assert document["pending"] is None
    assert all(p["carried"] and p["reason"] for p in document["patches"])
    expected = replaced(later, HEAD, HEAD + GUARD)
    expected = replaced(expected, b"    rest = value - 1\n", b"    rest = value - 2\n")
    tree = tree_id(three, {**files, CORE: expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert document["tree"] == lane_tree(three, "v2") == tree
    assert old_lane(three) == before
    assert snapshot(clone) == seen
    made = three.top / "made"
    assert three.ok("apply", "--create", str(made), "--base", "v2")["tree"] == tree


def test_authors_dates_order_and_titles_survive(three: World) -> None:
    author = three.top / "author"
    three.git("reset", "-q", "--hard", "main~3", cwd=author)
    for patch, (path, data) in zip(
        IDS, [(CORE, GUARDED), (CORE, BOTH), ("pkg/model.py", MODEL)], strict=True
    ):
        (author / path).write_bytes(data)
        three.git("add", "-A", cwd=author)
        env = {"GIT_AUTHOR_NAME": "Änn", "GIT_AUTHOR_EMAIL": f"{patch}@b.c", "GIT_AUTHOR_DATE": AUTHORS[1]}
        three.git("commit", "-q", "-m", f"[Test] {patch[5:]}", "-m", "Why: it is so.", cwd=author, **env)
    assert three.patchq("refresh", str(author)).code == 0
    release(three, "v2", {CORE: b"import os\n" + ENGINE})
    three.ok("rebase", "--onto", "v2")
    made = three.top / "made"
    three.ok("apply", "--create", str(made), "--base", "v2")
    said = three.git("log", "--reverse", "--format=%an <%ae> %aI %s %b", "v2..", cwd=made).split("\n")
    assert [line for line in said if line] == [
        f"Änn <{p}@b.c> 2026-03-04T05:06:07+02:00 [Test] {p[5:]} Why: it is so." for p in IDS
    ]


def test_landed_and_reworked_leave_with_a_record(three: World) -> None:
    release(three, "v2", {CORE: BOTH})
    files = release(three, "v3", {CORE: replaced(BOTH, GUARD, b"        size = max(size, 0)\n")})
    document = three.ok("rebase", "--onto", "v3")
    assert verdicts(document) == {"0001-guard": "reworked", "0002-tail": "landed", "0003-apart": "clean"}
    assert [p["carried"] for p in document["patches"]] == [False, False, True]
    tree = tree_id(three, {**files, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v3") == tree
    record = yaml.safe_load((three.project / "series/0001-guard/moves.yaml").read_text())["moves"][0]
    assert (record["base"], record["carried"], record["verdict"]) == ("v3", False, "reworked")
    assert "v2" in record["reason"]
    assert not (three.project / "series/0001-guard/v3.patch").exists()
    assert verdicts(three.ok("status", "--base", "v3")) == verdicts(document)
    made = three.top / "made"
    three.ok("apply", "--create", str(made), "--base", "v3")
    assert three.ok("refresh", str(made), "--base", "v3")["written"] == []


def test_landed_then_reverted_is_applied_again(three: World) -> None:
    release(three, "v2", {CORE: BOTH})
    files = release(three, "v3", {"README.md": b"reverted\n"})
    document = three.ok("rebase", "--onto", "v3")
    assert verdicts(document)["0001-guard"] == "reverted"
    tree = tree_id(three, {**files, CORE: BOTH, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v3") == tree


def test_half_landed_keeps_what_is_left(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.start(SOURCES)
    world.series(("0001-both", {CORE: BOTH}), files=SOURCES)
    files = release(world, "v2", {CORE: GUARDED})
    document = world.ok("rebase", "--onto", "v2")
    assert verdicts(document) == {"0001-both": "partial"}
    assert document["patches"][0]["difference"]["content"] == [CORE]
    assert lane_tree(world, "v2") == tree_id(world, {**files, CORE: BOTH})
    assert GUARD.splitlines()[0] not in (world.project / "series/0001-both/v2.patch").read_bytes().replace(
        b" " + GUARD.splitlines()[0], b""
    )


def test_a_guard_that_landed_a_few_lines_away_is_not_put_twice(three: World) -> None:
    line = b"        count = size * 2\n"
    moved = replaced(ENGINE, line, line + b"        self.count = count\n" + GUARD)
    files = release(three, "v2", {CORE: moved})
    document = three.ok("rebase", "--onto", "v2")
    assert verdicts(document)["0001-guard"] == "landed"
    expected = replaced(moved, b"    rest = value - 1\n", b"    rest = value - 2\n")
    tree = tree_id(three, {**files, CORE: expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v2") == tree


def test_renames_are_followed_into_the_lane(three: World) -> None:
    files = release(three, "v2", {CORE: None, "pkg/deep/kernel.py": ENGINE})
    document = three.ok("rebase", "--onto", "v2")
    assert document["patches"][0]["difference"]["moved"] == [[CORE, "pkg/deep/kernel.py"]]
    expected = {**files, "pkg/deep/kernel.py": BOTH, "pkg/model.py": MODEL, "tests/test_it.py": TESTS}
    assert lane_tree(three, "v2") == tree_id(three, expected)


def conflicting(world: World, base: str = "v2") -> dict[str, bytes]:
    """A base on which the second patch conflicts."""
    later = replaced(ENGINE, b"    rest = value - 1\n", b"    rest = value - 7\n")
    return release(world, base, {CORE: later})


def stop(world: World, base: str = "v2") -> Path:
    """Begin a rebase that stops at the second patch; gives its work tree."""
    result = world.patchq("rebase", "--onto", base, "--json")
    assert result.code == 1, result.err
    document = result.json
    assert verdicts(document) == {"0001-guard": "clean"}
    pending = document["pending"]
    assert (pending["id"], pending["verdict"]) == ("0002-tail", "conflict")
    assert document["waiting"] == ["0003-apart"]
    assert pending["files"][0]["file"] == CORE
    return Path(pending["work"])


def resolve(work: Path, text: bytes = b"    rest = value - 9\n") -> None:
    data = (work / CORE).read_bytes()
    start, end = data.index(b"<<<<<<<"), data.index(b"\n", data.index(b">>>>>>>")) + 1
    (work / CORE).write_bytes(data[:start] + text + data[end:])


def whole(world: World) -> dict[str, bytes]:
    return contents(world.project)


def test_a_conflict_stops_with_a_work_tree_and_names_the_sides(three: World) -> None:
    clone = three.clone("mine")
    seen = snapshot(clone)
    conflicting(three)
    before = whole(three)
    work = stop(three)
    assert three.cache in work.parents
    assert whole(three) == before
    assert snapshot(clone) == seen
    sides = [three.git("show", f":{n}:{CORE}", cwd=work) for n in (1, 2, 3)]
    assert ["value - 1\n    return rest" in s for s in sides] == [True, False, False]
    assert ["value - 7" in s for s in sides] == [False, True, False]
    assert ["value - 2" in s for s in sides] == [False, False, True]
    assert three.git("log", "--format=%s", "-2", cwd=work).split("\n")[0] == "[Test] guard"
    assert b"<<<<<<< upstream" in (work / CORE).read_bytes()
    document = three.ok("rebase", "--status")
    assert document["pending"]["id"] == "0002-tail"


def test_continue_carries_the_resolution(three: World) -> None:
    files = conflicting(three)
    work = stop(three)
    refused = three.patchq("rebase", "--continue")
    assert refused.code == 1
    assert f"{CORE}:" in refused.err
    resolve(work)
    document = three.ok("rebase", "--continue")
    assert verdicts(document) == dict(zip(IDS, ["clean", "conflict", "clean"], strict=True))
    assert "resolved by a person" in document["patches"][1]["reason"]
    assert document["patches"][1]["difference"]["content"] == [CORE]
    expected = replaced(files[CORE], HEAD, HEAD + GUARD).replace(b"value - 7", b"value - 9")
    tree = tree_id(three, {**files, CORE: expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert document["tree"] == lane_tree(three, "v2") == tree
    assert not work.exists()
    assert three.ok("rebase", "--status")["base"] is None


def test_a_resolution_is_used_again_on_the_next_base(three: World) -> None:
    conflicting(three)
    resolve(stop(three))
    three.ok("rebase", "--continue")
    kept = yaml.safe_load((three.project / "series/0002-tail/resolutions.yaml").read_text())
    assert kept["resolutions"][0]["resolved"] == "    rest = value - 9\n"
    for number in IDS:
        (three.project / f"series/{number}/v2.patch").unlink()
        (three.project / f"series/{number}/moves.yaml").unlink()
    lock = three.project / "upstream.lock"
    text = lock.read_text()
    lock.write_text(text[: text.index("  v2:\n  - id")])
    later = replaced(ENGINE, b"    rest = value - 1\n", b"    rest = value - 7\n")
    files = release(three, "v3", {CORE: b"import os\n" + later})
    document = three.ok("rebase", "--onto", "v3")
    assert document["patches"][1]["verdict"] == "merged"
    assert "resolved as before" in document["patches"][1]["reason"]
    expected = replaced(files[CORE], HEAD, HEAD + GUARD).replace(b"value - 7", b"value - 9")
    tree = tree_id(three, {**files, CORE: expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v3") == tree


def test_skip_leaves_it_out(three: World) -> None:
    files = conflicting(three)
    stop(three)
    document = three.ok("rebase", "--skip")
    assert [p["carried"] for p in document["patches"]] == [True, False, True]
    assert "skipped by a person" in document["patches"][1]["reason"]
    expected = {**files, CORE: replaced(files[CORE], HEAD, HEAD + GUARD)}
    tree = tree_id(three, {**expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v2") == tree
    assert three.patchq("rebase", "--skip").code == 2


def test_a_skip_holds_until_the_patch_changes_or_a_person_wants_to_be_asked(three: World) -> None:
    conflicting(three)
    stop(three)
    skipped = three.ok("rebase", "--skip")
    before = snapshot(three.project)
    again = three.ok("rebase", "--onto", "v2")
    assert again == skipped
    assert snapshot(three.project) == before
    assert "patchq rebase --onto v2 --again 0002-tail" in again["patches"][1]["reason"]
    asked = three.patchq("rebase", "--onto", "v2", "--again", "2", "--json")
    assert (asked.code, asked.json["pending"]["id"]) == (1, "0002-tail")
    assert three.ok("rebase", "--status")["pending"]["id"] == "0002-tail"
    resolve(Path(asked.json["pending"]["work"]))
    assert [p["carried"] for p in three.ok("rebase", "--continue")["patches"]] == [True, True, True]
    assert "skipped" not in (three.project / "series/0002-tail/moves.yaml").read_text()
    assert three.patchq("rebase", "--status", "--again", "2").code == 2


def test_a_skipped_patch_that_changed_is_asked_about_again(three: World) -> None:
    conflicting(three)
    stop(three)
    three.ok("rebase", "--skip")
    author = three.top / "author"
    three.git("reset", "-q", "--hard", "HEAD~2", cwd=author)
    three.commit(author, "[Test] tail", {CORE: BOTH.replace(b"value - 2", b"value - 3")})
    three.commit(author, "[Test] apart", {"pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert three.patchq("refresh", str(author)).code == 0
    result = three.patchq("rebase", "--onto", "v2", "--json")
    assert (result.code, result.json["pending"]["id"]) == (1, "0002-tail")


def test_the_author_survives_a_conflict(three: World) -> None:
    author = three.top / "author"
    three.git("reset", "-q", "--hard", "HEAD~2", cwd=author)
    (author / CORE).write_bytes(BOTH)
    env = {"GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@b.c", "GIT_AUTHOR_DATE": AUTHORS[1]}
    three.git("commit", "-qam", "[Test] tail", "-m", "Why: it is so.", cwd=author, **env)
    three.commit(author, "[Test] apart", {"pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert three.patchq("refresh", str(author)).code == 0
    conflicting(three)
    resolve(stop(three))
    three.ok("rebase", "--continue")
    made = three.top / "made"
    three.ok("apply", "--create", str(made), "--base", "v2")
    said = three.git("log", "-1", "--format=%an <%ae> %aI %s %b", "HEAD~1", cwd=made)
    assert said.strip() == "Ann <ann@b.c> 2026-03-04T05:06:07+02:00 [Test] tail Why: it is so."


def test_abort_leaves_everything_as_it_was(three: World) -> None:
    conflicting(three)
    before = whole(three)
    work = stop(three)
    three.ok("rebase", "--abort")
    assert whole(three) == before
    assert not work.exists()
    assert three.ok("rebase", "--status")["base"] is None
    assert three.patchq("rebase", "--abort").code == 2


def test_edits_survive_another_look(three: World) -> None:
    conflicting(three)
    work = stop(three)
    resolve(work, b"    rest = value - 8\n")
    assert stop(three) == work
    assert b"value - 8" in (work / CORE).read_bytes()
    release(three, "v3")
    other = three.patchq("rebase", "--onto", "v3")
    assert other.code == 1
    assert "a rebase onto v2 is under way" in other.err


def test_missing_file_is_resolved_with_git(three: World) -> None:
    files = release(three, "v2", {"pkg/model.py": None})
    result = three.patchq("rebase", "--onto", "v2", "--json")
    assert (result.code, result.json["pending"]["verdict"]) == (1, "missing")
    work = Path(result.json["pending"]["work"])
    refused = three.patchq("rebase", "--continue")
    assert refused.code == 1
    assert "pkg/model.py" in refused.err
    (work / "pkg/other.py").write_bytes(MODEL)
    three.git("rm", "-q", "--cached", "pkg/model.py", cwd=work)
    three.ok("rebase", "--continue")
    expected = {**files, CORE: BOTH, "pkg/other.py": MODEL, "tests/test_it.py": TESTS}
    assert lane_tree(three, "v2") == tree_id(three, expected)


def test_a_resolution_that_leaves_nothing_leaves_the_lane(three: World) -> None:
    files = conflicting(three)
    resolve(stop(three), b"    rest = value - 7\n")
    document = three.ok("rebase", "--continue")
    assert [p["carried"] for p in document["patches"]] == [True, False, True]
    expected = {**files, CORE: replaced(files[CORE], HEAD, HEAD + GUARD)}
    tree = tree_id(three, {**expected, "pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert lane_tree(three, "v2") == tree


def test_a_ruling_takes_a_patch_out(three: World) -> None:
    conflicting(three)
    why = ["--because", "Upstream computes it elsewhere."]
    assert three.patchq("verdict", "set", "2", "reworked", "--base", "v2", *why).code == 0
    document = three.ok("rebase", "--onto", "v2")
    assert document["patches"][1]["reason"] == "ruled by a person: Upstream computes it elsewhere."
    assert [p["carried"] for p in document["patches"]] == [True, False, True]


def test_again_writes_nothing(three: World) -> None:
    conflicting(three)
    resolve(stop(three))
    first = three.ok("rebase", "--continue")
    before = snapshot(three.project)
    again = three.ok("rebase", "--onto", "v2")
    assert snapshot(three.project)["files"] == before["files"]
    assert again["tree"] == first["tree"]
    assert verdicts(again) == verdicts(first)


def test_a_new_patch_joins_a_lane_that_is_there(three: World) -> None:
    conflicting(three)
    resolve(stop(three))
    three.ok("rebase", "--continue")
    author = three.top / "author"
    three.describe("0004-more")
    three.commit(author, "[Test] more", {"pkg/more.py": b"more = 1\n"})
    assert three.patchq("refresh", str(author)).code == 0
    document = three.ok("rebase", "--onto", "v2")
    assert verdicts(document)["0004-more"] == "clean"
    assert [s.id for s in load_series(three.project).lock.lanes["v2"]] == [*IDS, "0004-more"]


def test_content_context_and_position_are_told_apart(three: World) -> None:
    later = b"import os\n" + replaced(ENGINE, b"        return count\n", b"        return +count\n")
    release(three, "v2", {CORE: later})
    document = three.ok("rebase", "--onto", "v2")
    guard, tail, apart = (p["difference"] for p in document["patches"])
    assert (guard["content"], guard["context"]) == ([], [CORE])
    assert (tail["context"], tail["position"]) == ([], [CORE])
    assert not any(apart[k] for k in ("content", "context", "position", "dropped", "added", "moved"))
    assert not guard["message"]


def test_usage(three: World) -> None:
    assert three.patchq("rebase").code == 2
    assert three.patchq("rebase", "--continue", "--skip").code == 2
    assert three.patchq("rebase", "--continue").code == 2
    assert three.patchq("rebase", "--onto", "v9").code == 2


def changed_tail(three: World) -> None:
    """The second patch's own body says something else than when it was ported."""
    author = three.top / "author"
    three.git("reset", "-q", "--hard", "HEAD~2", cwd=author)
    three.commit(author, "[Test] tail", {CORE: BOTH.replace(b"value - 2", b"value - 3")})
    three.commit(author, "[Test] apart", {"pkg/model.py": MODEL, "tests/test_it.py": TESTS})
    assert three.patchq("refresh", str(author)).code == 0


def test_a_port_by_hand_is_not_written_over_when_its_original_changes(three: World) -> None:
    conflicting(three)
    resolve(stop(three))
    three.ok("rebase", "--continue")
    port = three.project / "series/0002-tail/v2.patch"
    ported, tree = port.read_bytes(), lane_tree(three, "v2")
    changed_tail(three)
    for _ in range(2):
        document = three.ok("rebase", "--onto", "v2")
        assert (port.read_bytes(), document["tree"]) == (ported, tree)
        reason = document["patches"][1]["reason"]
        assert (
            reason.count("the port was kept; to carry it anew: patchq rebase --onto v2 --again 0002-tail")
            == 1
        )
    asked = three.patchq("rebase", "--onto", "v2", "--again", "2", "--json")
    assert (asked.code, asked.json["pending"]["id"]) == (1, "0002-tail")


def test_what_patchq_carried_follows_its_original(three: World) -> None:
    release(three, "v2", {CORE: b"import os\n" + ENGINE})
    three.ok("rebase", "--onto", "v2")
    changed_tail(three)
    three.ok("rebase", "--onto", "v2")
    assert b"value - 3" in (three.project / "series/0002-tail/v2.patch").read_bytes()


def test_a_ruling_against_a_text_that_goes_on_stops_it(three: World) -> None:
    """A person says that the merged text is wrong: it is not taken, and a port that is there stays."""
    release(three, "v2", {CORE: b"import os\n" + ENGINE})
    why = ["--because", "It means another thing there."]
    assert three.patchq("verdict", "set", "2", "conflict", "--base", "v2", *why).code == 0
    before = whole(three)
    refused = three.patchq("rebase", "--onto", "v2")
    assert (refused.code, whole(three)) == (1, before)
    assert "0002-tail is ruled conflict on v2, and its text goes on there all the same" in refused.err
    assert "patchq refresh CHECKOUT --base v2" in refused.err
