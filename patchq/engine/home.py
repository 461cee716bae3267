"""A patch where it was made: its edits, file by file, on the trees before and after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.engine.stack import build_stack
from patchq.errors import RefusedError
from patchq.git.blocks import Block, Text, blocks_of
from patchq.git.mail import parse_mail
from patchq.git.objects import EXECUTABLE, REGULAR, Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.hunks import Offset
    from patchq.git.mail import MailPatch
    from patchq.git.objects import Objects
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Body

_PLAIN = {REGULAR, EXECUTABLE}


@dataclass(frozen=True)
class FileAtHome:
    """What a patch does to one file.

    Attributes:
        path: where it stands at home.
        before: what stands there before the patch, None for nothing.
        after: what stands there after it.
        is_test: whether it is one of the patch's own tests.
        binary: whether either side is not text.
        text: the lines before; none where there is no file.
        blocks: its edits; None where the whole file is the edit (added, deleted, binary, a link, its mode alone).
    """

    path: str
    before: Entry | None
    after: Entry | None
    is_test: bool
    binary: bool
    text: Text
    blocks: tuple[Block, ...] | None


@dataclass(frozen=True)
class Home:
    """A patch where it was made.

    Attributes:
        id: the patch.
        where: its body's name, for messages.
        patch: the body, parsed.
        base_tree: the tree of the base that its lane is for.
        before: the tree it applies to: that base with what the patch depends on.
        after: the tree after it.
        files: what it does, in order of path.
        offsets: hunks that stand elsewhere there than they say, as patches that it does not depend on are not there.
    """

    id: str
    where: str
    patch: MailPatch
    base_tree: str
    before: str
    after: str
    files: tuple[FileAtHome, ...]
    offsets: tuple[Offset, ...] = ()

    @property
    def tests_only(self) -> bool:
        """Whether it changes nothing but its own tests."""
        return all(file.is_test for file in self.files)

    def file(self, path: str) -> FileAtHome:
        """What it does to the file at a path.

        Raises:
            KeyError: it does nothing to it.
        """
        for file in self.files:
            if file.path == path:
                return file
        raise KeyError(path)


def find_home(
    objects: Objects, base_tree: str, lane: Sequence[Body], closure: Sequence[str], meta: PatchMeta
) -> Home:
    """Look at a patch where it was made: on its lane's base with its closure, or with the lane up to it.

    Args:
        objects: where the base is read.
        base_tree: the tree of the lane's base.
        lane: the lane's bodies, in order.
        closure: ids of what the patch depends on and of itself.
        meta: the patch.

    Raises:
        RefusedError: the lane does not build on its own base.
    """
    own = next(number for number, body in enumerate(lane) if body.id == meta.id)
    try:
        stack = build_stack(objects, base_tree, [body for body in lane if body.id in closure])
    except RefusedError:
        stack = build_stack(objects, base_tree, lane[: own + 1])
    step = stack.steps[-1]
    before = stack.steps[-2].tree if len(stack.steps) > 1 else base_tree
    patch = parse_mail(lane[own].data, lane[own].where)
    files = tuple(
        _look(objects, before, patch, path, step.changes[path], meta) for path in sorted(step.changes)
    )
    return Home(meta.id, lane[own].where, patch, base_tree, before, step.tree, files, step.offsets)


def _look(
    objects: Objects, tree: str, patch: MailPatch, path: str, after: Entry | None, meta: PatchMeta
) -> FileAtHome:
    before = objects.lookup(tree, path)
    change = next((c for c in patch.changes if path in c.paths), None)
    plain = all(entry is None or entry.mode in _PLAIN for entry in (before, after))
    contents = [objects.blob(entry.oid) for entry in (before, after) if entry is not None and plain]
    binary = not plain or any(b"\0" in data[:8000] for data in contents)
    text = Text.of(objects.blob(before.oid) if before is not None and not binary else b"")
    edited = (
        change is not None
        and change.hunks
        and before is not None
        and after is not None
        and not binary
        and change.old_path == change.new_path
    )
    blocks = blocks_of(text.lines, change.hunks) if change is not None and edited else None
    return FileAtHome(path, before, after, is_own_test(meta, path), binary, text, blocks)


def is_own_test(meta: PatchMeta, path: str) -> bool:
    """Whether a path is among the tests that patch.yaml lists for the patch."""
    named = [test.partition("::")[0].rstrip("/") for group in meta.tests for test in group.run]
    return any(path == name or path.startswith(f"{name}/") for name in named)
