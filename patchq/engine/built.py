"""Stacks that were built before, kept under the cache by content: the base, the bodies' hashes and the locked trees.

What is kept is the outcome (trees, commits, what each patch wrote) as JSON, and the objects as one pack of the store, so
that a checkout gets them by a hard link. Anything missing or unreadable is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from patchq.cache import A_DAY, cache_dir, write_atomically
from patchq.engine.stack import Stack, Step, build_stack, commit_stack
from patchq.git.commits import Identity, read_commit
from patchq.git.hunks import Offset
from patchq.git.objects import Entry
from patchq.git.packs import write_pack
from patchq.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from patchq.git.objects import Objects
    from patchq.series.series import Body
    from patchq.upstream.store import Store

SHAPE = 1
"""Of the file; another shape is not read."""
KEPT_DAYS = 30
"""A stack that nobody asked for in so many days is forgotten."""


class Built(NamedTuple):
    """A stack on its base's commit in the store.

    Attributes:
        stack: the stack.
        commits: the commit of each step.
        pack: the store's pack that holds every object of it that the base has not.
    """

    stack: Stack
    commits: tuple[str, ...]
    pack: str


def built_stack(
    store: Store, objects: Objects, base_commit: str, bodies: Sequence[Body], locked: Mapping[str, str]
) -> Built:
    """The stack of a lane on its base, built here or before.

    Args:
        store: where the base is.
        objects: the store's objects, for looking.
        base_commit: the base's commit in the store.
        bodies: the lane, in order.
        locked: the tree that must stand after each patch, by patch id.

    Raises:
        RefusedError: a patch does not apply, or a step's tree is not the locked one.
        InputError: a body is not a well-formed patch.
    """
    text = json.dumps([SHAPE, base_commit, [[b.id, b.sha256, locked.get(b.id)] for b in bodies]])
    file = cache_dir() / "lanes" / f"{hashlib.sha256(text.encode()).hexdigest()[:40]}.json"
    known = _read(file, objects, base_commit, [(b.id, locked.get(b.id)) for b in bodies])
    if known is not None:
        return known
    with store.objects() as fresh:
        base_tree = read_commit(fresh, base_commit).tree
        stack = build_stack(fresh, base_tree, bodies, locked)
        commits = commit_stack(fresh, base_commit, base_tree, stack.steps)
        made = fresh.made
        built = Built(stack, commits, write_pack(store.git_dir, made, keep=True) if made else "")
    file.parent.mkdir(exist_ok=True)
    _forget(file.parent)
    write_atomically(file, json.dumps(_document(built)).encode())
    return built


def _read(
    file: Path, objects: Objects, base_commit: str, wanted: Sequence[tuple[str, str | None]]
) -> Built | None:
    """What is kept, where it is of this base and gives the locked tree after each patch; None for anything else."""
    try:
        data = parse_json(file.read_bytes())
        stack = Stack(data["base_tree"], tuple(_step(row) for row in data["steps"]))
        built = Built(stack, tuple(data["commits"]), data["pack"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if list(stack.ids) != [i for i, _ in wanted] or len(built.commits) != len(stack.ids):
        return None
    if any(tree not in {None, step.tree} for step, (_, tree) in zip(stack.steps, wanted, strict=True)):
        return None
    try:
        base = read_commit(objects, base_commit).tree
        top = read_commit(objects, str(built.commits[-1])).tree if built.commits else base
    except (KeyError, ValueError):
        return None
    if (base, top) != (stack.base_tree, stack.tree):
        return None
    if time.time() - file.stat().st_mtime > A_DAY:
        os.utime(file)
    return built


def _document(built: Built) -> dict[str, Any]:
    return {
        "base_tree": built.stack.base_tree,
        "commits": built.commits,
        "pack": built.pack,
        "steps": [
            {
                "id": step.id,
                "author": [step.author.name, step.author.email, step.author.seconds, step.author.zone],
                "message": step.message,
                "tree": step.tree,
                "changes": step.changes,
                "offsets": [[o.file, o.hunk, o.lines] for o in step.offsets],
            }
            for step in built.stack.steps
        ],
    }


def _step(row: dict[str, Any]) -> Step:
    return Step(
        row["id"],
        Identity(*row["author"]),
        row["message"],
        row["tree"],
        {path: Entry(*entry) if entry else None for path, entry in row["changes"].items()},
        tuple(Offset(*offset) for offset in row["offsets"]),
    )


def _forget(directory: Path) -> None:
    """Take away what nobody asked for in a long time; its pack stays until the cache is cleared."""
    for file in directory.glob("*.json"):
        if time.time() - file.stat().st_mtime > KEPT_DAYS * A_DAY:
            file.unlink(missing_ok=True)
