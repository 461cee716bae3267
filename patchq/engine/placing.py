"""Putting one patch on a tree that it was not made for: strictly, else by a three-way merge, in memory.

Files that upstream moved are followed. Edits that the tree has already are left out, so that nothing is done twice.
An edit never lands in another definition than it was made for: that the lines fit there is no reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from patchq.engine.moved import assign
from patchq.git.blocks import Block, Text, telling, with_blocks
from patchq.git.hunks import HunkRefusedError, Offset
from patchq.git.merge import merge_file
from patchq.git.objects import DIRECTORY, EXECUTABLE, REGULAR, Entry
from patchq.git.pick import pick

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.engine.home import FileAtHome, Home
    from patchq.engine.signs import Signs
    from patchq.engine.targets import Targets
    from patchq.git.objects import Objects

Fit = Literal["clean", "offset", "merged", "conflict", "missing"]
_PLAIN = {REGULAR, EXECUTABLE}


@dataclass(frozen=True)
class Trouble:
    """A file of a patch that does not go on a tree.

    Attributes:
        file: its path in that tree (at home, where it is nowhere there).
        home: its path at home.
        missing: whether what the patch changes is gone, rather than different.
        reason: what stands in the way, as the end of a sentence that begins with the file.
        hunks: which hunks of the file, from 1; none where the whole file is meant.
        ours: what stands in the tree.
        base: what the patch was made on.
        theirs: what the patch made of it.
        marked: the merge with its conflict markers, where the three are text.
    """

    file: str
    home: str
    missing: bool
    reason: str
    hunks: tuple[int, ...] = ()
    ours: Entry | None = None
    base: Entry | None = None
    theirs: Entry | None = None
    marked: bytes | None = None


@dataclass(frozen=True)
class Placed:
    """A patch put on a tree, or what keeps it off.

    Attributes:
        fit: how it went.
        tree: the tree with the patch; where there is trouble, with the files that went.
        changes: what it wrote, by path.
        offsets: hunks that applied elsewhere than they say.
        moved: files that were followed: path at home, path here.
        troubles: what did not go.
        merged: the files that were merged.
    """

    fit: Fit
    tree: str
    changes: dict[str, Entry | None]
    offsets: tuple[Offset, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    troubles: tuple[Trouble, ...] = field(default=())
    merged: tuple[str, ...] = ()


def place(objects: Objects, scratch: Path, tree: str, home: Home, signs: Signs, targets: Targets) -> Placed:
    """Put a patch on a tree, without the edits that `signs` found there.

    Args:
        objects: where trees are read and made.
        scratch: a directory for temporary files.
        tree: the tree.
        home: the patch.
        signs: which of its edits the tree has.
        targets: finds its files there.
    """
    if not signs.found:
        try:
            picked = pick(objects, tree, home.patch, home.where)
        except HunkRefusedError:
            pass
        else:
            if not picked.offsets or not _strays(objects, home, picked.changes, targets):
                fit: Fit = "offset" if picked.offsets else "clean"
                return Placed(fit, picked.tree, picked.changes, picked.offsets)
    merge = _Merge(objects, scratch, tree, home, signs, targets)
    for file in home.files:
        merge.file(file)
    return merge.result()


def since_home(placed: Placed, home: Home) -> Placed:
    """A patch put on a tree, its offsets counted from those that its hunks have at home."""
    there = {(o.file, o.hunk): o.lines for o in home.offsets}
    placed_at = {(o.file, o.hunk): o.lines for o in placed.offsets}
    if placed.fit not in {"clean", "offset"}:
        return placed
    offsets = tuple(
        Offset(file, hunk, placed_at.get((file, hunk), 0) - there.get((file, hunk), 0))
        for file, hunk in sorted(there.keys() | placed_at.keys())
    )
    moved = tuple(offset for offset in offsets if offset.lines)
    return replace(placed, fit="offset" if moved else "clean", offsets=moved)


def _strays(objects: Objects, home: Home, changes: dict[str, Entry | None], targets: Targets) -> bool:
    """Whether a strict pick put an edit into another definition than it was made for."""
    for file in home.files:
        entry = changes.get(file.path)
        if file.blocks and entry is not None:
            text = targets.lines(entry) if objects.has(entry.oid) else None
            if text is not None and any(strayed(block, file.text, text) for block in file.blocks):
                return True
    return False


def strayed(block: Block, before: Text, after: Text) -> bytes:
    """The definition into which a block strayed, empty where it stands in its own, or in one that was renamed.

    Args:
        block: the block.
        before: the file at home before the patch.
        after: the file that the block was put into.
    """
    if not telling(block.new) or not block.scope:
        return b""
    scopes = after.scopes(block.new)
    if not scopes or any(found[-1:] == block.scope[-1:] for found in scopes):
        return b""
    known = before.names
    stray = next((found[-1] if found else b"the top of the file" for found in scopes), b"")
    return stray if stray in known or stray == b"the top of the file" else b""


class _Merge:
    """A three-way merge of a patch into a tree, file by file."""

    def __init__(
        self, objects: Objects, scratch: Path, tree: str, home: Home, signs: Signs, targets: Targets
    ) -> None:
        self.objects = objects
        self.scratch = scratch
        self.tree = tree
        self.home = home
        self.signs = signs
        self.targets = targets
        self.changes: dict[str, Entry | None] = {}
        self.merged: list[str] = []
        self.offsets: list[Offset] = []
        self.moved: list[tuple[str, str]] = []
        self.troubles: list[Trouble] = []

    def result(self) -> Placed:
        """What came of it."""
        while True:
            try:
                tree = self.objects.edit_tree(self.tree, self.changes)
                break
            except ValueError as error:
                self._clash(str(error))
        fit: Fit = "merged"
        if self.troubles:
            fit = "missing" if all(t.missing for t in self.troubles) else "conflict"
        moved = tuple(dict.fromkeys(self.moved))
        return Placed(
            fit, tree, self.changes, tuple(self.offsets), moved, tuple(self.troubles), tuple(self.merged)
        )

    def _clash(self, path: str) -> None:
        """Leave out what would need a directory where there is a file, or the other way round."""
        for name in [n for n in self.changes if n == path or n.startswith(f"{path}/")]:
            theirs = self.changes.pop(name)
            if theirs is not None:
                what = "a file" if name != path else "a directory"
                reason = f"cannot be there, as {path} is {what} here"
                self.troubles.append(Trouble(name, name, False, reason, theirs=theirs))

    def file(self, file: FileAtHome) -> None:
        """Merge one file."""
        if file.path in self.signs.files:
            return
        if file.blocks is None:
            self._whole(file)
            return
        there = self.signs.blocks.get(file.path, frozenset())
        wanted = [block for block in file.blocks if block not in there]
        if not there and self._strictly(file):
            return
        places = self.targets.places(self.tree, file)
        texts = {p: t for p in places if (t := self.targets.text(self.tree, p)) is not None}
        if not texts:
            reason = "is not there, and no new file is like it"
            if self.objects.lookup(self.tree, file.path) is not None:
                reason = "is no longer a plain file"
            self._trouble(file, file.path, reason, missing=True)
            return
        for path, blocks in assign(wanted, texts).items():
            if path != file.path:
                self.moved.append((file.path, path))
            self._text(file, path, texts[path], blocks)

    def _strictly(self, file: FileAtHome) -> bool:
        """Apply the file's own hunks to the letter; give whether they went, and each into its own definition."""
        alone = replace(
            self.home.patch, changes=tuple(c for c in self.home.patch.changes if file.path in c.paths)
        )
        try:
            picked = pick(self.objects, self.tree, alone, self.home.where)
        except HunkRefusedError:
            return False
        if picked.offsets and _strays(self.objects, self.home, picked.changes, self.targets):
            return False
        self.changes.update(picked.changes)
        self.offsets += picked.offsets
        return True

    def _text(self, file: FileAtHome, path: str, here: Text, blocks: list[Block]) -> None:
        entry = self.objects.lookup(self.tree, path)
        if entry is None or file.after is None or file.before is None:
            return
        base, ours = b"".join(file.text.lines), b"".join(here.lines)
        ordered = sorted(blocks, key=lambda block: block.at)
        theirs = with_blocks(file.text.lines, ordered)
        merged = merge_file(self.scratch, ours, base, theirs, self._labels())
        mode = file.after.mode if file.after.mode != file.before.mode else entry.mode
        if merged is None:
            self._trouble(file, path, "is binary here", missing=False)
            return
        bad = {block: "" for block in ordered if not _untouched(block, here)} if merged.conflicts else {}
        if not bad and not merged.conflicts:
            after = Text.of(merged.data)
            bad = {b: f"would land in {_name(s)}" for b in ordered if (s := strayed(b, file.text, after))}
        elif not bad:
            bad = dict.fromkeys(ordered, "")
        if not bad:
            self.changes[path] = Entry(mode, self.objects.put("blob", merged.data))
            self.merged.append(path)
            return
        names = here.names
        gone = [b for b in bad if b.scope and b.scope[-1] not in names]
        hunks = tuple(sorted({b.hunk for b in bad}))
        if gone and len(gone) == len(bad):
            lost = ", ".join(dict.fromkeys(_name(b.scope[-1]) for b in gone))
            reason = f"no longer has {lost}, which {_hunks(hunks)} changes"
        else:
            said = next((r for r in bad.values() if r), "was changed upstream where the patch changes it")
            reason = f"{said} ({_hunks(hunks)})"
        self.troubles.append(
            Trouble(
                path,
                file.path,
                bool(gone) and len(gone) == len(bad),
                reason,
                hunks,
                entry,
                file.before,
                Entry(mode, self.objects.put("blob", theirs)),
                merged.data if merged.conflicts else None,
            )
        )

    def _whole(self, file: FileAtHome) -> None:
        path = self.targets.one(self.tree, file)
        ours = self.objects.lookup(self.tree, path)
        if path != file.path and ours is not None:
            self.moved.append((file.path, path))
        if ours == file.after:
            return
        if ours == file.before:
            self.changes[path] = file.after
        elif ours is None and file.before is not None:
            pieces = self.targets.pieces(self.tree, file)
            became = (
                f"became {', '.join(pieces[:3])}" if pieces else "is not there, and no new file is like it"
            )
            self._trouble(file, path, became, missing=True)
        elif file.before is None and ours is not None and ours.mode == DIRECTORY:
            self._trouble(file, path, "is a directory here", missing=False)
        elif file.before is None:
            self._trouble(file, path, "is added on both sides, with different content", missing=False)
        elif file.after is None:
            self._trouble(file, path, "was changed upstream, and the patch deletes it", missing=False)
        elif ours is not None and file.before.oid == file.after.oid and ours.mode == file.before.mode:
            self.changes[path] = Entry(file.after.mode, ours.oid)
        else:
            self._trouble(file, path, "is binary or a link, and changed on both sides", missing=False)

    def _trouble(self, file: FileAtHome, path: str, reason: str, *, missing: bool) -> None:
        ours = self.objects.lookup(self.tree, path)
        ours = None if ours is not None and ours.mode == DIRECTORY else ours
        marked = None
        both = [e for e in (ours, file.after) if e is not None and e.mode in _PLAIN]
        if file.before is None and len(both) == 2 and not file.binary:  # noqa: PLR2004
            one, two = (self.objects.blob(e.oid) for e in both)
            merged = merge_file(self.scratch, one, b"", two, self._labels())
            marked = merged.data if merged and merged.conflicts else None
        hunks = tuple(sorted({b.hunk for b in file.blocks})) if file.blocks else ()
        self.troubles.append(
            Trouble(path, file.path, missing, reason, hunks, ours, file.before, file.after, marked)
        )

    def _labels(self) -> tuple[str, str, str]:
        return ("upstream", "the patch's base", self.home.id)


def _untouched(block: Block, here: Text) -> bool:
    """Whether a block's lines still stand in a file between the lines next to them."""
    return bool(here.places((*block.lead[-1:], *block.old, *block.trail[:1])))


def _name(definition: bytes) -> str:
    return definition.decode("utf-8", "replace")


def _hunks(numbers: tuple[int, ...]) -> str:
    if len(numbers) == 1:
        return f"hunk {numbers[0]}"
    return f"hunks {', '.join(map(str, numbers))}"
