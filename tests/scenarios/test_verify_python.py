"""verify --python: installs of every kind, held against the series, from inside interpreters of their own."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from patchq.engine.installed import Wanted, examine_python
from tests.support.world import World

STOCK = {
    "README.md": b"an upstream\n",
    "pyproject.toml": b"[project]\nname = 'vllm'\n",
    "vllm/__init__.py": b"raise SystemExit('vllm was imported')\n",
    "vllm/model.py": b"VALUE = 1\n",
    "vllm/gone.py": b"OLD = 1\n",
    "vllm/other.py": b"OTHER = 1\n",
    "vllm/data.json": b"{}\n",
    "tests/test_model.py": b"def test_it(): pass\n",
}
PATCHES = (
    ("0001-value", {"vllm/model.py": b"VALUE = 2\n", "tests/test_model.py": b"def test_two(): pass\n"}),
    ("0002-files", {"vllm/gone.py": None, "vllm/new.py": b"NEW = 1\n", "vllm/data.json": b"[]\n"}),
)
TOUCHED = ["vllm/data.json", "vllm/gone.py", "vllm/model.py", "vllm/new.py"]


class Install:
    """An interpreter of its own, with its site-packages."""

    def __init__(self, top: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", top], check=True)
        self.python = top / "bin" / "python"
        (self.site,) = top.glob("lib/python*/site-packages")

    def plain(self, files: dict[str, bytes], version: str = "9.9") -> None:
        """The package as pip would put it there, without tests."""
        rows = []
        for name, data in files.items():
            if name.startswith("vllm/"):
                (self.site / name).parent.mkdir(parents=True, exist_ok=True)
                (self.site / name).write_bytes(data)
                rows.append(f"{name},,{len(data)}")
        info = self.site / f"vllm-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        (info / "RECORD").write_text("\n".join(rows) + "\n")

    def editable(self, checkout: Path) -> None:
        (self.site / "__editable__.vllm.pth").write_text(f"{checkout}\n")


def patched() -> dict[str, bytes]:
    files: dict[str, bytes | None] = dict(STOCK)
    for _, changes in PATCHES:
        files.update(changes)
    return {name: data for name, data in files.items() if data is not None}


@pytest.fixture(scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("made")
    saved = os.environ.get("PATCHQ_CACHE")
    os.environ["PATCHQ_CACHE"] = str(top / "cache")
    try:
        world = World(top)
        world.start(STOCK)
        world.series(*PATCHES, files=STOCK)
    finally:
        os.environ.pop("PATCHQ_CACHE")
        if saved is not None:
            os.environ["PATCHQ_CACHE"] = saved
    return top


@pytest.fixture
def shop(_made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A project with two patches over a small vllm; the current directory is empty."""
    for name in ("project", "cache", "upstream"):
        shutil.copytree(_made / name, tmp_path / name, symlinks=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return World(tmp_path)


@pytest.fixture
def install(tmp_path: Path) -> Install:
    return Install(tmp_path / "venv")


def blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%b" % (len(data), data)).hexdigest()  # noqa: S324


def look(world: World, install: Install, code: int) -> Any:
    result = world.patchq("verify", "--python", str(install.python), "--json")
    assert result.code == code, result.err + result.out
    assert result.json["ok"] is (code == 0)
    return result.json


def problems(document: Any) -> dict[str, str]:
    return {f["path"]: f["problem"] for f in document["files"]}


def test_a_patched_plain_install(shop: World, install: Install) -> None:
    install.plain(patched())
    found = look(shop, install, 0)
    assert found["tree"] == found["expected"] != ""
    assert found["files"] == []
    assert found["checked"] == TOUCHED
    assert found["not_installed"] == ["tests/test_model.py"]
    assert found["imported"] == str(install.site / "vllm")
    assert found["places"][0]["how"] == "site-packages"
    assert [d["version"] for d in found["distributions"]] == ["9.9"]


def test_a_patched_editable_install(shop: World, install: Install, tmp_path: Path) -> None:
    shop.ok("apply", "--create", str(tmp_path / "made"))
    install.editable(tmp_path / "made")
    found = look(shop, install, 0)
    assert found["checked"] == sorted([*TOUCHED, "tests/test_model.py"])
    assert found["not_installed"] == []
    assert found["places"][0]["how"] == str(install.site / "__editable__.vllm.pth")
    (tmp_path / "made" / "tests" / "test_model.py").write_bytes(b"")
    assert problems(look(shop, install, 1)) == {"tests/test_model.py": "differs"}


def test_an_editable_install_by_an_import_hook(shop: World, install: Install, tmp_path: Path) -> None:
    """setuptools' way, where the package is not in a directory of its own."""
    shop.ok("apply", "--create", str(tmp_path / "made"))
    (install.site / "__editable___vllm_finder.py").write_text(
        "import sys, importlib.util\n"
        "class Finder:\n"
        "    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n"
        "        if name == 'vllm':\n"
        f"            return importlib.util.spec_from_file_location(name, {str(tmp_path / 'made/vllm/__init__.py')!r})\n"
        "sys.meta_path.append(Finder)\n"
    )
    (install.site / "__editable__.vllm.pth").write_text("import __editable___vllm_finder\n")
    found = look(shop, install, 0)
    assert found["places"][0]["how"] == "the import hook of __editable___vllm_finder"
    (tmp_path / "here" / "vllm").mkdir()
    found = look(shop, install, 1)
    assert [(p["how"], p["plain"]) for p in found["places"]] == [
        ("the current directory", False),
        ("the import hook of __editable___vllm_finder", True),
    ]


def test_a_stock_install(shop: World, install: Install) -> None:
    install.plain(STOCK)
    found = look(shop, install, 1)
    assert problems(found) == {
        "vllm/data.json": "differs",
        "vllm/gone.py": "extra",
        "vllm/model.py": "differs",
        "vllm/new.py": "missing",
    }
    assert {f["path"]: f["patches"] for f in found["files"]}["vllm/model.py"] == ["0001-value"]
    assert found["tree"] == ""


def test_no_install_at_all(shop: World, install: Install) -> None:
    found = look(shop, install, 1)
    assert (found["imported"], found["places"]) == ("", [])
    assert problems(found) == dict.fromkeys(sorted([*TOUCHED, "tests/test_model.py"]), "missing")
    said = shop.patchq("verify", "--python", str(install.python))
    assert said.out == f"{install.python} imports no vllm\n"


def test_one_file_reverted(shop: World, install: Install) -> None:
    install.plain({**patched(), "vllm/model.py": STOCK["vllm/model.py"]})
    assert problems(look(shop, install, 1)) == {"vllm/model.py": "differs"}
    said = shop.patchq("verify", "--python", str(install.python))
    assert said.out.splitlines()[0] == "vllm/model.py\tdiffers\t0001-value"


def test_a_file_that_no_patch_touches_counts(shop: World, install: Install) -> None:
    install.plain({**patched(), "vllm/other.py": b"OTHER = 3\n"})
    assert problems(look(shop, install, 1)) == {"vllm/other.py": "differs"}


def test_shadowed_by_the_current_directory(shop: World, install: Install, tmp_path: Path) -> None:
    install.plain(patched())
    (tmp_path / "here" / "vllm").mkdir()
    (tmp_path / "here" / "vllm" / "__init__.py").write_bytes(STOCK["vllm/__init__.py"])
    found = look(shop, install, 1)
    assert [(p["path"], p["how"], p["patched"]) for p in found["places"]] == [
        (str(tmp_path / "here" / "vllm"), "the current directory", False),
        (str(install.site / "vllm"), "site-packages", True),
    ]
    assert problems(found) == {
        "vllm/data.json": "missing",
        "vllm/model.py": "missing",
        "vllm/new.py": "missing",
        "vllm/other.py": "missing",
    }
    said = shop.patchq("verify", "--python", str(install.python)).out
    assert (
        f"{tmp_path / 'here' / 'vllm'} (the current directory) hides {install.site / 'vllm'} (site-packages), which is patched"
        in said
    )


def test_what_is_hidden_is_held_against_its_own_lane(shop: World, install: Install, tmp_path: Path) -> None:
    """A stray copy is like no lane; the install behind it says which one is meant."""
    del shop
    install.plain({"vllm/__init__.py": b"", "vllm/model.py": b"VALUE = 2\n"})
    (tmp_path / "here" / "vllm").mkdir()
    (tmp_path / "here" / "vllm" / "__init__.py").write_bytes(b"STRAY = 1\n")

    def lane(base: str, value: bytes) -> Wanted:
        model: dict[str, str | None] = {"vllm/model.py": blob_id(value)}
        return Wanted("vllm", base, "", ("0001-value",), model, {"vllm/__init__.py": blob_id(b"")}, "9.9", {})

    found = examine_python(install.python, [lane("v1", b"VALUE = 1\n"), lane("v2", b"VALUE = 2\n")])
    assert (found.ok, found.wanted.base) == (False, "v2")
    assert [place["patched"] for place in found.places] == [False, True]


def test_shadowed_by_pythonpath_and_a_pth(
    shop: World, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install.plain(patched())
    for name in ("first", "last"):
        shutil.copytree(install.site / "vllm", tmp_path / name / "vllm")
    (tmp_path / "first" / "vllm" / "model.py").write_bytes(b"VALUE = 0\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "first"))
    (install.site / "more.pth").write_text(f"# a comment\n{tmp_path / 'last'}\n")
    found = look(shop, install, 1)
    assert [(p["how"], p["patched"]) for p in found["places"]] == [
        ("PYTHONPATH", False),
        ("site-packages", True),
        (str(install.site / "more.pth"), True),
    ]
    assert problems(found) == {"vllm/model.py": "differs"}


@pytest.mark.parametrize("mode", ["UNCHECKED_HASH", "TIMESTAMP"])
def test_stale_bytecode_that_python_would_run(shop: World, install: Install, mode: str) -> None:
    """Bytecode of the stock file, of the same size and time as the patched one: the source alone looks right."""
    install.plain(STOCK)
    source = install.site / "vllm" / "model.py"
    os.utime(source, (1_700_000_000, 1_700_000_000))
    cached = py_compile.compile(str(source), invalidation_mode=py_compile.PycInvalidationMode[mode])
    (install.site / "vllm" / "gone.py").unlink()
    for name, data in patched().items():
        if name.startswith("vllm/"):
            (install.site / name).write_bytes(data)
    os.utime(source, (1_700_000_000, 1_700_000_000))
    assert cached is not None
    ran = subprocess.run(
        [
            install.python,
            "-c",
            "import sys; sys.path.insert(0, sys.argv[1]); import model; print(model.VALUE)",
            source.parent,
        ],
        capture_output=True,
        check=True,
    )
    assert ran.stdout == b"1\n", (
        "the interpreter runs the stale bytecode, so that the test is about something"
    )
    assert problems(look(shop, install, 1)) == {str(Path(cached).relative_to(install.site)): "stale bytecode"}


def test_bytecode_that_is_right_or_harmless(shop: World, install: Install) -> None:
    install.plain(patched())
    inside = install.site / "vllm"
    py_compile.compile(str(inside / "new.py"))
    unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
    fine = py_compile.compile(str(inside / "model.py"), invalidation_mode=unchecked)
    left = Path(importlib.util.cache_from_source(str(inside / "gone.py")))
    assert fine is not None
    shutil.copy(fine, left)
    notes = {n["path"]: n["note"] for n in look(shop, install, 0)["notes"]}
    assert notes == {
        str(left.relative_to(install.site)): "orphan bytecode",
        str(Path(fine).relative_to(install.site)): "unchecked bytecode",
    }
    left.rename(inside / "gone.pyc")
    assert problems(look(shop, install, 1)) == {"vllm/gone.pyc": "sourceless bytecode"}


def test_an_interpreter_behind_a_script(shop: World, install: Install, tmp_path: Path) -> None:
    """As where it is in a container: a pipe and arguments are all there is."""
    install.plain(patched())
    wrapper = tmp_path / "in-container"
    wrapper.write_text(f'#!/bin/sh\ncd / && exec env -i {install.python} "$@"\n')
    wrapper.chmod(0o755)
    assert shop.ok("verify", "--python", str(wrapper))["ok"]


def test_a_script_proves_it_without_patchq(shop: World, install: Install, tmp_path: Path) -> None:
    install.plain(patched())
    script = tmp_path / "verify_vllm.py"
    assert (
        shop.ok("verify", "--script", str(script))["tree"]
        == shop.ok("verify", "--python", str(install.python))["tree"]
    )

    def run() -> tuple[int, str]:
        done = subprocess.run(
            [install.python, script], capture_output=True, check=False, cwd=tmp_path / "here", env={}
        )
        assert done.stderr == b""
        return done.returncode, done.stdout.decode()

    code, said = run()
    assert code == 0
    assert said.splitlines()[-1].startswith("ok: v1 with 0001-value, 0002-files, tree ")
    (install.site / "vllm" / "new.py").write_bytes(b"")
    code, said = run()
    assert code == 1
    assert said.splitlines()[0] == "differs\tvllm/new.py"


def test_a_part_of_the_series_is_told_from_the_whole(shop: World, install: Install) -> None:
    half = {**STOCK, **{n: d for n, d in PATCHES[0][1].items() if d is not None}}
    install.plain(half)
    assert shop.patchq("verify", "--python", str(install.python)).code == 1
    assert shop.ok("verify", "--python", str(install.python), "--upto", "1")["patches"] == [
        {"id": "0001-value"}
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "verify takes a checkout"),
        (("x", "--python", "y"), "verify takes a checkout"),
        (("--python", "no-such-interpreter"), "cannot be run"),
        (("--python", "/bin/ls"), "does not run as a Python interpreter"),
    ],
)
def test_wrong_words(shop: World, words: tuple[str, ...], said: str) -> None:
    result = shop.patchq("verify", *words, "--json")
    assert result.code == 2
    assert said in json.loads(result.out)["error"]["message"]
