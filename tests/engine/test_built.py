"""A stack that was built before is used where it is of this base, these bodies and these locked trees; else it is built again."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.world import contents

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.world import World


def shorter(data: Any) -> None:
    data["steps"].pop()
    data["commits"].pop()


def other_tree(data: Any) -> None:
    data["steps"][0]["tree"] = data["base_tree"]


def swapped(data: Any) -> None:
    data["commits"][-1] = data["commits"][0]


DAMAGE: dict[str, Callable[[Any], None]] = {
    "no step": lambda d: d.update(steps=[], commits=[]),
    "no commit": lambda d: d.update(commits=[]),
    "one step less": shorter,
    "another tree": other_tree,
    "another base": lambda d: d.update(base_tree="1" * 40),
    "another top": swapped,
    "another name": lambda d: d["steps"][1].update(id="0009-other"),
    "numbers": lambda d: d.update(steps=3, commits=[1, 2, 3]),
    "numbers for commits": lambda d: d.update(commits=[1, 2, 3]),
    "nulls": lambda d: d["steps"][0].update(tree=None, changes=None),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
def test_what_is_kept_is_held_against_the_lock(stacked: World, damage: Callable[[Any], None]) -> None:
    first = stacked.clone("first")
    whole = stacked.ok("apply", str(first))
    (kept,) = (stacked.cache / "lanes").glob("*.json")
    data = json.loads(kept.read_bytes())
    damage(data)
    kept.write_text(json.dumps(data))
    clone = stacked.clone("second")
    done = stacked.ok("apply", str(clone))
    assert (done["tree"], done["patches"]) == (whole["tree"], whole["patches"])
    assert contents(clone) == contents(first)
    assert stacked.ok("verify", str(clone))["ok"] is True
