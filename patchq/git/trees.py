"""The difference of two trees, path by path."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from patchq.git.objects import DIRECTORY, Entry

if TYPE_CHECKING:
    from patchq.git.objects import Objects


class Change(NamedTuple):
    """What a switch does at one path; modes and ids as in the two trees, None for no file."""

    path: str
    old: Entry | None
    new: Entry | None


def diff_trees(objects: Objects, old: str | None, new: str | None, prefix: bytes = b"") -> list[Change]:
    """The paths at which two trees differ; equal subtrees are not read."""
    if old == new:
        return []
    left = objects.tree(old) if old else {}
    right = objects.tree(new) if new else {}
    changes: list[Change] = []
    for name in sorted(left.keys() | right.keys()):
        one, two = left.get(name), right.get(name)
        if one == two:
            continue
        path = prefix + name
        one_dir = one.oid if one and one.mode == DIRECTORY else None
        two_dir = two.oid if two and two.mode == DIRECTORY else None
        if one_dir or two_dir:
            changes += diff_trees(objects, one_dir, two_dir, path + b"/")
        one_file, two_file = None if one_dir else one, None if two_dir else two
        if one_file or two_file:
            changes.append(Change(os.fsdecode(path), one_file, two_file))
    return changes
