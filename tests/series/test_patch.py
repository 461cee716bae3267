"""patch.yaml: what it may say, and what it is told when it says something else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from patchq.errors import InputError
from patchq.series.patch import GATES, PatchMeta, TestGroup
from patchq.series.yamlfile import fit, read_yaml

if TYPE_CHECKING:
    from pathlib import Path

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


def test_a_base_may_have_it_otherwise() -> None:
    there = {
        "title": "[Kernel] Bound the other table",
        "depends": [],
        "tests": [{"gate": "cpu", "run": ["tests/deep/a.py"]}],
        "neighbours": ["tests/near.py"],
        "limits": ["One table."],
    }
    because = {"0001-first": "It is so."}
    patch = fit({**GOOD, "because": because, "bases": {"v2": there}}, PatchMeta, "patch.yaml")
    assert patch.on("v1") is patch
    here = patch.on("v2")
    assert (here.title, here.depends, here.because) == ("[Kernel] Bound the other table", (), {})
    assert (here.tests[0].run, here.neighbours, here.limits) == (
        ("tests/deep/a.py",),
        ("tests/near.py",),
        ("One table.",),
    )
    assert (here.why, here.drop_when, here.id) == (patch.why, patch.drop_when, patch.id)
    assert here.on("v2") is here


@pytest.mark.parametrize(
    ("there", "line", "words"),
    [
        ("title: No tag", 4, "v2: title 'No tag' does not begin with upstream's tags"),
        (
            "because: {0009-x: It is so.}",
            4,
            "v2: because gives a reason for '0009-x', which depends does not",
        ),
        ("time_limit: 0", 4, "v2: time_limit 0 is not a number of seconds"),
        ("tests: [{gate: cpu, run: [/etc/passwd]}]", 4, "is not a path inside the vLLM tree"),
        ("gates: [cpu]", 4, "unknown key 'bases.v2.gates'"),
        ("upstream: {state: open, intent: send}", 4, "unknown key 'bases.v2.upstream'"),
        ("depends: 0001-first", 4, "valid list"),
    ],
)
def test_what_it_may_not_say_of_a_base(tmp_path: Path, there: str, line: int, words: str) -> None:
    file = tmp_path / "patch.yaml"
    good = yaml.safe_dump(GOOD, sort_keys=False)
    file.write_text(f"bases:\n  v2:\n    limits: [One.]\n    {there}\n{good}")
    with pytest.raises(InputError) as caught:
        read_yaml(file, PatchMeta, where="patch.yaml")
    assert caught.value.message.startswith(f"patch.yaml:{line}: ")
    assert words in caught.value.message
    if "unknown" in words:
        assert "title, why, changes, depends" in caught.value.remedy


def test_a_wrong_value_is_told_at_its_line(tmp_path: Path) -> None:
    file = tmp_path / "patch.yaml"
    file.write_text(yaml.safe_dump({**GOOD, "time_limit": -5}, sort_keys=False))
    with pytest.raises(InputError) as caught:
        read_yaml(file, PatchMeta, where="patch.yaml")
    line = file.read_text().split("\n").index("time_limit: -5") + 1
    assert caught.value.message == f"patch.yaml:{line}: time_limit -5 is not a number of seconds above 0."
    assert caught.value.remedy == "It reads -5 now."


@pytest.mark.parametrize(
    ("kernel", "line", "words"),
    [
        ("{}", 3, "a kernel is of triton or of humming: name one of the two"),
        ("{triton: a.py, function: f, humming: indexed}", 3, "name one of the two"),
        ("{triton: vllm/a.py}", 3, "a Triton kernel needs the name of its function"),
        ("{humming: indexed}", 3, "kernels of Humming need the layer that selects them"),
        ("{triton: ../a.py, function: f}", 3, "'../a.py' is not a path inside the vLLM tree"),
        (
            "\n    triton: vllm/a.py\n    function: f\n    below: {ampere: {A: true}}",
            5,
            "'ampere' is not a CUDA",
        ),
        ("\n    triton: vllm/a.py\n    function: f\n    warps: many", 5, "warps"),
        ("\n    triton: vllm/a.py\n    function: f\n    color: red", 5, "color"),
    ],
)
def test_a_kernel_that_cannot_be_compiled_is_named_by_its_line(
    tmp_path: Path, kernel: str, line: int, words: str
) -> None:
    rest = yaml.safe_dump({k: v for k, v in GOOD.items() if k != "id"}, sort_keys=False)
    file = tmp_path / "patch.yaml"
    file.write_text(f"id: {GOOD['id']}\nkernels:\n  - {kernel.lstrip()}\n{rest}")
    with pytest.raises(InputError) as caught:
        read_yaml(file, PatchMeta, where="patch.yaml")
    assert words in caught.value.message
    assert caught.value.message.startswith(f"patch.yaml:{line}: ")


def test_a_kernel_is_named_by_its_function_or_its_layer() -> None:
    layer = {"shape_n": 64, "shape_k": 32, "b_dtype": "uint2"}
    kernels = [{"triton": "vllm/a.py", "function": "f"}, {"humming": "indexed", "layer": layer}]
    patch = fit({**GOOD, "kernels": kernels}, PatchMeta, "patch.yaml")
    assert [k.name for k in patch.kernels] == ["f", "humming indexed uint2 64x32"]
    assert [(k.warps, k.stages, k.spills) for k in patch.kernels] == [(4, None, 0)] * 2
