"""The log, and taking commands back: series and checkouts as they were, or a refusal that names what has changed."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING

from patchq.cache import key_of
from tests.scenarios.test_editing import files, refused
from tests.support.world import contents, snapshot

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.support.world import World


def state(path: Path) -> object:
    """A checkout without its times."""
    found = snapshot(path)
    return {**found, "files": {n: v[:2] for n, v in found["files"].items()}}


def test_checkouts_go_back_and_forth(stacked: World) -> None:
    clone = stacked.clone()
    stages = [state(clone)]
    for args in (("apply", "--upto", "1"), ("apply",), ("unapply",)):
        stacked.ok(args[0], str(clone), *args[1:])
        stages.append(state(clone))
    for stage in reversed(stages[:-1]):
        stacked.ok("undo")
        assert state(clone) == stage
    numbers = [e["entry"] for e in stacked.ok("log")["entries"] if e["undoes"] and not e["undone_by"]]
    for number, stage in zip(numbers, stages[1:], strict=True):
        stacked.ok("undo", str(number))
        assert state(clone) == stage


def test_a_checkout_that_was_made_goes_and_only_if_nothing_is_in_it(stacked: World) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    (made / "mine.py").write_bytes(b"mine\n")
    refused(stacked, "undo", says=("has more in it than patchq made: mine.py",))
    (made / "mine.py").unlink()
    done = stacked.ok("undo")
    assert not made.exists()
    refused(stacked, "undo", str(done["entry"]), says=("apply --create",), code=2)


def test_a_checkout_that_is_gone_is_named_with_what_can_be_undone_instead(stacked: World) -> None:
    before = files(stacked)
    stacked.ok("move", "3", "--before", "1")
    number = stacked.ok("log")["entries"][0]["entry"]
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    stacked.ok("unapply", str(made))
    shutil.rmtree(made)
    refused(stacked, "undo", says=(f"{made}, which entry {number + 2} (unapply", f"patchq undo {number}."))
    stacked.ok("undo", str(number))
    assert files(stacked) == before


def test_a_checkout_comes_back_where_its_undo_cannot_be_logged(
    stacked: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stacked.top / "made"
    stacked.ok("apply", "--create", str(made))
    before = state(made)
    with monkeypatch.context() as patch:
        patch.setattr("patchq.engine.project.write_atomically", fail)
        assert stacked.patchq("undo").code == 3
    assert state(made) == before
    stacked.ok("undo")
    assert not made.exists()


def fail(path: Path, _data: bytes) -> None:
    """A full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


def test_a_damaged_entry_stops_nothing_but_its_own_undo(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("drop", "3")
    number = stacked.ok("log")["entries"][0]["entry"]
    log = stacked.cache / "projects" / key_of(stacked.project) / "log"
    (log / f"{number:06}.json").write_bytes(b"")
    stacked.ok("apply", str(clone))
    stacked.ok("unapply", str(clone))
    entries = {e["entry"]: e["command"] for e in stacked.ok("log")["entries"]}
    assert entries[number] == "damaged"
    refused(stacked, "undo", str(number), says=(f"entry {number} of the log is damaged",), code=2)
    stacked.ok("undo")
    assert stacked.ok("status", str(clone))["applied"] == ["0001-first", "0002-second"]


def test_undo_of_undo_is_the_command_again(stacked: World) -> None:
    before = files(stacked)
    stacked.ok("drop", "3")
    dropped = files(stacked)
    first = stacked.ok("undo")
    assert (first["undone"]["command"], files(stacked)) == ("drop 0003-third", before)
    again = stacked.ok("undo", str(first["entry"]))
    assert files(stacked) == dropped
    refused(stacked, "undo", str(first["entry"]), says=("is undone already",))
    stacked.ok("undo")
    assert files(stacked) == before
    entries = {e["entry"]: e for e in stacked.ok("log")["entries"]}
    assert entries[again["entry"]]["undoes"] == first["entry"]


def test_what_was_changed_since_is_named_and_kept(stacked: World) -> None:
    stacked.ok("rename", "3", "last")
    path = stacked.project / "series/0003-last/patch.yaml"
    path.write_text(path.read_text() + "# by hand\n")
    refused(stacked, "undo", says=("series/0003-last/patch.yaml was changed by hand after entry",))
    path.write_text(path.read_text().replace("# by hand\n", ""))
    (path.parent / "notes.md").write_bytes(b"mine\n")
    refused(stacked, "undo", says=("series/0003-last/notes.md came into a directory",))
    (path.parent / "notes.md").unlink()
    number = stacked.ok("log")["entries"][0]["entry"]
    stacked.ok("drop", "1")
    refused(
        stacked,
        "undo",
        str(number),
        says=(f"upstream.lock was changed after entry {number} by {number + 1}",),
    )
    stacked.ok("undo")
    stacked.ok("undo")


def test_a_checkout_that_moved_since_is_left_alone(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.commit(clone, "mine", {"mine.py": b"mine\n"})
    before = state(clone)
    refused(stacked, "undo", says=("has moved since entry",))
    assert state(clone) == before
    stacked.git("reset", "-q", "--hard", "HEAD~", cwd=clone)
    (clone / "pkg/engine.py").write_bytes(b"mine\n")
    refused(stacked, "undo", says=("pkg/engine.py in", "not committed"))
    assert contents(clone)["pkg/engine.py"] == b"mine\n"


def test_an_older_branch_of_patchq_comes_back(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone), "--upto", "1")
    stacked.git("checkout", "-q", "main", cwd=clone)
    before = state(clone)
    stacked.ok("apply", str(clone))
    stacked.ok("undo")
    assert state(clone) == before


def test_rulings_bases_and_rebases_are_entries(stacked: World) -> None:
    stacked.write_upstream(at=stacked.top / "later")
    stages = [files(stacked)]
    for args in (
        ("upstream", "add", "v2", "--directory", str(stacked.top / "later")),
        ("rebase", "--onto", "v2"),
        ("verdict", "set", "1", "landed", "--base", "v2", "--because", "It is there."),
    ):
        stacked.ok(*args)
        stages.append(files(stacked))
    assert [e["command"] for e in stacked.ok("log", "-n", "3")["entries"]] == [
        "verdict set 0001-first landed --base v2",
        "rebase --onto v2",
        "upstream add v2",
    ]
    for stage in reversed(stages[:-1]):
        stacked.ok("undo")
        assert files(stacked) == stage


def test_nothing_to_undo(world: World) -> None:
    world.ok("undo")
    refused(world, "undo", says=("there is nothing to undo",), code=2)
    refused(world, "undo", "99", says=("the log has no entry 99",), code=2)
