"""Blocks and scopes: where an edit stands, told by the definitions around it."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.git.blocks import Text, blocks_of, name_of, scope, with_blocks
from patchq.git.diff import parse_diff
from patchq.git.lines import split_lines
from patchq.git.mail import diff_trees
from patchq.git.objects import REGULAR, Entry, Objects
from tests.support.upstreams import ENGINE, GUARD, replaced
from tests.support.world import World

HEAD = b"    def start(self, size):\n"


def blocks(world: World, old: bytes, new: bytes) -> tuple[list[bytes], list[object]]:
    """The blocks of git's own diff between two contents."""
    with Objects(world.cache / "store.git") as objects:
        empty = objects.put("tree", b"")
        files = [Entry(REGULAR, objects.put("blob", data)) for data in (old, new)]
        trees = [objects.edit_tree(empty, {"f.py": file}) for file in files]
        objects.flush(objects.git_dir)
        diff = diff_trees(objects.git_dir, *trees)
    lines = split_lines(old)
    changes = parse_diff(diff, "test")
    return lines, list(blocks_of(lines, changes[0].hunks)) if changes else []


def test_blocks_know_their_scope(world: World) -> None:
    new = replaced(replaced(ENGINE, HEAD, HEAD + GUARD), b"    total = value + 1\n", b"    total = 1\n", 2)
    lines, found = blocks(world, ENGINE, new)
    assert [b.scope for b in found] == [(b"class Engine", b"def start"), (b"def other",)]  # type: ignore[attr-defined]
    assert with_blocks(lines, found) == new  # type: ignore[arg-type]
    assert with_blocks(lines, found[:1]) == replaced(ENGINE, HEAD, HEAD + GUARD)  # type: ignore[arg-type]


def test_scope_of_c() -> None:
    text = split_lines(b"int run(int a)\n{\n    if (a) {\n        a = 2;\n    }\n}\n")
    assert scope(text, 3, 4) == (b"int run",)
    assert scope(text, 0, 1) == ()


def test_names() -> None:
    assert name_of(b"    async  def  go(self):\n") == b"def go"
    assert name_of(b"@cached\n") == b""
    assert name_of(b"VALUE = f(x)\n") == b"VALUE = f"


def test_places_do_not_mind_indentation() -> None:
    text = Text.of(b"a\n  b\n  c\n\tb\n\tc\n")
    assert text.places([b"b\n", b"c\n"]) == [1, 3]


LINES = st.lists(st.sampled_from([b"a\n", b"b\n", b"    c\n", b"\n", b"def f():\n"]), max_size=30)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(LINES, st.data())
def test_all_blocks_of_a_diff_give_the_new_file(old: list[bytes], data: st.DataObject) -> None:
    import difflib

    from patchq.git.diff import Hunk

    new = list(old)
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(new)))
        if at < len(new) and data.draw(st.booleans()):
            del new[at]
        else:
            new.insert(at, data.draw(st.sampled_from([b"x\n", b"a\n"])))
    hunks = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(3):
        first, last = group[0], group[-1]
        before, after = tuple(old[first[1] : last[2]]), tuple(new[first[3] : last[4]])
        start = first[1] + 1 if before else first[1]
        hunks.append(Hunk(1, start, first[3] + 1, b"", before, after, 0, 0))
    assert with_blocks(old, blocks_of(old, hunks)) == b"".join(new)
