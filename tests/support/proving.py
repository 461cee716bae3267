"""Patches over the throwaway upstream that bring tests, and the call that proves them with this interpreter."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.world import Result, World

MODEL = b"def first():\n    return 1\n\n\ndef second():\n    return 2\n\n\ndef third():\n    return 3\n"
BETTER = MODEL.replace(b"return 1", b"return 10")
TEST = "tests/test_it.py"
GOOD = b"from pkg import model\n\n\ndef test_first():\n    assert model.first() == 10\n"


def bring(
    world: World, test: bytes, *, production: dict[str, bytes | None] | None = None, **meta: Any
) -> None:
    """A series of one patch that makes `first` return 10 and brings one test file."""
    files = {"pkg/model.py": BETTER} if production is None else production
    world.series(("0001-better", {**files, TEST: test}))
    if meta:
        world.describe("0001-better", **meta)


def prove(world: World, *args: str) -> Result:
    """`patchq test --prove --json`, with this interpreter for an environment."""
    return world.patchq("test", "--prove", "--python", sys.executable, "--json", *args)


def refused(world: World, *args: str) -> dict[str, Any]:
    """The one result of a proof that must fail."""
    result = prove(world, *args)
    assert result.code == 1, (result.out, result.err)
    (found,) = result.json["results"]
    assert found["proved"] is False
    return found
