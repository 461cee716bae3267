"""The forecast of the real series on the real trees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patchq.series.rulings import VERDICTS
from patchq.series.series import load_series

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.vllm


def forecast(cache: Path, *args: str) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "patchq", "--root", str(ROOT), "forecast", *args, "--json"],
        env={**os.environ, "PATCHQ_CACHE": str(cache), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_every_patch_has_a_verdict_and_the_bytes_are_the_same_twice(real_cache: Path) -> None:
    args = ("--base", "v0.27.1", "--base", "v0.33.0")
    first = forecast(real_cache, *args)
    assert forecast(real_cache, *args) == first
    document = json.loads(first)
    assert document["bases"] == ["v0.27.1", "v0.33.0"]
    assert [p["id"] for p in document["patches"]] == [p.id for p in load_series(ROOT).patches]
    for patch in document["patches"]:
        assert patch["cells"]["v0.27.1"]["verdict"] == "clean"
        there = patch["cells"]["v0.33.0"]
        assert there["verdict"] in VERDICTS
        assert there["detail"]
        assert there["files"] or there["verdict"] == "clean"


def test_the_module_that_became_a_package_is_followed(real_cache: Path) -> None:
    document = json.loads(forecast(real_cache, "0009-swiglu-bridge", "--base", "v0.33.0"))
    (patch,) = document["patches"]
    utils = "vllm/model_executor/layers/quantization/utils"
    assert {"from": f"{utils}/humming_utils.py", "to": f"{utils}/humming/moe.py"} in patch["cells"][
        "v0.33.0"
    ]["text"]["moved"]
