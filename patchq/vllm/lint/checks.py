"""The rules that upstream's tools decide: ruff, typos, mypy and the tree's own checks, before and after a change."""

from __future__ import annotations

import collections
import difflib
import json
import re
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, write_atomically
from patchq.errors import EnvironmentLacksError
from patchq.testing.environment import key_of_facts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from patchq.vllm.lint.change import Change, Finding
    from patchq.vllm.lint.precommit import Config, Hook
    from patchq.vllm.lint.tools import Bench

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MYPY = re.compile(r"(?P<path>[^:\n]+):(?P<line>\d+): error: (?P<message>.+)")


def check_ruff(change: Change, bench: Bench, config: Config) -> Iterator[Finding]:
    """What ruff says of lines that the change adds, or says of a file more often than before."""
    paths = _python(change, config)
    bench.become(change.before)
    before = collections.Counter((p, c, m) for p, _, c, m in _ruff(bench, _there(change, paths)))
    bench.become(change.after)
    after = _ruff(bench, paths)
    spare = collections.Counter((p, c, m) for p, _, c, m in after) - before
    for path, line, code, message in sorted(after, key=lambda f: f[1] not in change.text(f[0]).added):
        new = spare[path, code, message] > 0
        if new or line in change.text(path).added:
            spare[path, code, message] -= 1
            yield change.finding(f"ruff:{code}", message, path, line)


def _ruff(bench: Bench, paths: Sequence[str]) -> list[tuple[str, int, str, str]]:
    if not paths:
        return []
    done = bench.run(
        ["ruff", "check", "--output-format=json", "--no-cache", "--force-exclude", "--exit-zero", *paths]
    )
    found = _json(done.stdout, "ruff", done.stderr)
    top = f"{bench.top.resolve()}/"
    return [
        (
            f["filename"].removeprefix(top),
            int(f["location"]["row"]),
            str(f["code"] or "syntax"),
            str(f["message"]),
        )
        for f in found
    ]


def check_format(change: Change, bench: Bench, config: Config) -> Iterator[Finding]:
    """Lines that the change adds and ruff's formatter would write otherwise."""
    bench.become(change.after)
    for path in _python(change, config):
        text = change.text(path)
        source = "\n".join(text.after or ())
        done = bench.run(
            ["ruff", "format", "--no-cache", "--force-exclude", "--stdin-filename", path, "-"],
            source.encode(),
        )
        if done.returncode:
            continue
        wanted = done.stdout.decode().split("\n")
        if tuple(wanted) == text.after:
            continue
        matcher = difflib.SequenceMatcher(None, text.after or (), wanted, autojunk=False)
        for tag, i, j, _, _ in matcher.get_opcodes():
            lines = range(i + 1, max(j, i + 1) + 1)
            if tag != "equal" and text.added.intersection(lines):
                line = min(text.added.intersection(lines))
                yield change.finding("ruff-format", "ruff format would write this otherwise", path, line)


def check_typos(change: Change, bench: Bench, config: Config) -> Iterator[Finding]:
    """Misspelt words in lines that the change adds, and in names of files that it adds."""
    bench.become(change.after)
    paths = [p for p in change.paths if not re.search(config.exclude, p)]
    if not paths:
        return
    done = bench.run(["typos", "--format=json", "--force-exclude", *paths])
    for line in done.stdout.decode("utf-8", "replace").splitlines():
        found = json.loads(line)
        if found.get("type") != "typo":
            continue
        path = found["path"].removeprefix("./")
        number = int(found.get("line_num") or 0)
        new = number in change.text(path).added if number else change.entries[path][0] is None
        if new:
            better = ", ".join(found["corrections"])
            yield change.finding("typos", f"{found['typo']} should be {better}", path, number)


