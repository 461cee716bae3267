"""build: decided by what differs from the base, carried out by the real pip, from an index on this machine."""

from __future__ import annotations

import io
import json
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.server import Index, serving
from tests.support.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

BACKEND = b"""
import os, pathlib, zipfile
def get_requires_for_build_editable(config_settings=None):
    return []
def build_editable(directory, config_settings=None, metadata_directory=None):
    here = pathlib.Path.cwd()
    what = [os.environ.get(n, "") for n in ("VLLM_TARGET_DEVICE", "SETUPTOOLS_SCM_PRETEND_VERSION", "VLLM_USE_PRECOMPILED")]
    (here / "vllm" / "_C.so").write_text("/".join([*what, (here / "csrc" / "ops.cu").read_text()]))
    name = "vllm-9.9.9-py3-none-any.whl"
    info = "vllm-9.9.9.dist-info/"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as wheel:
        wheel.writestr("own_build.pth", str(here))
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: vllm\\nVersion: 9.9.9\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""
STOCK = {
    ".gitignore": b"*.so\n__pycache__/\nvllm/vllm-rs\n",
    "pyproject.toml": b'[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
    "backend.py": BACKEND,
    "setup.py": b're.compile(r"vllm/third_party/deep_gemm/.*")\n',
    "csrc/ops.cu": b"stock",
    "requirements/common.txt": b"numpy\n",
    "requirements/cuda.txt": b"-r common.txt\ntorch==1.0\n",
    "vllm/__init__.py": b"",
    "vllm/model.py": b"VALUE = 1\n",
}
PYTHON = (("0001-value", {"vllm/model.py": b"VALUE = 2\n", "tests/test_model.py": b""}),)
METADATA = b"Metadata-Version: 2.4\nName: vllm\nVersion: 9.9.9\nRequires-Python: >=3.9\nRequires-Dist: torch==1.0\nRequires-Dist: extra; extra == 'x'\n\nText\n"
POINTS = b"[console_scripts]\nvllm = vllm.model:main\n"


def wheel() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("vllm/__init__.py", b"")
        archive.writestr("vllm/_C.so", b"released")
        archive.writestr("vllm/sub/_D.so", b"released too")
        archive.writestr("vllm-9.9.9.dist-info/METADATA", METADATA)
        archive.writestr("vllm-9.9.9.dist-info/entry_points.txt", POINTS)
    return out.getvalue()


WHEEL = f"vllm-9.9.9-cp38-abi3-manylinux1_{platform.machine()}.whl"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    with serving(Index({WHEEL: wheel()})) as made:
        monkeypatch.setenv("PIP_INDEX_URL", made.url)
        yield made


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter with pip; what a test installs, the next one replaces."""
    top = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", top], check=True)
    return top / "bin" / "python"


def project(tmp_path: Path, *patches: tuple[str, dict[str, bytes | None]]) -> tuple[World, Path]:
    """A world whose base is the release v9.9.9, and a checkout with the patches."""
    world = World(tmp_path)
    world.write_upstream(STOCK)
    (world.project / "series").mkdir(parents=True)
    (world.project / "upstream.lock").write_text("version: 1\nbases: {}\nlanes: {}\n")
    assert world.patchq("upstream", "add", "v9.9.9", "--directory", str(world.upstream)).code == 0
    world.series(*patches, files=STOCK)
    made = tmp_path / "made"
    world.ok("apply", "--create", str(made))
    return world, made


def kinds(document: Any) -> dict[str, str]:
    return {f["path"]: f["class"] for f in document["files"]}


def steps(document: Any) -> list[str]:
    return [s["name"] for s in document["steps"]]


