"""What tests/AGENTS.md asks of tests, as far as a machine can tell, in the lines that a change adds."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from patchq.vllm.layout import is_test
from patchq.vllm.lint.seams import answers_of_others
from patchq.vllm.rules import TESTS_GUIDE, read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.vllm.lint.change import Change, Finding

STAND_INS = {"SimpleNamespace", "MagicMock", "Mock", "AsyncMock", "PropertyMock"}
ISSUE = re.compile(r"(?:issues?/|#)\d+")


def check_guide(change: Change) -> Iterator[Finding]:
    """Real objects, no bought green, no fixed sleeps; only where the tree has the guide."""
    if read_text(change.objects, change.before, TESTS_GUIDE) is None:
        return
    for text in change.texts(".py"):
        if not is_test(text.path):
            continue
        try:
            module = ast.parse("\n".join(text.after or ()))
        except SyntaxError:
            continue
        told: set[tuple[int, str]] = set()
        elsewhere = answers_of_others(module)
        for node in ast.walk(module):
            line = getattr(node, "lineno", 0)
            message = _problem(node, elsewhere) if line in text.added else None
            if message and (line, message) not in told:
                told.add((line, message))
                yield change.finding("tests-guide", f"{message} ({TESTS_GUIDE})", text.path, line)


def _problem(node: ast.AST, elsewhere: set[ast.AST]) -> str | None:
    if isinstance(node, ast.Call):
        name = _dotted(node.func)
        last = name.rpartition(".")[2]
        if last in STAND_INS and node not in elsewhere:
            return f"{last} stands in for a real object"
        if name == "time.sleep":
            return "a fixed sleep synchronizes; poll a condition with a timeout"
        if name in {"pytest.skip", "pytest.xfail"}:
            return f"{name} buys a green run"
        if name == "pytest.mark.xfail" and not _strict_with_issue(node):
            return "xfail without strict=True and an open issue"
    if isinstance(node, ast.Attribute):
        name = _dotted(node)
        if name == "pytest.mark.skip" or name.startswith("pytest.mark.flaky"):
            return f"{name} buys a green run"
    return None


def _strict_with_issue(call: ast.Call) -> bool:
    given = {k.arg: k.value for k in call.keywords}
    strict = isinstance(given.get("strict"), ast.Constant) and given["strict"].value is True  # type: ignore[attr-defined]
    reason = given.get("reason")
    return bool(strict and isinstance(reason, ast.Constant) and ISSUE.search(str(reason.value)))


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""
