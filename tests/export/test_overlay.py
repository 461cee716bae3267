"""An overlay over an installed package: put on, checked, taken off; refused on any mismatch; killed at every write."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.support.killing import killed_in
from tests.support.world import World

ROOT = Path(__file__).parents[2]

STOCK = {
    "vllm/__init__.py": b"",
    "vllm/engine.py": b"SPEED = 1\n",
    "vllm/old.py": b"GONE = 1\n",
    "tests/test_engine.py": b"def test_it():\n    pass\n",
    "csrc/kernel.cu": b"int x;\n",
    "docs/index.md": b"# vLLM\n",
    "setup.py": b"",
}
PATCHED = {
    **STOCK,
    "vllm/engine.py": b"SPEED = 2\n",
    "vllm/new/deep.py": b"NEW = 1\n",
    "docs/index.md": b"# vLLM, faster\n",
    "tests/test_engine.py": b"def test_it():\n    assert True\n",
}
del PATCHED["vllm/old.py"]
WHEEL = [p for p in STOCK if p.startswith("vllm/")]


@pytest.fixture
def fast(tmp_path: Path) -> World:
    """A series of one patch: it changes, adds and deletes a file of the package, a test and a document."""
    world = World(tmp_path)
    world.start(STOCK)
    changes = {p: PATCHED.get(p) for p in {*STOCK, *PATCHED} if STOCK.get(p) != PATCHED.get(p)}
    world.series(("0001-fast", changes), files=STOCK)
    return world


def site(world: World, version: str = "9.1", name: str = "site") -> Path:
    """What a wheel of the base unpacks to."""
    top = world.write_upstream({p: STOCK[p] for p in WHEEL}, at=world.top / name)
    for path in WHEEL:
        os.utime(top / path, ns=(10**18, 10**18))
    info = top / f"vllm-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: vllm\nVersion: {version}\n\nVersion: 0\n")
    hashes = {
        p: base64.urlsafe_b64encode(hashlib.sha256(STOCK[p]).digest()).rstrip(b"=").decode() for p in WHEEL
    }
    (info / "RECORD").write_text("".join(f"{p},sha256={h},1\n" for p, h in hashes.items()))
    return top


def files(top: Path) -> dict[str, tuple[bytes, int, int]]:
    """The package as it lies there: content, mode and time."""
    return {
        p.relative_to(top).as_posix(): (p.read_bytes(), p.stat().st_mode, p.stat().st_mtime_ns)
        for p in top.rglob("*")
        if p.is_file()
    }


def package(top: Path) -> dict[str, bytes]:
    return {n: f[0] for n, f in files(top).items() if n.startswith("vllm/")}


def export(world: World, *args: str) -> Path:
    """An overlay, with the version that a release's has."""
    out = world.top / "overlay"
    world.ok("export", "overlay", "--out", str(out), *args)
    manifest = json.loads((out / "manifest.json").read_bytes())
    (out / "manifest.json").write_text(json.dumps({**manifest, "version": "9.1"}))
    return out


