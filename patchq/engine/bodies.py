"""Writing bodies so that only what changed in them shows: not where a hunk stands, nor the ids of files around it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchq.git.hunks import HunkRefusedError
from patchq.git.mail import diff_trees, format_mail, parse_mail
from patchq.git.pick import pick
from patchq.series.series import Body

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchq.git.commits import Identity
    from patchq.git.objects import Objects

_INDEX = re.compile(rb"^index [0-9a-f]{40}\.\.[0-9a-f]{40}", re.MULTILINE)
_HUNK = re.compile(rb"^@@ -\d+(,\d+)? \+\d+(,\d+)? @@.*$", re.MULTILINE)


def make_body(
    objects: Objects, patch: str, base: str, author: Identity, message: str, before: str, after: str
) -> Body:
    """The body of a patch that makes one tree of another.

    The objects made so far are written to the repository of `objects`.

    Raises:
        InputError: the two trees are the same, or `git am` could not carry the message.
    """
    objects.flush(objects.git_dir)
    where = f"series/{patch}/{base}.patch"
    diff = diff_trees(objects.git_dir, before, after, objects.alternates)
    return Body(patch, where, format_mail(author, message, diff, where))


def same_text(old: bytes, new: bytes) -> bool:
    """Whether two bodies say the same, but for the positions of hunks, their headings, and object ids."""

    def plain(data: bytes) -> bytes:
        return _HUNK.sub(rb"@@ \1 \2 @@", _INDEX.sub(b"index", data))

    return old == new or plain(old) == plain(new)


def keep_unchanged(
    objects: Objects, base_tree: str, bodies: Sequence[Body], known: Mapping[str, bytes]
) -> list[Body]:
    """Some bodies, in order, each in the bytes that are known of it where these say the same and still give the same tree.

    So a change of one patch leaves the files (and with them the rulings and the evidence) of the others alone.

    Args:
        objects: where the base is read and trees are made.
        base_tree: the tree that the first one goes on.
        bodies: the lane as it is to be.
        known: the bodies as they stand on disk, by patch.

    Raises:
        HunkRefusedError: a body does not apply.
    """
    tree = base_tree
    kept = []
    for body in bodies:
        after = pick(objects, tree, parse_mail(body.data, body.where), body.where).tree
        old = known.get(body.id)
        if old is not None and old != body.data and same_text(old, body.data):
            kept.append(_if_it_gives(objects, tree, Body(body.id, body.where, old), after) or body)
        else:
            kept.append(body)
        tree = after
    return kept


def _if_it_gives(objects: Objects, tree: str, body: Body, after: str) -> Body | None:
    try:
        picked = pick(objects, tree, parse_mail(body.data, body.where), body.where)
    except HunkRefusedError:
        return None
    return body if picked.tree == after else None
