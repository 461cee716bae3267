"""Building a lane in memory: every step checked, the patch that fails named, the same commits everywhere."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from patchq.engine.stack import StepRefusedError, build_stack, commit_stack
from patchq.errors import InputError, RefusedError
from patchq.git.commits import read_commit
from patchq.series.series import Body
from tests.support.oracle import MAIL, Oracle

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TEXT = b"".join(b" %d\n" % i for i in range(1, 31))


@pytest.fixture
def git(tmp_path: Path) -> Oracle:
    return Oracle(tmp_path / "repo").start()


def bodies(git: Oracle, *states: Mapping[str, bytes]) -> list[Body]:
    """One body for each step from a state to the next."""
    trees = [git.tree(state) for state in states]
    pairs = itertools.pairwise(trees)
    return [
        Body(f"000{n}-p", f"series/000{n}-p/v1.patch", MAIL + git.diff(a, b))
        for n, (a, b) in enumerate(pairs, start=1)
    ]


def test_each_step_is_what_git_am_makes(git: Oracle) -> None:
    one, two = (
        {"f": TEXT.replace(b" 5\n", b" five\n")},
        {"f": TEXT.replace(b" 5\n", b" five\n"), "g": b"new\n"},
    )
    made = bodies(git, {"f": TEXT}, one, two, {"g": b"new\n"})
    with git.objects() as objects:
        stack = build_stack(objects, git.tree({"f": TEXT}), made)
        assert [s.tree for s in stack.steps] == [git.tree(t) for t in (one, two, {"g": b"new\n"})]
        assert (stack.tree, stack.ids) == (git.tree({"g": b"new\n"}), ("0001-p", "0002-p", "0003-p"))
        assert set(stack.changes) == {"f", "g"}
        assert stack.changes["f"] is None
        assert {s.verdict for s in stack.steps} == {"clean"}
        base = git.commit(git.tree({"f": TEXT}), b"base\n")
        top = commit_stack(objects, base, stack.base_tree, stack.steps)[-1]
        objects.flush(git.path / ".git")
    head = git.am(base, *(b.data for b in made))
    assert head is not None
    with git.objects() as objects:
        ours, theirs = read_commit(objects, top), read_commit(objects, head)
    assert (ours.tree, ours.author, ours.message) == (theirs.tree, theirs.author, theirs.message)
    assert git.says("log", "--format=%cn %ce %cd", "-1", top) == git.says(
        "log", "--format=%an %ae %ad", "-1", top
    )


def test_no_patch_is_the_base(git: Oracle) -> None:
    with git.objects() as objects:
        stack = build_stack(objects, git.tree({"f": TEXT}), [])
        assert (stack.tree, stack.ids, stack.changes) == (git.tree({"f": TEXT}), (), {})
        assert commit_stack(objects, "1" * 40, stack.base_tree, ()) == ()


def test_offsets_are_a_verdict(git: Oracle) -> None:
    made = bodies(git, {"f": TEXT}, {"f": TEXT.replace(b" 5\n", b" five\n")})
    with git.objects() as objects:
        (step,) = build_stack(objects, git.tree({"f": b" above\n" * 3 + TEXT}), made).steps
    assert (step.verdict, [(o.file, o.hunk, o.lines) for o in step.offsets]) == ("offset", [("f", 1, 3)])


@pytest.mark.parametrize(
    ("have", "verdict", "words"),
    [
        ({"f": TEXT.replace(b" 6\n", b" six\n")}, "conflict", "hunk 1 of f"),
        ({"g": b""}, "missing", "f is not in the tree"),
    ],
)
def test_the_patch_that_fails_is_named(git: Oracle, have: dict[str, bytes], verdict: str, words: str) -> None:
    made = bodies(
        git, {"f": TEXT}, {"f": TEXT, "h": b"h\n"}, {"f": TEXT.replace(b" 5\n", b" five\n"), "h": b"h\n"}
    )
    with git.objects() as objects, pytest.raises(StepRefusedError) as caught:
        build_stack(objects, git.tree(have), made)
    assert (caught.value.id, caught.value.verdict, caught.value.files) == ("0002-p", verdict, ("f",))
    assert caught.value.message.startswith("series/0002-p/v1.patch:")
    assert words in caught.value.message


def test_a_tree_that_is_not_the_locked_one(git: Oracle) -> None:
    made = bodies(git, {"f": TEXT}, {"f": b"x\n"})
    tree = git.tree({"f": b"x\n"})
    with git.objects() as objects:
        assert build_stack(objects, git.tree({"f": TEXT}), made, {"0001-p": tree}).tree == tree
        with pytest.raises(
            RefusedError, match=rf"after it the tree is {tree}, upstream\.lock says 0{{40}}\."
        ):
            build_stack(objects, git.tree({"f": TEXT}), made, {"0001-p": "0" * 40})


def test_a_body_that_is_no_patch(git: Oracle) -> None:
    with git.objects() as objects, pytest.raises(InputError, match=r"^w:1: "):
        build_stack(objects, git.tree({}), [Body("0001-p", "w", b"<html>")])


def test_files_outside_the_steps_stay(git: Oracle) -> None:
    """The stack is put on a tree that has more files, and keeps them."""
    made = bodies(git, {"f": TEXT}, {"f": b"x\n"})
    more = git.tree({"f": TEXT, "mine": b"mine\n"})
    parent = git.commit(more, b"mine\n")
    with git.objects() as objects:
        stack = build_stack(objects, git.tree({"f": TEXT}), made)
        top = read_commit(objects, commit_stack(objects, parent, more, stack.steps)[-1])
    assert (top.tree, top.parents) == (git.tree({"f": b"x\n", "mine": b"mine\n"}), (parent,))
