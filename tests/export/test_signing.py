"""Who is author, who signs, and who is named besides."""

from __future__ import annotations

import pytest

from patchq.engine.stack import Step
from patchq.export.signing import Person, sign, split_trailers
from patchq.git.commits import Identity
from patchq.upstream.store import OWNER

ME = Person("M E", "me@example.com")
OURS = f"Signed-off-by: {OWNER}"
THEIRS = "Signed-off-by: A U Thor <author@example.com>"
MINE = "Signed-off-by: M E <me@example.com>"


def signed(author: str, message: str, *helpers: str) -> tuple[str, str]:
    name, email = author[:-1].split(" <")
    step = Step("0001-a", Identity(name, email, 1_000_000, "+0100"), message, "1" * 40, {}, ())
    done = sign(step, ME, helpers)
    assert (done.author.seconds, done.author.zone) == (1_000_000, "+0100")
    return f"{done.author.name} <{done.author.email}>", done.message


AUTHOR = "A U Thor <author@example.com>"


@pytest.mark.parametrize(
    ("author", "message", "helpers", "wanted"),
    [
        (OWNER, f"[T] it\n\nText.\n\n{OURS}\n", (), (str(ME), f"[T] it\n\nText.\n\n{MINE}\n")),
        (OWNER, "[T] it\n", ("Tool",), (str(ME), f"[T] it\n\nCo-authored-by: Tool\n{MINE}\n")),
        (AUTHOR, f"[T] it\n\n{THEIRS}\n", (), (AUTHOR, f"[T] it\n\n{THEIRS}\n{MINE}\n")),
        (AUTHOR, "[T] it\n", (), (str(ME), f"[T] it\n\nCo-authored-by: {AUTHOR}\n{MINE}\n")),
        (str(ME), f"[T] it\n\n{MINE}\nFixes: #1\n", (), (str(ME), f"[T] it\n\nFixes: #1\n{MINE}\n")),
        (
            str(ME),
            f"[T] it\n\nCo-authored-by: Tool\n{MINE}\n",
            ("Tool",),
            (str(ME), f"[T] it\n\nCo-authored-by: Tool\n{MINE}\n"),
        ),
    ],
    ids=["project", "project with help", "signed by another", "unsigned by another", "own", "said twice"],
)
def test_sign(author: str, message: str, helpers: tuple[str, ...], wanted: tuple[str, str]) -> None:
    assert signed(author, message, *helpers) == wanted


def test_a_last_paragraph_that_is_no_trailers() -> None:
    assert split_trailers("[T] it\n\nNote: this\nis text.\n") == ("[T] it\n\nNote: this\nis text.", [])
    assert split_trailers("[T] it: now\n") == ("[T] it: now", [])