def test_python_alone_takes_the_release_and_is_verified(
    tmp_path: Path, index: Index, interpreter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, made = project(tmp_path, *PYTHON)
    monkeypatch.chdir(tmp_path / "home")
    planned = world.ok("build", str(made), "--device", "cuda", "--plan")
    assert planned["class"] == "python"
    assert steps(planned) == ["extensions", "dependencies", "install"]
    assert index.asked == [], "a plan downloads nothing"
    assert kinds(planned) == {"tests/test_model.py": "nothing", "vllm/model.py": "python"}
    assert planned["files"][1]["patches"] == ["0001-value"]

    words = ("build", str(made), "--device", "cuda", "--no-deps", "--python", str(interpreter))
    done = world.ok(*words)
    assert (made / "vllm" / "_C.so").read_bytes() == b"released"
    assert (made / "vllm" / "sub" / "_D.so").read_bytes() == b"released too"
    assert done["imported"] == str(made / "vllm")
    built = done["built"]
    assert (built["wheel"], built["wheel_version"], built["base"]) == (WHEEL, "9.9.9", "v9.9.9")
    assert built["patches"] == ["0001-value"]
    assert built["tree"] == done["tree"]
    (info,) = interpreter.parents[1].glob("lib/python*/site-packages/vllm-*.dist-info")
    assert json.loads((info / "patchq-build.json").read_text()) == built
    assert "Requires-Dist: torch==1.0\n" in (info / "METADATA").read_text()
    assert (info / "entry_points.txt").read_bytes() == POINTS
    assert (interpreter.parent / "vllm").is_file()
    assert world.ok("verify", "--python", str(interpreter))["ok"]
    assert world.git("status", "--porcelain", cwd=made) == ""
    again = len(index.asked)
    assert world.ok(*words)["ok"]
    assert len(index.asked) == again, "the wheel is fetched once"


@pytest.mark.usefixtures("index")
def test_local_native_edits_are_seen(tmp_path: Path) -> None:
    """Committed, uncommitted or new: the release's extensions are not those of this checkout."""
    world, made = project(tmp_path, *PYTHON)
    words = ("build", str(made), "--device", "cuda", "--plan")
    (made / "csrc" / "new.cu").write_bytes(b"new")
    planned = world.ok(*words)
    assert (planned["class"], steps(planned)) == ("native", ["compile", "dependencies"])
    assert planned["steps"][0]["files"] == ["csrc/new.cu"]
    (made / "csrc" / "new.cu").unlink()
    (made / "csrc" / "ops.cu").write_bytes(b"mine")
    assert world.ok(*words)["steps"][0]["files"] == ["csrc/ops.cu"]
    world.git("commit", "-qam", "mine", cwd=made)
    assert world.ok(*words)["steps"][0]["files"] == ["csrc/ops.cu"]
    assert steps(world.ok("build", str(made), "--device", "empty", "--plan"))[0] == "nothing"


def test_a_native_patch_is_compiled_by_the_trees_own_build(
    tmp_path: Path, index: Index, interpreter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, made = project(tmp_path, *PYTHON, ("0002-op", {"csrc/ops.cu": b"patched"}))
    monkeypatch.chdir(tmp_path / "home")
    words = ("build", str(made), "--device", "cpu", "--python", str(interpreter))
    monkeypatch.setenv("PATH", f"{tmp_path / 'tools'}:{_path_to('git')}")
    result = world.patchq(*words)
    assert result.code == 3
    assert "c++ is not on PATH, and csrc/ops.cu must be compiled" in result.err
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "c++").write_text("#!/bin/sh\n")
    (tmp_path / "tools" / "c++").chmod(0o755)
    monkeypatch.setenv("VLLM_USE_PRECOMPILED", "1")
    done = world.ok(*words)
    assert done["class"] == "native"
    assert (made / "vllm" / "_C.so").read_text() == "cpu/9.9.9//patched"
    assert done["imported"] == str(made / "vllm")
    assert index.asked == []

    result = world.patchq("unapply", str(made))
    assert result.code == 0
    result = world.patchq("build", str(made), "--device", "cuda", "--no-deps", "--python", str(interpreter))
    assert result.code == 1
    assert "has compiled files that patchq did not put there: vllm/_C.so" in result.err
    assert (made / "vllm" / "_C.so").read_text() == "cpu/9.9.9//patched"
    (made / "vllm" / "_C.so").unlink()
    assert world.ok("build", str(made), "--device", "cuda", "--no-deps", "--python", str(interpreter))["ok"]
    assert (made / "vllm" / "_C.so").read_bytes() == b"released"
    assert world.ok("build", str(made), "--device", "empty", "--no-deps", "--python", str(interpreter))["ok"]
    assert not (made / "vllm" / "_C.so").exists()


def _path_to(program: str) -> str:
    """A directory that has one program and no compiler."""
    found = shutil.which(program)
    assert found is not None
    alone = Path(os.environ["HOME"]) / "alone"
    alone.mkdir(exist_ok=True)
    if not (alone / program).exists():
        (alone / program).symlink_to(found)
    return str(alone)


@pytest.mark.usefixtures("index")
def test_changed_requirements_are_installed(tmp_path: Path) -> None:
    world, made = project(tmp_path, ("0001-needs", {"requirements/cuda.txt": b"-r common.txt\ntorch==2.0\n"}))
    planned = world.ok("build", str(made), "--device", "cuda", "--plan")
    assert planned["class"] == "requirements"
    assert planned["steps"][1]["why"] == "requirements/cuda.txt changed"


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("vllm/_version.py", "the build generates it"),
        ("vllm/third_party/deep_gemm/x.py", "overwrites what is there"),
        ("cmake/external_projects/a.cmake", "sources in another repository"),
    ],
)
def test_what_no_build_would_keep_is_refused(tmp_path: Path, path: str, why: str) -> None:
    world, made = project(tmp_path, *PYTHON)
    (made / path).parent.mkdir(parents=True, exist_ok=True)
    (made / path).write_bytes(b"x")
    world.git("add", "-f", path, cwd=made)
    result = world.patchq("build", str(made), "--device", "cuda", "--json")
    assert result.code == 1
    assert result.json["class"] == "refused"
    (refused,) = result.json["refused"]
    assert refused["path"] == path
    assert why in refused["why"]
    assert result.json["steps"] == []


def test_another_release_never_stands_in(tmp_path: Path, index: Index) -> None:
    world, made = project(tmp_path, *PYTHON)
    index.files = {WHEEL.replace("9.9.9", "9.9.8"): wheel(), WHEEL.replace("9.9.9", "9.9.10"): wheel()}
    result = world.patchq("build", str(made), "--device", "cuda")
    assert result.code == 1
    assert "no wheel of vllm 9.9.9 for this machine" in result.err
    assert "--compile" in result.err
    assert steps(world.ok("build", str(made), "--device", "cuda", "--plan", "--compile"))[0] == "compile"


def test_a_base_that_is_no_release_has_no_extensions(world: World, tmp_path: Path) -> None:
    made = tmp_path / "made"
    world.series(("0001-first", {"pkg/bare.py": b"x"}))
    world.ok("apply", "--create", str(made))
    result = world.patchq("build", str(made), "--device", "cpu")
    assert result.code == 1
    assert "v1 is no release of vLLM" in result.err