def check_mypy(change: Change, bench: Bench, config: Config) -> Iterator[Finding]:
    """Errors that mypy has about the changed modules and did not have before, told apart by message, not by line.

    The answer for a tree and its changed modules is kept: with vLLM's settings each takes a minute (it reads what they
    import), and the same question always has the same answer.
    """
    paths = _python(change, config)
    if config.mypy is None or not paths:
        return
    after = _mypy(bench, change.after, paths, config)
    known: collections.Counter[tuple[str, str]] = collections.Counter()
    if after and (there := _there(change, paths)):
        known = collections.Counter((p, m) for p, _, m in _mypy(bench, change.before, there, config))
    for path, line, message in after:
        if known[path, message] > 0:
            known[path, message] -= 1
        elif path in change.entries:
            yield change.finding("mypy", message, path, line)


def _mypy(bench: Bench, tree: str, paths: Sequence[str], config: Config) -> list[tuple[str, int, str]]:
    hook = config.mypy
    words = hook.command if hook is not None else ()
    directory = cache_dir() / "lint" / "mypy"
    directory.mkdir(parents=True, exist_ok=True)
    kept = directory / f"{key_of_facts(tree, list(paths), list(words), sorted(config.requirements))}.json"
    if not kept.is_file():
        bench.become(tree)
        cache = directory / f"cache-{key_of_facts(sorted(config.requirements))}"
        done = bench.run(["python", *words, *paths], MYPY_CACHE_DIR=str(cache))
        said = done.stdout.decode("utf-8", "replace")
        found = [[m["path"], int(m["line"]), m["message"]] for m in _MYPY.finditer(said)]
        if done.returncode and not found:
            last = (said + done.stderr.decode("utf-8", "replace")).strip().rsplit("\n", 1)[-1]
            raise EnvironmentLacksError(f"mypy fails on the tree: {last[:200]}.", "Leave it out: --no-mypy.")
        write_atomically(kept, json.dumps(found).encode())
    return [(path, line, message) for path, line, message in json.loads(kept.read_bytes())]


def check_hook(change: Change, bench: Bench, config: Config, hook: Hook) -> Iterator[Finding]:
    """What one of the tree's own checks says of the changed files and did not say before."""
    paths = [p for p in change.paths if hook.wants(p) and not re.search(config.exclude, p)]
    if not paths:
        return
    after = _said(bench, change.after, hook, paths)
    before = collections.Counter(
        map(_unnumbered, _said(bench, change.before, hook, _there(change, paths)) if after else ())
    )
    for line in after:
        if before[_unnumbered(line)] > 0:
            before[_unnumbered(line)] -= 1
            continue
        path = next((p for p in sorted(paths, key=len, reverse=True) if p in line), "")
        if path or not hook.named:
            number = re.search(re.escape(path) + r":(\d+)", line) if path else None
            text = line.split(": ", 1)[-1].strip() if number else line.strip()
            message = f"fails {hook.command[0]}" if text == path else text
            yield change.finding(hook.id, message, path, int(number[1]) if number else 0)


def _said(bench: Bench, tree: str, hook: Hook, paths: Sequence[str]) -> list[str]:
    """The lines that a check prints where it says no."""
    bench.become(tree)
    if hook.named and not paths:
        return []
    done = bench.run(["python", *hook.command, *(paths if hook.named else ())])
    bench.restore(paths)
    if not done.returncode:
        return []
    said = _COLOUR.sub("", (done.stdout + done.stderr).decode("utf-8", "replace"))
    return [line for line in said.splitlines() if line.strip()]


def _unnumbered(line: str) -> str:
    return re.sub(r":\d+", "", line)


def _python(change: Change, config: Config) -> list[str]:
    return [t.path for t in change.texts(".py") if not re.search(config.exclude, t.path)]


def _there(change: Change, paths: Iterable[str]) -> list[str]:
    """Those of some paths that were there before."""
    return [p for p in paths if change.entries[p][0] is not None]


def _json(data: bytes, tool: str, errors: bytes) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = json.loads(data)
    except ValueError:
        said = errors.decode("utf-8", "replace").strip().split("\n")[0]
        raise EnvironmentLacksError(
            f"{tool} fails on the tree: {said[:200]}.", "Lint on another base."
        ) from None
    return found
