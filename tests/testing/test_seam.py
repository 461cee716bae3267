"""Calls are bound to real signatures: what does not fit is named, what cannot be known is left alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.git.objects import EMPTY_TREE, REGULAR, Entry, Objects
from patchq.testing.seam.check import check_seams

if TYPE_CHECKING:
    from pathlib import Path

LIB = b"""
import functools
from dataclasses import dataclass
import other


def plain(a, b=1, *, c=2): ...
def loose(*args, **kwargs): ...
@functools.cache
def cached(a): ...
@other.rewritten
def rewritten(a): ...
if other:
    def either(a): ...
else:
    def either(a, b): ...


class Base:
    def __init__(self, size, *, name="x"): ...
    def load(self, path, strict=True): ...
    @staticmethod
    def fixed(a): ...
    @classmethod
    def make(cls, a): ...


class Derived(Base):
    def extra_thing(self, layer): ...


class Foreign(other.Thing):
    def own(self, a): ...


@dataclass
class Config:
    a: int
    b: int = 0
"""


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    from patchq.git.run import run

    run(["init", "-q", "--bare", str(tmp_path / "r.git")])
    return Objects(tmp_path / "r.git")


def problems(objects: Objects, caller: str, lib: bytes = LIB, without: bytes = LIB) -> list[str]:
    def tree(lib_: bytes, caller_: bytes) -> str:
        files = {
            "pkg/__init__.py": b"from pkg.lib import plain as renamed\n",
            "pkg/lib.py": lib_,
            "pkg/caller.py": caller_,
        }
        changes = {name: Entry(REGULAR, objects.put("blob", data)) for name, data in files.items()}
        return objects.edit_tree(EMPTY_TREE, changes)

    production = ["pkg/caller.py", *(["pkg/lib.py"] if lib != without else [])]
    found = check_seams(objects, tree(without, b""), tree(lib, caller.encode()), production)
    return [s.problem.partition(" (")[0] for s in found]


HEAD = "from pkg import lib, renamed\nfrom pkg.lib import Base, Config, Derived, Foreign, plain, loose\nfrom . import lib as near\n"


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("plain(1, d=2)", "plain takes no keyword 'd'"),
        ("lib.plain(1, d=2)", "lib.plain takes no keyword 'd'"),
        ("near.plain(1, d=2)", "near.plain takes no keyword 'd'"),
        ("renamed(1, d=2)", "renamed takes no keyword 'd'"),
        ("plain(1, 2, 3)", "plain takes 2 positional arguments and is given 3"),
        ("plain()", "plain is not given 'a'"),
        ("plain(1, a=1)", "plain is given 'a' twice"),
        ("lib.cached(b=1)", "lib.cached takes no keyword 'b'"),
        ("Base(1, nam='y')", "Base takes no keyword 'nam'"),
        ("Derived()", "Derived is not given 'size'"),
        ("Base(1).load('p', stric=False)", "Base(1).load takes no keyword 'stric'"),
        ("Base.fixed(1, 2)", "Base.fixed takes 1 positional arguments and is given 2"),
        ("Base.make(b=1)", "Base.make takes no keyword 'b'"),
        ("Config(a=1, c=2)", "Config takes no keyword 'c'"),
        ("functools.partial(plain, d=1)", "plain takes no keyword 'd'"),
        (
            "unknown.extra_thing(kernel=1)",
            "unknown.extra_thing takes no keyword 'kernel': no extra_thing in the tree does",
        ),
    ],
)
def test_a_call_that_does_not_fit(objects: Objects, call: str, problem: str) -> None:
    assert problems(objects, f"{HEAD}import functools\n\n\ndef f(unknown):\n    return {call}\n") == [problem]


@pytest.mark.parametrize(
    "call",
    [
        "plain(1, c=3)",
        "plain(*unknown)",
        "plain(**unknown)",
        "loose(1, 2, x=3)",
        "lib.rewritten(1, 2, 3)",
        "lib.either(1, 2)",
        "Base(1).load('p', strict=False)",
        "Derived(1, name='y').load('p')",
        "Foreign(1, 2, 3).anything(4)",
        "Config(a=1)",
        "functools.partial(plain)",
        "unknown.load(whatever=1)",
        "functools.extra_thing(kernel=1)",
        "unknown(1)(2)[3](4)",
    ],
)
def test_a_call_that_fits_or_cannot_be_known(objects: Objects, call: str) -> None:
    assert problems(objects, f"{HEAD}import functools\n\n\ndef f(unknown):\n    return {call}\n") == []


def test_methods_of_its_own(objects: Objects) -> None:
    caller = HEAD + (
        "\n\nclass Mine(Derived):\n    base: Base\n\n    def __init__(self, other: 'Base | None', **kw):\n"
        "        super().__init__(1, nme=2)\n        self.load('p', mode=1)\n        self.base.load(1, 2, 3)\n"
        "        other.load(way=1)\n        self.made = Base(1)\n        self.made.load(far=1)\n"
    )
    assert problems(objects, caller) == [
        "super().__init__ takes no keyword 'nme'",
        "self.load takes no keyword 'mode'",
        "self.base.load takes 2 positional arguments and is given 3",
        "other.load takes no keyword 'way'",
        "self.made.load takes no keyword 'far'",
    ]


def test_hidden_names_are_left_alone(objects: Objects) -> None:
    caller = HEAD + "\n\ndef f(plain):\n    plain(d=1)\n\n\ndef g():\n    plain = loose\n    plain(d=1)\n"
    assert problems(objects, caller) == []


def test_callers_elsewhere_of_what_a_patch_changes(objects: Objects) -> None:
    lib = LIB.replace(b"def plain(a, b=1, *, c=2)", b"def plain(a, *, c=2)")
    caller = HEAD + "\n\ndef f():\n    return plain(1, b=2)\n"
    blobs = {"pkg/__init__.py": b"", "pkg/lib.py": LIB, "pkg/caller.py": caller.encode()}
    entries = {name: Entry(REGULAR, objects.put("blob", data)) for name, data in blobs.items()}
    without = objects.edit_tree(EMPTY_TREE, entries)
    after = objects.edit_tree(without, {"pkg/lib.py": Entry(REGULAR, objects.put("blob", lib))})
    (found,) = check_seams(objects, without, after, ["pkg/lib.py"])
    assert (found.file, found.line) == ("pkg/caller.py", 7)
    assert found.problem.startswith("plain takes no keyword 'b'")


def test_a_triton_launch(objects: Objects) -> None:
    lib = LIB + b"\n\n@triton.jit\ndef kernel(x, N: tl.constexpr): ...\n"
    good = f"{HEAD}\n\ndef f(grid):\n    lib.kernel[grid](1, N=2, num_warps=4)\n"
    bad = f"{HEAD}\n\ndef f(grid):\n    lib.kernel[grid](1, N=2, BLOCK=4)\n"
    assert problems(objects, good, lib, lib) == []
    assert problems(objects, bad, lib, lib) == ["lib.kernel takes no keyword 'BLOCK'"]


def test_a_file_that_is_not_python(objects: Objects) -> None:
    assert problems(objects, "def f(:\n") == ["is not Python that can be parsed"]
