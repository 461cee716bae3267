"""What must hold for any series: apply then unapply, mail there and back, swapped order, and refresh of nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.engine.bodies import keep_unchanged, make_body
from patchq.engine.dependencies import derive
from patchq.engine.ownership import place
from patchq.engine.stack import build_stack
from patchq.errors import RefusedError
from patchq.git.commits import Identity
from patchq.git.mail import parse_mail
from patchq.git.pick import pick
from patchq.series.patch import PatchMeta, Upstream
from tests.support.oracle import Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.git.objects import Objects
    from patchq.series.series import Body

AUTHOR = Identity("A U Thor", "author@example.com", 1767319445, "+0100")
NAMES = ("a.py", "deep/b.py")
START = {name: b"".join(b"%s %d\n" % (name.encode(), n) for n in range(24)) for name in NAMES}
EDIT = st.tuples(st.sampled_from(NAMES), st.integers(0, 23), st.integers(0, 2), st.binary(max_size=6))
PATCHES = st.lists(st.lists(EDIT, min_size=1, max_size=3), min_size=2, max_size=4)
SETTINGS = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def objects(tmp_path: object) -> Iterator[Objects]:
    from pathlib import Path

    oracle = Oracle(Path(str(tmp_path)) / "oracle").start()
    with oracle.objects() as found:
        yield found


def series(
    objects: Objects, patches: list[list[tuple[str, int, int, bytes]]]
) -> tuple[list[str], list[Body]]:
    """Trees and bodies of some patches, each replacing a few lines of the files as they are then."""
    from patchq.git.objects import EMPTY_TREE, Entry

    files = dict(START)

    def tree() -> str:
        return objects.edit_tree(
            EMPTY_TREE, {n: Entry(0o100644, objects.put("blob", d)) for n, d in files.items()}
        )

    trees, bodies = [tree()], []
    for number, edits in enumerate(patches):
        for name, at, gone, text in edits:
            lines = files[name].splitlines(keepends=True)
            start = min(at, len(lines))
            lines[start : start + gone] = [b"%d %s\n" % (number, text.hex().encode())]
            files[name] = b"".join(lines)
        after = tree()
        if after != trees[-1]:
            patch = f"{number + 1:04}-p"
            title = f"[Test] {number}\n"
            bodies.append(make_body(objects, patch, "v1", AUTHOR, title, trees[-1], after))
            trees.append(after)
    return trees, bodies


@SETTINGS
@given(PATCHES)
def test_apply_then_unapply_is_identity(
    objects: Objects, patches: list[list[tuple[str, int, int, bytes]]]
) -> None:
    trees, bodies = series(objects, patches)
    stack = build_stack(objects, trees[0], bodies)
    assert [s.tree for s in stack.steps] == trees[1:]
    for before, after, body in reversed(list(zip(trees, trees[1:], bodies, strict=False))):
        back = make_body(objects, body.id, "v1", AUTHOR, "[Test] back\n", after, before)
        assert pick(objects, after, parse_mail(back.data, ""), "").tree == before


@SETTINGS
@given(PATCHES)
def test_mail_there_and_back_is_identity(
    objects: Objects, patches: list[list[tuple[str, int, int, bytes]]]
) -> None:
    trees, bodies = series(objects, patches)
    tree = trees[0]
    for body in bodies:
        mail = parse_mail(body.data, body.where)
        after = pick(objects, tree, mail, body.where).tree
        again = make_body(objects, body.id, "v1", mail.author, mail.message, tree, after)
        assert again.data == body.data
        tree = after
    assert keep_unchanged(objects, trees[0], bodies, {b.id: b.data for b in bodies}) == bodies


@SETTINGS
@given(PATCHES)
def test_swapping_patches_that_commute_gives_the_same_tree(
    objects: Objects, patches: list[list[tuple[str, int, int, bytes]]]
) -> None:
    trees, bodies = series(objects, patches)
    metas = [PatchMeta(b.id, "[T] t", "", "", (), (), Upstream("absent", "local"), "") for b in bodies]
    commutes = derive(objects, trees[0], bodies, metas).commutes
    if len(bodies) > 1 and (bodies[0].id, bodies[1].id) in commutes:
        assert build_stack(objects, trees[0], [bodies[1], bodies[0]]).tree == trees[2]


@SETTINGS
@given(PATCHES, st.lists(EDIT, min_size=1, max_size=2))
def test_a_change_on_top_keeps_the_top_and_touches_only_from_its_owner_up(
    objects: Objects,
    patches: list[list[tuple[str, int, int, bytes]]],
    edits: list[tuple[str, int, int, bytes]],
) -> None:
    both, _ = series(objects, [*patches, edits])
    trees, bodies = series(objects, patches)
    ids = [b.id for b in bodies]
    assert place(objects, ids, trees, trees[-1], None) == trees
    for into in (None, ids[0], ids[-1]):
        try:
            placed = place(objects, ids, trees, both[-1], into)
        except RefusedError:
            assert into != ids[-1], "the last patch can take any change"
            continue
        assert (placed[0], placed[-1]) == (trees[0], both[-1])
        if into == ids[-1]:
            assert placed[:-1] == trees[:-1]
