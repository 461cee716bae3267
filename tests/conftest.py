"""Every test runs in a world of its own: home, cache, locale, zone and git identity."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import filelock
import pytest

from tests.scenarios.kinds import KINDS, is_case, table
from tests.support.world import World, three_patches

SHARED_CACHE = os.environ.get("PATCHQ_CACHE")
"""The cache that real trees are kept in between runs; tests of throwaway repositories never see it."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
"""A shell has what it starts in the background ignore Ctrl-C, and children would inherit that."""


@pytest.fixture(autouse=True)
def _own_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith(("GIT_", "PATCHQ_"))]:
        monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / ".cache"))
    monkeypatch.setenv("PATCHQ_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A project with a base and no patch yet."""
    made = World(tmp_path)
    made.start()
    return made


@pytest.fixture(scope="session")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with three patches, made once."""
    top = tmp_path_factory.mktemp("template")
    saved = {n: os.environ.get(n) for n in ("PATCHQ_CACHE",)}
    os.environ["PATCHQ_CACHE"] = str(top / "cache")
    try:
        made = World(top)
        made.start()
        made.series(*three_patches())
    finally:
        for name, value in saved.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
    return top


@pytest.fixture
def stacked(tmp_path: Path, _template: Path) -> World:
    """A project with three patches, written by patchq."""
    for name in ("project", "cache", "upstream"):
        shutil.copytree(_template / name, tmp_path / name, symlinks=True)
    return World(tmp_path)


@pytest.fixture(scope="session")
def real_cache() -> Path:
    """The shared cache with every released base in it; fetched on first use, by one test process for all."""
    import platformdirs

    cache = (
        Path(SHARED_CACHE) if SHARED_CACHE else Path(platformdirs.user_cache_dir("patchq", appauthor=False))
    )
    root = Path(__file__).parents[1]
    bases = ["v0.27.1", *(f"v0.{minor}.0" for minor in range(28, 34))]
    command = [sys.executable, "-m", "patchq", "--root", str(root), "upstream", "fetch", *bases]
    env = {**os.environ, "PATCHQ_CACHE": str(cache), "PYTHONPATH": str(root)}
    cache.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(cache / "tests.lock"):
        done = subprocess.run(command, env=env, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return cache


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scenarios",
        action="store_true",
        help="print a table of the kinds of trouble; fail where one has no case",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With --scenarios, the cases of the kinds and no other test."""
    if config.getoption("--scenarios"):
        cases = [c for kinds in KINDS.values() for some in kinds.values() for c in some]
        chosen = [any(is_case(c, item.nodeid) for c in cases) for item in items]
        config.hook.pytest_deselected(items=[i for i, yes in zip(items, chosen, strict=True) if not yes])
        items[:] = [i for i, yes in zip(items, chosen, strict=True) if yes]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """With --scenarios, red where a kind has no case that passed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and session.config.getoption("--scenarios") and kinds_table(reporter)[1]:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """With --scenarios, the table, and what is wanting."""
    if config.getoption("--scenarios"):
        text, wanting = kinds_table(terminalreporter)
        terminalreporter.write_line(f"\n{text}\n")
        for kind in wanting:
            terminalreporter.write_line(f"wanting: {kind}", red=True)


def kinds_table(reporter: pytest.TerminalReporter) -> tuple[str, list[str]]:
    """The table of the tests that were run."""
    names = {"passed": "passed", "skipped": "skipped", "failed": "failed", "error": "failed"}
    return table({r.nodeid: name for kind, name in names.items() for r in reporter.stats.get(kind, [])})
