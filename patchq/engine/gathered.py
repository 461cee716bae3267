"""What a refresh finds in a checkout, and how the checkout follows once the series has it."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import scratch_dir
from patchq.engine.journal import Record, new_token
from patchq.errors import RefusedError
from patchq.git.commits import Commit, put_commit, read_commit
from patchq.git.run import GitError
from patchq.git.switch import Switch
from patchq.git.trees import Change, diff_trees

if TYPE_CHECKING:
    from patchq.git.checkout import Checkout, Head
    from patchq.git.commits import Identity
    from patchq.git.objects import Objects
    from patchq.series.series import Body


@dataclass(frozen=True)
class Slot:
    """A patch of the checkout's stack: who wrote it, and its message."""

    id: str
    author: Identity
    message: str


@dataclass(frozen=True)
class OnTop:
    """A change on top of the stack.

    Attributes:
        what: for messages.
        before: the tree it was made on.
        after: the tree it made.
        title: the title that a `fixup!` commit names; empty for any other change.
    """

    what: str
    before: str
    after: str
    title: str = ""


@dataclass(frozen=True)
class Gathered:
    """What a checkout says a lane is to be.

    Attributes:
        base_commit: the commit under the patches.
        slots: the patches that it has, in order.
        trees: the base's tree, and the tree after each patch, with what was on top in its place.
        bodies: the whole lane.
        on_top: the changes on top that went into them.
        notes: what a person should know.
    """

    base_commit: str
    slots: tuple[Slot, ...]
    trees: tuple[str, ...]
    bodies: tuple[Body, ...]
    on_top: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())


def work_tree(checkout: Checkout, head: Head, objects: Objects) -> str:
    """The tree of the tracked files as they lie in a checkout; what is not tracked is not in it."""
    if not head.dirty:
        return read_commit(objects, head.commit).tree
    with tempfile.TemporaryDirectory(dir=scratch_dir()) as name:
        index = Path(name) / "index"
        shutil.copy2(checkout.git_dir / "index", index)
        try:
            checkout.run(["add", "--update", "--", "."], index=index)
            return checkout.run(["write-tree"], index=index).decode().strip()
        except GitError as error:
            raise RefusedError(
                f"the files of {checkout.top} cannot be read: {error.reason}.", "Mend that, or commit them."
            ) from None


def untracked(checkout: Checkout) -> tuple[str, ...]:
    """The files that git does not track and does not ignore."""
    said = os.fsdecode(checkout.run(["ls-files", "--others", "--exclude-standard", "-z"]))
    return tuple(name for name in said.split("\0") if name)


def put_stack(objects: Objects, found: Gathered) -> str:
    """The patches of a checkout as commits on its base; the top one."""
    top = found.base_commit
    for slot, tree in zip(found.slots, found.trees[1:], strict=True):
        top = put_commit(objects, Commit(tree, (top,), slot.author, slot.message))
    return top


def index_switch(checkout: Checkout, head: Head, objects: Objects, found: Gathered) -> Switch | None:
    """What brings a checkout from its changes on top to the patches that hold them: commits and index, no file.

    The commits are written to the checkout. None where HEAD is on a branch of the user's own, which stays.
    """
    mine = head.branch is None or head.branch.startswith("patchq/") or Record(checkout).origin(head.ref)
    if not mine:
        return None
    top = put_stack(objects, found)
    tree = found.trees[-1]
    changes = {c.path: c for c in diff_trees(objects, read_commit(objects, head.commit).tree, tree)}
    for path in head.dirty:
        entry = objects.lookup(tree, path)
        changes.setdefault(path, Change(path, entry, entry))
    objects.flush(checkout.common_dir)
    return Switch(
        new_token(),
        head.commit,
        top,
        head.ref,
        head.ref,
        head.commit,
        None,
        tuple(changes.values()),
        files=False,
    )
