"""A stand-in is taken where it is what another package answers, and found wherever it may stand for an object of vLLM's."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from patchq.vllm.lint.seams import answers_of_others

IMPORTS = """
import pytest
import torch
import vllm.platforms as platforms
from humming import device
from types import SimpleNamespace
from vllm.config import VllmConfig

triton = pytest.importorskip("triton")
ops = pytest.importorskip("vllm.ops")


def elsewhere():
    device = ops.device


"""


def taken(body: str) -> list[bool]:
    """For each SimpleNamespace of a function of a test module, in order, whether it is taken."""
    source = (
        dedent(IMPORTS) + "def test_it(monkeypatch):\n" + "".join(f"    {x}\n" for x in body.splitlines())
    )
    module = ast.parse(source)
    found = answers_of_others(module)
    calls = [n for n in ast.walk(module) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]
    calls = [n for n in calls if n.func.id == "SimpleNamespace"]  # type: ignore[attr-defined]
    return [n in found for n in sorted(calls, key=lambda n: n.lineno)]


@pytest.mark.parametrize(
    "body",
    [
        "monkeypatch.setattr(torch.cuda, 'get_device_properties', lambda _: SimpleNamespace(x=1))",
        "monkeypatch.setattr('torch.cuda.get_device_properties', lambda _: SimpleNamespace(x=1))",
        "monkeypatch.setattr(triton.runtime.driver, '_active', SimpleNamespace(x=1))",
        "sm86 = SimpleNamespace(x=1)\nmonkeypatch.setattr(device.Info, 'get', lambda self: sm86)",
        "a = SimpleNamespace(x=1)\nmonkeypatch.setattr(torch, 'a', a)\nmonkeypatch.setattr(triton, 'b', lambda: a)",
    ],
)
def test_what_another_package_answers_is_taken(body: str) -> None:
    assert taken(body) == [True]


@pytest.mark.parametrize(
    "body",
    [
        "run(SimpleNamespace(x=1))",
        "config = SimpleNamespace(x=1)\nrun(config)",
        "monkeypatch.setattr(platforms, 'current', SimpleNamespace(x=1))",
        "monkeypatch.setattr('vllm.platforms.current', SimpleNamespace(x=1))",
        "monkeypatch.setattr(VllmConfig, 'parallel', SimpleNamespace(x=1))",
        "monkeypatch.setattr(type(platforms.current), 'card', SimpleNamespace(x=1))",
        "monkeypatch.setattr(ops.kernel, 'warmup', lambda: SimpleNamespace(x=1))",
        "torch = make()\nmonkeypatch.setattr(torch, 'layer', SimpleNamespace(x=1))",
        "a = SimpleNamespace(x=1)\nmonkeypatch.setattr(torch, 'a', a)\nrun(a)",
        "a = SimpleNamespace(x=1)\na = run(a)\nmonkeypatch.setattr(torch, 'a', a)",
        "a = SimpleNamespace(x=1)",
        "def warmup():\n    return SimpleNamespace(x=1)\nmonkeypatch.setattr(ops, 'warmup', warmup)",
        "torch.setattr = SimpleNamespace(x=1)",
    ],
)
def test_what_may_stand_for_an_object_of_vllm_is_not(body: str) -> None:
    assert taken(body) == [False]
