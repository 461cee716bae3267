"""Fixing a patch by editing a checkout: the change goes to the patch that owns the lines, or the candidates are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.scenarios.test_editing import ENGINE, files, holds, ids, refused, trees
from tests.support.world import contents, edited, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.world import World


@pytest.fixture
def made(stacked: World) -> Path:
    path = stacked.top / "made"
    stacked.ok("apply", "--create", str(path))
    return path


def change(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert data.count(old) == 1
    path.write_bytes(data.replace(old, new))


def body(world: World, patch: str) -> bytes:
    return (world.project / "series" / patch / "v1.patch").read_bytes()


def test_uncommitted_edits_go_to_the_owners_of_the_lines(stacked: World, made: Path) -> None:
    before = files(stacked)
    change(made / ENGINE, b"line 10, patched\n", b"line 10, patched twice\n")
    change(made / ENGINE, b"line 40, patched\n", b"line 40, patched\nand one more\n")
    change(made / "pkg/dos.py", b"THREE", b"DREI")
    wanted = contents(made)
    document = stacked.ok("refresh", str(made))
    assert document["written"] == ["0001-first", "0002-second", "0003-third"]
    assert document["folded"] == ["what is not committed"]
    assert b"+line 10, patched twice" in body(stacked, "0001-first")
    assert b"+and one more" in body(stacked, "0002-second")
    assert b"+DREI" in body(stacked, "0003-third")
    assert contents(made) == wanted
    assert stacked.git("status", "--porcelain", cwd=made) == ""
    assert stacked.git("log", "--format=%s", "v1..", cwd=made) == "[Test] third\n[Test] second\n[Test] first"
    assert stacked.ok("verify", str(made))["ok"]
    assert stacked.ok("apply", str(made))["changed"] is False
    holds(stacked)
    stacked.ok("undo")
    assert files(stacked) == before
    assert contents(made) == wanted
    assert stacked.git("status", "--porcelain", cwd=made).split("\n") == ["M pkg/dos.py", " M pkg/engine.py"]
    stacked.git("checkout", "-q", "--", ".", cwd=made)
    assert stacked.ok("verify", str(made))["ok"]


def test_a_change_shows_as_content_and_leaves_the_bodies_of_others(stacked: World, made: Path) -> None:
    before = files(stacked)
    change(made / ENGINE, b"line 10, patched\n", b"line 10, patched\n" + b"more\n" * 9)
    assert stacked.ok("refresh", str(made))["written"] == ["0001-first"]
    after = files(stacked)
    assert {n for n in after if after[n] != before[n]} == {"series/0001-first/v1.patch", "upstream.lock"}
    assert trees(stacked)["0003-third"] == stacked.git("rev-parse", "HEAD^{tree}", cwd=made)
    assert stacked.ok("verify", str(made))["ok"]
    holds(stacked)


def test_commits_on_top_go_to_their_owners_too(stacked: World, made: Path) -> None:
    change(made / ENGINE, b"line 10, patched\n", b"line 10, mended\n")
    stacked.git("commit", "-q", "-a", "-m", "mend it", cwd=made)
    (made / "pkg/new/more.py").write_bytes(b"more\n")
    stacked.git("add", "-A", cwd=made)
    stacked.git("commit", "-q", "-m", "fixup! [Test] second", cwd=made)
    document = stacked.ok("refresh", str(made))
    assert document["written"] == ["0001-first", "0002-second"]
    assert document["folded"] == ["the commit 'mend it'", "the commit 'fixup! [Test] second'"]
    assert b"+++ b/pkg/new/more.py" in body(stacked, "0002-second")
    assert stacked.git("log", "--format=%s", "v1..", cwd=made) == "[Test] third\n[Test] second\n[Test] first"
    holds(stacked)


def test_what_is_unclear_names_the_candidates(stacked: World, made: Path) -> None:
    (made / "pkg/fresh.py").write_bytes(b"fresh\n")
    stacked.git("add", "pkg/fresh.py", cwd=made)
    change(made / ENGINE, b"line 25\n", b"line 25, mine\n")
    state = snapshot(made)
    refused(
        stacked,
        "refresh",
        str(made),
        says=(
            "pkg/engine.py:25 could belong to 0001-first or 0002-second",
            "pkg/fresh.py could belong to 0001-first or 0002-second or 0003-third",
            "--into ID",
        ),
    )
    assert snapshot(made) == state
    document = stacked.ok("refresh", str(made), "--into", "1")
    assert document["written"] == ["0001-first"]
    assert (b"+line 25, mine" in body(stacked, "0001-first"), b"+fresh" in body(stacked, "0001-first")) == (
        True,
        True,
    )
    holds(stacked)


def test_lines_that_a_later_patch_changes_cannot_go_below_it(world: World) -> None:
    first = edited(ENGINE, 10, b"ten\n")
    second = edited(ENGINE, 10, b"ten and more\n", {ENGINE: first})
    world.series(("0001-ten", {ENGINE: first}), ("0002-more", {ENGINE: second}))
    made = world.top / "made"
    world.ok("apply", "--create", str(made))
    change(made / ENGINE, b"ten and more\n", b"eleven\n")
    refused(
        world,
        "refresh",
        str(made),
        "--into",
        "1",
        says=("pkg/engine.py:10: the change cannot go into 0001-ten, as 0002-more changes the same place",),
    )
    assert world.ok("refresh", str(made))["written"] == ["0002-more"]
    holds(world)


def test_lines_next_to_each_other_each_go_to_their_own(world: World) -> None:
    first = edited(ENGINE, 10, b"ten\n")
    second = edited(ENGINE, 11, b"eleven\n", {ENGINE: first})
    world.series(("0001-ten", {ENGINE: first}), ("0002-eleven", {ENGINE: second}))
    made = world.top / "made"
    world.ok("apply", "--create", str(made))
    change(made / ENGINE, b"ten\n", b"zehn\n")
    document = world.ok("refresh", str(made))
    assert document["written"] == ["0001-ten", "0002-eleven"]
    assert b"+zehn" in body(world, "0001-ten")
    assert (b" zehn" in body(world, "0002-eleven"), b"+eleven" in body(world, "0002-eleven")) == (True, True)
    holds(world)


def test_part_of_a_lane_is_refreshed_and_the_rest_stays(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made), "--upto", "1")
    change(made / ENGINE, b"line 10, patched\n", b"line 10, mended\n")
    rest = body(stacked, "0002-second"), body(stacked, "0003-third")
    assert stacked.ok("refresh", str(made))["written"] == ["0001-first"]
    assert (body(stacked, "0002-second"), body(stacked, "0003-third")) == rest
    holds(stacked)
    refused(stacked, "refresh", str(made), "--into", "9", says=("no patch is called '9'",), code=2)
    change(made / ENGINE, b"line 10, mended\n", b"line 10, again\n")
    refused(stacked, "refresh", str(made), "--into", "2", says=("0002-second is not in the checkout",))


def test_a_change_that_breaks_a_later_patch_is_refused(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made), "--upto", "1")
    change(made / ENGINE, b"line 40\n", b"line forty\n")
    refused(stacked, "refresh", str(made), says=("would break 0002-second on v1", "hunk 1", "pkg/engine.py"))


def test_deletions_modes_and_binaries(stacked: World, made: Path) -> None:
    (made / "pkg/added.bin").write_bytes(bytes(range(255, -1, -1)))
    (made / "pkg/new/deep.py").unlink()
    document = stacked.ok("refresh", str(made))
    assert document["written"] == ["0002-second", "0003-third"]
    assert b"deep.py" not in body(stacked, "0002-second")
    (made / "pkg/added.bin").chmod(0o755)
    assert stacked.ok("refresh", str(made))["written"] == ["0003-third"]
    assert b"new file mode 100755" in body(stacked, "0003-third")
    holds(stacked)


def test_a_branch_of_your_own_stays(stacked: World, made: Path) -> None:
    stacked.git("checkout", "-q", "-b", "mine", cwd=made)
    change(made / ENGINE, b"line 10, patched\n", b"line 10, mended\n")
    stacked.git("commit", "-q", "-a", "-m", "mend it", cwd=made)
    state = snapshot(made)
    document = stacked.ok("refresh", str(made))
    assert document["written"] == ["0001-first"]
    assert document["notes"] == ["the checkout stays as it is: HEAD is on a branch of your own"]
    assert snapshot(made) == state


def test_untracked_files_are_named_and_not_taken(stacked: World, made: Path) -> None:
    (made / "scratch.py").write_bytes(b"mine\n")
    document = stacked.ok("refresh", str(made))
    assert document["notes"] == ["not tracked, and not taken: scratch.py (git add them)"]
    assert document["written"] == []


def test_nothing_left_of_a_patch_is_refused(stacked: World, made: Path) -> None:
    change(made / ENGINE, b"line 10, patched\n", b"line 10\n")
    refused(stacked, "refresh", str(made), says=("nothing is left of 0001-first", "patchq drop 0001-first"))


def test_a_fixup_of_no_patch(stacked: World, made: Path) -> None:
    stacked.commit(made, "fixup! [Test] ninth", {"x.py": b"x\n"})
    refused(stacked, "refresh", str(made), says=("names no patch of the checkout",))


def test_refresh_of_nothing_is_nothing(stacked: World, made: Path) -> None:
    before, state = files(stacked), snapshot(made)
    entries = stacked.ok("log")["entries"]
    assert stacked.ok("refresh", str(made))["written"] == []
    assert (files(stacked), snapshot(made), stacked.ok("log")["entries"]) == (before, state, entries)
    assert ids(stacked) == ["0001-first", "0002-second", "0003-third"]


def test_a_checkout_that_was_left_behind_takes_nothing_back(stacked: World) -> None:
    """Two checkouts of one lane: what was refreshed from the one is not undone by a refresh from the other."""
    one, two = stacked.top / "one", stacked.top / "two"
    for made in (one, two):
        stacked.ok("apply", "--create", str(made))
    edit(one, b"line 10, patched", b"line 10, from one")
    assert stacked.ok("refresh", str(one))["written"] == ["0001-first"]
    number = stacked.ok("log")["entries"][0]["entry"]
    edit(two, b"line 40, patched", b"line 40, from two")
    before = (contents(stacked.project), contents(two))
    result = stacked.patchq("refresh", str(two))
    assert result.code == 1
    assert f"{two} does not have what entry {number} (refresh {one}) changed in 0001-first" in result.err
    assert (contents(stacked.project), contents(two)) == before
    edit(one, b"line 10, from one", b"line 10, again from one")
    assert stacked.ok("refresh", str(one))["written"] == ["0001-first"]


def edit(checkout: Path, old: bytes, new: bytes) -> None:
    path = checkout / "pkg/engine.py"
    path.write_bytes(path.read_bytes().replace(old, new))
