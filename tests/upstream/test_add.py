"""Adding a base: one more in the lock, nothing else changed in it, and only after it has been fetched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.series.lock import read_lock

if TYPE_CHECKING:
    from tests.support.world import World


def test_the_rest_of_the_lock_stays(stacked: World) -> None:
    lock = stacked.project / "upstream.lock"
    before = read_lock(lock)
    stacked.write_upstream({"other.txt": b"x\n"}, at=stacked.top / "other")
    found = stacked.ok("upstream", "add", "v2", "--directory", str(stacked.top / "other"))["bases"]
    after = read_lock(lock)
    assert (after.lanes, list(after.bases)) == (before.lanes, ["v1", "v2"])
    assert after.bases["v1"] == before.bases["v1"]
    assert [(r["name"], r["tree"], r["role"], r["lane"], r["present"]) for r in found] == [
        ("v2", after.bases["v2"].tree, None, False, True)
    ]
    assert stacked.patchq("status").code == 0


def test_an_added_base_can_be_fetched_by_its_lock_alone(world: World) -> None:
    other = world.write_upstream(at=world.top / "other")
    world.ok("upstream", "add", "v2", "--directory", str(other))
    (world.cache / "store.git").rename(world.top / "gone")
    assert world.ok("upstream", "fetch", "--all")["bases"][1]["present"] is True


@pytest.mark.parametrize(
    "name", ["", "a b", "-x", "../x", "a..b", "a/b", "x.lock", "v1", "\u00e4", "x" * 101]
)
def test_names_that_are_none(world: World, name: str) -> None:
    lock = (world.project / "upstream.lock").read_bytes()
    result = world.patchq("upstream", "add", "--directory", str(world.upstream), "--", name)
    assert (result.code, result.out) == (2, "")
    assert ("there already" if name == "v1" else "is not a name for a base") in result.err
    assert (world.project / "upstream.lock").read_bytes() == lock
