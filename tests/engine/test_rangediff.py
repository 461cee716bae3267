"""A patch before and after a move: content, context and position told apart."""

from __future__ import annotations

import pytest

from patchq.engine.rangediff import Difference, Edits, compare
from patchq.git.commits import Identity
from patchq.git.diff import parse_diff
from patchq.git.mail import MailPatch

WHO = Identity("A", "a@b.c", 0, "+0000")
HEADER = "diff --git a/{0} b/{0}\nindex 1111111..2222222 100644\n--- a/{0}\n+++ b/{0}\n"


def patch(body: str, path: str = "a.py", message: str = "[T] x\n") -> MailPatch:
    return MailPatch(WHO, message, parse_diff((HEADER.format(path) + body).encode(), "test"))


OLD = patch("@@ -1,3 +1,4 @@\n one\n+new\n two\n three\n")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("@@ -1,3 +1,4 @@\n one\n+new\n two\n three\n", Difference()),
        ("@@ -9,3 +9,4 @@\n one\n+new\n two\n three\n", Difference(position=("a.py",))),
        ("@@ -1,3 +1,4 @@\n one\n+new\n two\n 3\n", Difference(context=("a.py",))),
        (
            "@@ -1,3 +1,4 @@\n one\n+NEW\n two\n three\n",
            Difference(content=("a.py",), edits=(Edits("a.py", ("+new",), ("+NEW",)),)),
        ),
        (
            "@@ -1,3 +1,3 @@\n one\n+new\n-two\n three\n",
            Difference(content=("a.py",), edits=(Edits("a.py", ("+new",), ("-two", "+new")),)),
        ),
    ],
)
def test_kinds(body: str, expected: Difference) -> None:
    assert compare(OLD, patch(body), {}) == expected


def test_paths_and_message() -> None:
    body = "@@ -1,3 +1,4 @@\n one\n+new\n two\n three\n"
    assert compare(OLD, patch(body, "b.py"), {"a.py": ["b.py"]}) == Difference(moved=(("a.py", "b.py"),))
    assert compare(OLD, patch(body, "b.py"), {}) == Difference(dropped=("a.py",), added=("b.py",))
    found = compare(OLD, patch(body, message="[T] y\n"), {})
    assert found.message
    assert found.words == "message changed"
    assert compare(OLD, OLD, {}).words == "unchanged"
