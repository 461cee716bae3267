"""The real series on the real pinned base: every patch proved, and known at once the second time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.shipped import shipped

pytestmark = pytest.mark.vllm


def prove(cache: Path, *args: str) -> tuple[int, Any]:
    done = shipped(cache, "test", "--prove", "--json", *args, code=None)
    return done.returncode, json.loads(done.stdout)


@pytest.mark.slow
def test_every_patch_is_proved(real_cache: Path) -> None:
    """Slow: it makes vLLM's test environment (3 GB) where it is not there, and runs vLLM's engine."""
    code, document = prove(real_cache)
    assert code == 0, [r["against"] for r in document["results"] if r["against"]]
    assert {r["proved"] for r in document["results"] if r["gate"] == "cpu"} == {True}
    beyond = [r for r in document["results"] if r["gate"] not in {"cpu", "compile"} and r["after"] is None]
    assert all(r["status"].startswith("not run: needs ") for r in beyond)

    code, again = prove(real_cache)

    assert code == 0
    assert all(r["cached"] for r in again["results"] if r["after"] is not None)
