"""Whether a step of upstream's CI collects a test file, for trees that have no check of their own for it.

The steps are read as tools/pre_commit/check_test_tethering.py of 0.33.0 reads them, in the forms that cover what patches
add: `pytest PATH... --ignore PATH`, and a directory, file or glob as a path.
"""

from __future__ import annotations

import fnmatch
import functools
import shlex
from typing import TYPE_CHECKING, Any

from patchq.vllm.layout import TESTS, is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.git.objects import Objects
    from patchq.vllm.lint.change import Change, Finding

CHECK = "tools/pre_commit/check_test_tethering.py"
PIPELINES = (".buildkite/test_areas", ".buildkite/hardware_tests", ".buildkite/intel_jobs")
_VALUED = {
    "-k",
    "-m",
    "-p",
    "-n",
    "-c",
    "-o",
    "-W",
    "--shard-id",
    "--num-shards",
    "--durations",
    "--timeout",
    "--tb",
}


def check_collected(change: Change) -> Iterator[Finding]:
    """A test file that the change adds, or that was collected before, is collected by a step of the CI."""
    objects = change.objects
    if (
        objects.lookup(change.before, CHECK) is not None
        or objects.lookup(change.before, PIPELINES[0]) is None
    ):
        return
    steps = list(_steps(objects, change.after))
    was = None
    for path in change.paths:
        name = path.rpartition("/")[2]
        if not (is_test(path) and name.endswith(".py") and name.startswith("test_")):
            continue
        if any(_collects(step, path) for step in steps):
            continue
        if change.entries[path][0] is not None:
            was = was if was is not None else list(_steps(objects, change.before))
            if not any(_collects(step, path) for step in was):
                continue
        yield change.finding("ci-step", f"no step of {PIPELINES[0]} collects it", path)


def _steps(objects: Objects, tree: str) -> Iterator[tuple[list[str], list[str]]]:
    """Each pytest call of the CI: the paths that it is given and those that it ignores, from `tests/` down."""
    for directory in PIPELINES:
        top = objects.lookup(tree, directory)
        for _, entry in objects.walk(top.oid) if top is not None else ():
            yield from _pipeline(objects.blob(entry.oid))


@functools.lru_cache(maxsize=256)
def _pipeline(text: bytes) -> tuple[tuple[list[str], list[str]], ...]:
    """The pytest calls of one pipeline's file; patch after patch asks for the same."""
    import yaml

    try:
        document: Any = yaml.safe_load(text) or {}
    except yaml.YAMLError:
        return ()
    steps = (document.get("steps") or ()) if isinstance(document, dict) else ()
    return tuple(call for step in steps for command in _commands(step) for call in _calls(command))


def _commands(step: Any) -> list[str]:
    if not isinstance(step, dict):
        return []
    mirrors = [m for m in (step.get("mirror") or {}).values() if isinstance(m, dict)]
    found = [c for one in (step, *mirrors) for c in (*(one.get("commands") or ()), one.get("command"))]
    return [c for c in found if isinstance(c, str)]


def _calls(command: str) -> Iterator[tuple[list[str], list[str]]]:
    for part in command.replace("&&", ";").replace("\n", ";").split(";"):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        if "pytest" not in words:
            continue
        given: list[str] = []
        ignored: list[str] = []
        rest = iter(words[words.index("pytest") + 1 :])
        for word in rest:
            option, equals, value = word.partition("=")
            if option in {"--ignore", "--ignore-glob"}:
                ignored.append(_normal(value if equals else next(rest, "")))
            elif word in _VALUED:
                next(rest, None)
            elif not word.startswith("-"):
                given.append(_normal(word))
        yield given, ignored


def _normal(word: str) -> str:
    path = word.split("::", 1)[0].removeprefix("./").removeprefix("/vllm-workspace/")
    return path.removeprefix(TESTS).rstrip("/")


def _collects(step: tuple[list[str], list[str]], path: str) -> bool:
    inner = path.removeprefix(TESTS)

    def covers(pattern: str) -> bool:
        return inner == pattern or inner.startswith(pattern + "/") or fnmatch.fnmatch(inner, pattern)

    return any(map(covers, step[0])) and not any(map(covers, step[1]))
