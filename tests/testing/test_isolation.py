"""A test sees no network, no home, no cache of another, and leaves nothing running."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patchq.testing.isolate import find_isolation
from tests.support.proving import BETTER, prove

if TYPE_CHECKING:
    from tests.support.world import World

needs_namespaces = pytest.mark.skipif(not find_isolation().network, reason="this kernel gives no namespaces")
SEEN = """
import os
import socket
from pathlib import Path
from pkg import model


def test_home_and_caches():
    assert model.first() == 10
    home = Path.home()
    assert not list(home.iterdir())
    assert "patchq-" in str(home)
    for name in ("TMPDIR", "XDG_CACHE_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "VLLM_CACHE_ROOT", "HUMMING_CACHE_DIR"):
        assert os.environ[name].startswith(str(home.parent))
        assert not os.path.isdir(os.environ[name]) or all("pytest" in n for n in os.listdir(os.environ[name]))
    assert "PATCHQ_SECRET" not in os.environ


def test_a_cache_is_left_behind():
    Path(os.environ["XDG_CACHE_HOME"], "left").write_text("x")
    Path(os.environ["HOME"], "left").write_text("x")
"""


def test_a_fresh_home_and_fresh_caches_each_time(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHQ_SECRET", "1")
    world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": SEEN.encode()}))
    for _ in range(2):
        result = prove(world, "--fresh")
        assert result.code == 0, result.out


@needs_namespaces
def test_no_network_but_loopback(world: World) -> None:
    test = b"""
import socket
from pkg import model
import pytest


def test_network():
    assert model.first() == 10
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    with pytest.raises(OSError), socket.socket() as s:
        s.settimeout(5)
        s.connect(("192.0.2.1", 80))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()):
        pass
"""
    world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": test}))
    assert prove(world).code == 0


@needs_namespaces
def test_what_a_test_leaves_running_is_killed(world: World) -> None:
    mark = f"patchq-left-{os.getpid()}"
    test = f"""
import subprocess
from pkg import model


def test_leave():
    assert model.first() == 10
    subprocess.Popen(["sh", "-c", "exec -a {mark} sleep 600"], start_new_session=True)
"""
    world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": test.encode()}))
    assert prove(world).code in {0, 1}
    running = [p for p in Path("/proc").iterdir() if p.name.isdigit() and mark.encode() in _command(p)]
    assert running == []


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def test_the_doctor_says_what_is_missing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.series(("0001-better", {"pkg/model.py": BETTER}))
    found = world.ok("doctor")
    assert found["ok"] is True
    assert found["gates"]["cpu"] == ""
    assert found["environments"][0]["base"] == "v1"
    monkeypatch.setattr("shutil.which", lambda _: None)
    find_isolation.cache_clear()
    try:
        checks = {c["name"]: c for c in world.ok("doctor")["checks"]}
    finally:
        find_isolation.cache_clear()
    assert checks["tests without network"]["ok"] is False
    assert "unshare" in checks["tests without network"]["detail"]
    assert sys.platform == "linux"
