"""What an old file became: found by content, near by first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.engine.moved import Movements
from patchq.git.objects import REGULAR, Entry, Objects

if TYPE_CHECKING:
    from tests.support.world import World

OLD = b"".join(b"line number %d = something\n" % n for n in range(30))
PART = b"".join(OLD.splitlines(keepends=True)[:20])
REST = b"".join(OLD.splitlines(keepends=True)[20:])
OTHER = b"".join(b"another thing %d\n" % n for n in range(30))


@pytest.mark.parametrize(
    ("new", "found"),
    [
        ({}, ()),
        ({"pkg/other.py": OTHER}, ()),
        ({"far/away.py": OLD, "pkg/other.py": OTHER}, ("far/away.py",)),
        ({"far/away.py": OLD + b"more = 1\n", "pkg/other.py": OTHER}, ("far/away.py",)),
        ({"far/away.txt": OLD + b"more = 1\n"}, ()),
        ({"pkg/core/__init__.py": OLD + b"more = 1\n"}, ("pkg/core/__init__.py",)),
        ({"pkg/core/one.py": PART, "pkg/core/two.py": REST}, ("pkg/core/one.py", "pkg/core/two.py")),
        ({"far/deep/core.py": OLD, "zzz.py": OLD}, ("far/deep/core.py",)),
        ({"pkg/near.py": PART[:200], "far/away.py": OLD + b"x = 1\n"}, ("far/away.py",)),
        ({"pkg/core/tiny.py": b"line number 1 = something\n"}, ()),
    ],
)
def test_successors(world: World, new: dict[str, bytes], found: tuple[str, ...]) -> None:
    with Objects(world.cache / "store.git") as objects:
        empty = objects.put("tree", b"")
        old = Entry(REGULAR, objects.put("blob", OLD))
        before = objects.edit_tree(empty, {"pkg/core.py": old, "pkg/stays.py": old})
        entries = {path: Entry(REGULAR, objects.put("blob", data)) for path, data in new.items()}
        after = objects.edit_tree(empty, {**entries, "pkg/stays.py": old})
        assert Movements(objects, before, after).successors("pkg/core.py", old) == found
