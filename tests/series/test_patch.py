"""patch.yaml: what it may say, and what it is told when it says something else."""

from __future__ import annotations

from typing import Any

import pytest

from patchq.errors import InputError
from patchq.series.patch import GATES, PatchMeta, TestGroup
from patchq.series.yamlfile import fit

GOOD: dict[str, Any] = {
    "id": "0008-rope-bound",
    "title": "[Kernel][Quantization] Bound the tables",
    "why": "They grow.",
    "changes": "A bound.",
    "depends": ["0001-first"],
    "tests": [{"gate": "cpu", "run": ["tests/a.py", "tests/b.py::test_it[a-b]"]}],
    "upstream": {"state": "open", "intent": "send", "related": ["vllm-project/vllm#1"]},
    "drop_when": "It is merged.",
}


def test_a_good_one() -> None:
    patch = fit(GOOD, PatchMeta, "patch.yaml")
    assert (patch.number, patch.name, patch.target, patch.time_limit) == ("0008", "rope-bound", "sm_86", 600)
    assert patch.tests == (TestGroup("cpu", ("tests/a.py", "tests/b.py::test_it[a-b]")),)
    assert (patch.depends, patch.neighbours, patch.limits) == (("0001-first",), (), ())


def test_gates_stand_from_the_weakest_to_the_strongest() -> None:
    assert [GATES.index(g) for g in ("cpu", "compile", "emulated", "native")] == sorted(
        GATES.index(g) for g in ("cpu", "compile", "emulated", "native")
    )
    assert "gpu" in GATES


@pytest.mark.parametrize("missing", sorted(GOOD))
def test_every_key_that_has_no_default_is_wanted(missing: str) -> None:
    with pytest.raises(InputError, match=f"the key '{missing}' is missing"):
        fit({k: v for k, v in GOOD.items() if k != missing}, PatchMeta, "patch.yaml")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "8-rope"}, "id '8-rope' is not four digits and a name"),
        ({"id": "0008-Rope"}, "is not four digits"),
        ({"id": "0008-rope/../x"}, "is not four digits"),
        ({"id": "0008-rope\n"}, "is not four digits"),
        ({"id": "0008-"}, "is not four digits"),
        ({"title": "No tag"}, "does not begin with upstream's tags"),
        ({"title": "[Tag]no blank"}, "does not begin with upstream's tags"),
        ({"title": "[Tag] "}, "does not begin with upstream's tags"),
        ({"title": "[Tag] two\nlines"}, "does not begin with upstream's tags"),
        ({"target": "sm86"}, "is not a CUDA architecture"),
        ({"target": "sm_86\n"}, "is not a CUDA architecture"),
        ({"tests": [{"gate": "gpu2", "run": ["x"]}]}, "'cpu', 'compile', 'gpu', 'emulated' or 'native'"),
        ({"tests": [{"gate": "cpu", "run": []}]}, "names at least one test file"),
        ({"tests": [{"gate": "cpu", "run": ["/etc/passwd"]}]}, "is not a path inside the vLLM tree"),
        ({"tests": [{"gate": "cpu", "run": ["a/../../b"]}]}, "is not a path inside the vLLM tree"),
        ({"tests": [{"gate": "cpu", "run": ["-x"]}]}, "is not a path inside the vLLM tree"),
        ({"tests": [{"gate": "cpu", "run": "tests/a.py"}]}, "valid list"),
        ({"depends": "0001-first"}, "valid list"),
        ({"upstream": {"state": "gone", "intent": "send"}}, "'absent', 'open', 'merged' or 'rejected'"),
        ({"upstream": {"state": "open", "intent": "maybe"}}, "'send', 'hold' or 'local'"),
        ({"time_limit": 0}, "time_limit"),
        ({"time_limit": -5}, "time_limit"),
    ],
)
def test_what_it_may_not_say(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        fit({**GOOD, **change}, PatchMeta, "patch.yaml")
    assert words in caught.value.message
    assert caught.value.message.startswith("patch.yaml:1: ")
