"""Sessions forked off a warm interpreter: as shut in as new ones, and the tree's own modules are never shared."""

from __future__ import annotations

import dataclasses
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from patchq.commands.lanes import open_lane
from patchq.progress import Silent
from patchq.series.series import load_series
from patchq.testing.environment import given_environment
from patchq.testing.isolate import find_isolation
from patchq.testing.session import Asked, prove_patches
from patchq.upstream.store import Store
from tests.support.proving import BETTER, GOOD

if TYPE_CHECKING:
    from tests.support.world import World

pytestmark = pytest.mark.skipif(not find_isolation().tree, reason="this kernel gives no namespaces")
SEEN = """

def test_seen(tmp_path):
    import json, os, socket, subprocess, sys
    from pathlib import Path

    assert "wsgiref" in sys.modules or "wsgiref.util" in sys.modules
    assert model.__file__.startswith(os.getcwd())
    assert os.environ["PYTHONPATH"].split(":")[0] == os.getcwd()
    assert [name for _, name in socket.if_nameindex()] == ["lo"]
    assert not list(Path.home().iterdir())
    (Path.home() / "left").write_text("x")
    child = subprocess.run([sys.executable, "-c", "from pkg import model; print(model.first())"], capture_output=True, text=True)
    assert child.stdout == "10\\n"
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(abs, [-1]) == [1]
"""


def answer(world: World, **asked: Any) -> Any:
    """The first verdict of a proof in an environment that imports beforehand."""
    series = load_series(world.project)
    store = Store()
    plain = given_environment(Path(sys.executable), {})
    environment = dataclasses.replace(plain, preload=("wsgiref.util", "pkg.model"))
    with store.objects() as objects:
        lane = open_lane(series, store, objects, "v1")
        return prove_patches(
            series, objects, lane, Asked(prove=True, **asked), lambda: environment, Silent()
        ).verdicts[0]


@pytest.fixture(params=["root", "user"])
def _identity(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "user":
        monkeypatch.setattr("os.geteuid", lambda: 1000)
    find_isolation.cache_clear()
    if not find_isolation().tree:
        pytest.skip(f"no user namespaces: {find_isolation().why_not}")
    yield
    find_isolation.cache_clear()


@pytest.mark.usefixtures("_identity")
def test_proved(world: World) -> None:
    world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": (GOOD + SEEN.encode())}))
    for _ in range(2):
        verdict = answer(world, fresh=True)
        assert verdict.status == "proved", verdict.against


def test_a_hang_a_crash_and_a_writer(world: World) -> None:
    hang = "\n\ndef test_hang():\n    import time\n    time.sleep(99)\n"
    crash = "\n\ndef test_crash():\n    import os\n    os.abort()\n"
    write = "\n\ndef test_write():\n    open('pkg/model.py', 'a')\n"
    for test, named in ((hang, "hang"), (crash, "crash"), (write, "wrote into its tree")):
        directory = world.top / "author"
        if directory.exists():
            shutil.rmtree(directory)
        world.series(("0001-better", {"pkg/model.py": BETTER, "tests/test_it.py": GOOD + test.encode()}))
        world.describe("0001-better", time_limit=3)
        verdict = answer(world)
        assert any(a.startswith(f"after: {named}") for a in verdict.against), verdict.against