def script(overlay: Path, *args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The script as a user runs it, by an interpreter that has nothing but the standard library."""
    command = [sys.executable, "-I", "-S", str(overlay / "install.py"), *args]
    return subprocess.run(command, capture_output=True, check=False, text=True, cwd=cwd)


AFTER = {p: d for p, d in PATCHED.items() if p.startswith("vllm/")}
BEFORE = {p: STOCK[p] for p in WHEEL}


def test_the_files_of_the_package_and_no_others(fast: World) -> None:
    out = fast.top / "overlay"
    document = fast.ok("export", "overlay", "--out", str(out))
    assert document["files"] == ["vllm/engine.py", "vllm/new/deep.py", "vllm/old.py"]
    assert document["left_out"] == ["docs/index.md", "tests/test_engine.py"]
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == {
        ".patchq-export.json",
        "files/vllm/engine.py",
        "files/vllm/new/deep.py",
        "install.py",
        "manifest.json",
    }
    manifest = json.loads((out / "manifest.json").read_bytes())
    assert manifest["tree"] == document["tree"]
    by_path = {f["path"]: f for f in manifest["files"]}
    assert by_path["vllm/engine.py"]["stock"] == hashlib.sha256(b"SPEED = 1\n").hexdigest()
    assert by_path["vllm/engine.py"]["patched"] == hashlib.sha256(b"SPEED = 2\n").hexdigest()
    assert by_path["vllm/new/deep.py"]["stock"] is None
    assert by_path["vllm/old.py"]["patched"] is None
    first = files(out)
    fast.ok("export", "overlay", "--out", str(out), "--tests")
    assert (out / "tests/test_engine.py").read_bytes() == PATCHED["tests/test_engine.py"]
    fast.ok("export", "overlay", "--out", str(out))
    assert {n: f[:2] for n, f in files(out).items()} == {n: f[:2] for n, f in first.items()}


def test_a_directory_of_others_is_left_alone(fast: World) -> None:
    (fast.top / "mine").mkdir()
    (fast.top / "mine" / "note").write_text("mine")
    refused = fast.patchq("export", "overlay", "--out", str(fast.top / "mine"))
    assert refused.code == 2
    assert "holds what patchq did not write there: note" in refused.err
    assert [p.name for p in fast.top.joinpath("mine").iterdir()] == ["note"]
    assert not [p for p in fast.top.iterdir() if p.name.startswith(".mine")]


def test_what_is_compiled_is_refused(world: World) -> None:
    world.series(("0001-kernel", {"csrc/kernel.cu": b"int y;\n", "vllm/a.py": b"a = 1\n"}))
    refused = world.patchq("export", "overlay", "--out", str(world.top / "out"))
    assert refused.code == 1
    assert "csrc/kernel.cu: compiled into the extensions" in refused.err
    assert not (world.top / "out").exists()


def test_on_again_and_off(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    before = files(top)
    assert script(overlay, "--check", "--into", str(top)).returncode == 1
    done = script(overlay, "--into", str(top))
    assert (done.returncode, done.stdout) == (0, f"installed: 3 files in {top}\n")
    assert package(top) == AFTER
    checked = script(overlay, "--check", "--into", str(top))
    assert (checked.returncode, checked.stdout) == (0, f"on: 3 files in {top}\n")
    installed = files(top)
    again = script(overlay, "--into", str(top))
    assert (again.returncode, files(top)) == (0, installed)
    assert "nothing to do" in again.stdout
    assert script(overlay, "--undo", "--into", str(top)).returncode == 0
    assert files(top) == before
    assert sorted(p.name for p in top.iterdir()) == ["vllm", "vllm-9.1.dist-info"]
    assert not (top / "vllm/new").exists()
    assert script(overlay, "--undo", "--into", str(top)).returncode == 0


def test_the_interpreter_that_runs_it_names_the_place(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    command = [sys.executable, "-S", str(overlay / "install.py")]
    done = subprocess.run(command, env={"PYTHONPATH": str(top)}, capture_output=True, check=True, cwd=overlay)
    assert done.stdout.decode() == f"installed: 3 files in {top}\n"
    lost = script(overlay, "--check")
    assert lost.returncode == 1
    assert "has no vllm; name its site-packages" in lost.stderr


@pytest.mark.parametrize("version", ["9.2", "9.10", "9.1rc1"])
def test_another_version_is_refused(fast: World, version: str) -> None:
    overlay, top = export(fast), site(fast, version)
    before = files(top)
    for args in ([], ["--check"]):
        done = script(overlay, *args, "--into", str(top))
        assert done.returncode == 1
        assert f"vllm in {top} is {version}, the overlay is for 9.1" in done.stderr
    assert files(top) == before


def test_a_local_version_is_the_same_release(fast: World) -> None:
    assert script(export(fast), "--into", str(site(fast, "9.1+cu129"))).returncode == 0


def test_a_drifted_file_is_named_and_nothing_is_written(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    (top / "vllm/old.py").unlink()
    (top / "vllm/engine.py").write_bytes(b"SPEED = 1.5\n")
    (top / "vllm/new").mkdir()
    (top / "vllm/new/deep.py").write_bytes(b"theirs\n")
    before = files(top)
    done = script(overlay, "--into", str(top))
    assert done.returncode == 1
    assert "vllm/engine.py is neither the stock file nor the patched one" in done.stderr
    assert "vllm/new/deep.py is neither" in done.stderr
    assert files(top) == before


def test_a_file_that_drifts_afterwards(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    script(overlay, "--into", str(top))
    (top / "vllm/engine.py").write_bytes(b"SPEED = 3\n")
    before = files(top)
    for args in (["--check"], [], ["--undo"]):
        done = script(overlay, *args, "--into", str(top))
        assert done.returncode == 1, args
        assert "vllm/engine.py is neither" in done.stderr
    assert files(top) == before
    (top / "vllm/engine.py").write_bytes(STOCK["vllm/engine.py"])
    reverted = script(overlay, "--check", "--into", str(top))
    assert (reverted.returncode, reverted.stderr) == (1, "vllm/engine.py is the stock file\n")
    assert script(overlay, "--into", str(top)).returncode == 0
    assert package(top) == AFTER


def test_stale_bytecode_does_not_run(fast: World) -> None:
    """Same size, same second: Python would go on with what it compiled before."""
    overlay, top = export(fast), site(fast)
    show = [sys.executable, "-c", "from vllm import engine; print(engine.SPEED)"]
    stamp = (top / "vllm/engine.py").stat()

    def shown() -> str:
        return subprocess.run(show, cwd=top, capture_output=True, check=True, text=True, env={}).stdout

    assert shown() == "1\n"
    assert script(overlay, "--into", str(top)).returncode == 0
    os.utime(top / "vllm/engine.py", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert shown() == "2\n"
    assert script(overlay, "--undo", "--into", str(top)).returncode == 0
    assert shown() == "1\n"


def test_mounted_over_another_build(fast: World) -> None:
    """Mounted files hide the stock ones; what the wheel recorded of those tells."""
    overlay, top = export(fast), site(fast)
    options = script(overlay, "--mounts", "/site").stdout
    assert "cannot" in script(overlay, "--mounts", "/site").stderr
    assert options == ""
    for path, data in AFTER.items():
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_bytes(data)
    (top / "vllm/old.py").unlink()
    assert script(overlay, "--check", "--into", str(top)).returncode == 0
    record = top / "vllm-9.1.dist-info" / "RECORD"
    record.write_text(record.read_text().replace("vllm/engine.py,sha256=", "vllm/engine.py,sha256=AAAA"))
    stale = script(overlay, "--check", "--into", str(top))
    assert stale.returncode == 1
    assert "vllm/engine.py lies over another file than the one that it was made from" in stale.stderr


def test_mount_options(world: World) -> None:
    world.series(("0001-one", {"vllm/a.py": b"a = 1\n"}))
    out = world.top / "out"
    world.ok("export", "overlay", "--out", str(out))
    done = script(out, "--mounts", "/opt/site-packages/")
    assert done.stdout == f"--volume={out}/files/vllm/a.py:/opt/site-packages/vllm/a.py:ro\n"


def test_a_damaged_overlay(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    before = files(top)
    (overlay / "files/vllm/engine.py").write_bytes(b"SPEED = 9\n")
    done = script(overlay, "--into", str(top))
    assert (done.returncode, files(top)) == (1, before)
    assert "files/vllm/engine.py is damaged" in done.stderr
    (overlay / "manifest.json").write_text("{")
    assert script(overlay, "--into", str(top)).returncode == 1


def test_another_overlay_is_there_already(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    assert script(overlay, "--into", str(top)).returncode == 0
    other = fast.top / "other"
    overlay.rename(other)
    manifest = json.loads((other / "manifest.json").read_bytes())
    (other / "manifest.json").write_text(json.dumps({**manifest, "tree": "0" * 40}))
    for args in ([], ["--undo"], ["--check"]):
        done = script(other, *args, "--into", str(top))
        assert done.returncode == 1
        assert f"another overlay is installed in {top} (0001-fast)" in done.stderr
    assert package(top) == AFTER


@pytest.fixture
def _forking() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


@pytest.mark.usefixtures("_forking")
def test_killed_at_every_write(fast: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a kill leaves, running it again finishes it, and --undo takes it back; --check never says yes too early."""
    overlay, top = export(fast), site(fast)
    spec = importlib.util.spec_from_file_location("overlay_install", overlay / "install.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    spec.loader.exec_module(module)
    before = files(top)

    def run(*args: str) -> int:
        monkeypatch.setattr(sys, "argv", ["install.py", *args, "--into", str(top)])
        return int(module.main())

    points = 0
    for number in itertools.count(1):
        if not killed_in(number, run):
            break
        points = number
        on = run("--check") == 0
        assert not on or package(top) == AFTER
        assert run("--undo") == 0
        assert files(top) == before
        killed_in(number, run)
        assert run() == 0
        assert package(top) == AFTER
        assert run("--check") == 0
        assert killed_in(number, lambda: run("--undo")) or package(top) == BEFORE
        assert run("--undo") == 0
        assert files(top) == before
    assert points > 20


def test_two_at_once(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    before = files(top)
    held = os.open(top / "vllm", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)
    try:
        done = script(overlay, "--into", str(top))
    finally:
        os.close(held)
    assert (done.returncode, files(top)) == (3, before)
    assert done.stderr == f"{top}: another install.py is at work here\n"
    assert script(overlay, "--into", str(top)).returncode == 0


def build(overlay: Path, top: Path, image: str) -> int:
    """Do what ci/Containerfile says, with a directory for /opt/patchq and a shell for the build; give its exit code."""
    opt = overlay.parent / "opt"
    text = (ROOT / "ci" / "Containerfile").read_text().replace("\\\n", "").replace("/opt/patchq", str(opt))
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "COPY":
            assert rest == f"overlay {opt}"
            shutil.copytree(overlay, opt, dirs_exist_ok=True)
        elif word == "RUN":
            env = {"PATH": os.environ["PATH"], "IMAGE": image, "PYTHONPATH": str(top)}
            done = subprocess.run(["sh", "-c", rest], env=env, capture_output=True, check=False)
            if done.returncode:
                return done.returncode
        else:
            assert word in {"", "#", "ARG", "FROM"}
    return 0


def test_the_image_recipe_fails_closed(fast: World) -> None:
    overlay, top = export(fast), site(fast)
    pinned = f"docker.io/vllm/vllm-openai@sha256:{'0a' * 32}"
    before = files(top)
    for image in ("", "vllm/vllm-openai:v9.1", pinned[:-1], f"{pinned}0"):
        assert build(overlay, top, image) == 1, image
    (top / "vllm/engine.py").write_bytes(b"other\n")
    assert build(overlay, top, pinned) == 1
    (top / "vllm/engine.py").write_bytes(STOCK["vllm/engine.py"])
    assert package(top) == {n: f[0] for n, f in before.items() if n.startswith("vllm/")}
    assert build(overlay, top, pinned) == 0
    assert package(top) == AFTER
