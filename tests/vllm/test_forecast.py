"""The forecast of the real series on the real trees."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchq.series.rulings import VERDICTS
from patchq.series.series import load_series
from tests.support.shipped import ROOT, shipped

pytestmark = pytest.mark.vllm


def forecast(cache: Path, *args: str) -> bytes:
    return shipped(cache, "forecast", *args, "--json").stdout


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
