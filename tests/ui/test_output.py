"""What others wrote never steers the terminal that it is shown on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.world import World

STEERING = "a\x1b]0;owned\x07\x9b31m\u202eb"
SHOWN = r"a\x1b]0;owned\x07\x9b31m\u202eb"


def test_a_path_in_a_message(world: World) -> None:
    result = world.patchq("apply", str(world.top / STEERING))
    assert f"{world.top}/{SHOWN} does not exist." in result.err


def test_a_path_in_a_table(stacked: World) -> None:
    clone = stacked.clone()
    stacked.ok("apply", str(clone))
    stacked.commit(clone, "odd", {STEERING: b"x\n"})
    result = stacked.patchq("verify", str(clone))
    assert (result.code, f"{SHOWN}\textra\n" in result.out) == (1, True), result.out
    assert {"\x1b", "\x07", "\x9b", "\u202e"}.isdisjoint(result.out + result.err)
