"""Where a patch's files stand in a tree that it was not made for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchq.engine.moved import TAKEN, Movements
from patchq.git.blocks import Text
from patchq.git.objects import EMPTY_BLOB, EXECUTABLE, REGULAR

if TYPE_CHECKING:
    from patchq.engine.home import FileAtHome
    from patchq.git.objects import Entry, Objects


class Targets:
    """Finds a patch's files in trees over one base; what was found once is kept."""

    def __init__(self, objects: Objects, home_base: str, base: str) -> None:
        """Look from one base to another.

        Args:
            objects: where both are read.
            home_base: tree of the base that the patches were made for.
            base: tree of the base they are held against.
        """
        self._objects = objects
        self._movements = Movements(objects, home_base, base)
        self._home_base = home_base
        self._copies: dict[Entry, list[str]] | None = None
        self._texts: dict[str, Text] = {}
        self._hollows: dict[tuple[str, str], bool] = {}

    def copies(self, entry: Entry) -> list[str]:
        """The files of this very content that came between the two bases, sorted; none of an empty one."""
        if entry.oid == EMPTY_BLOB:
            return []
        if self._copies is None:
            self._copies = {}
            for path, added in sorted(self._movements.added().items()):
                self._copies.setdefault(added, []).append(path)
        return self._copies.get(entry, [])

    def places(self, tree: str, file: FileAtHome) -> tuple[str, ...]:
        """The paths at which a file's edits may belong in a tree, the likeliest first.

        Its own path while it is there; what it became where it is gone; both where little of it was left behind.
        """
        entry = self._objects.lookup(tree, file.path)
        if file.before is None:
            return (file.path,)
        if entry is None or entry.mode not in {REGULAR, EXECUTABLE}:
            return self.pieces(tree, file)
        if file.blocks is not None and entry != file.before and self._hollow(file, entry):
            return (file.path, *self.pieces(tree, file))
        return (file.path,)

    def one(self, tree: str, file: FileAtHome) -> str:
        """The path at which a file as a whole belongs: its own, or the one it was renamed to."""
        if file.before is not None and self._objects.lookup(tree, file.path) is None:
            pieces = self.pieces(tree, file)
            if len(pieces) == 1:
                return pieces[0]
        return file.path

    def pieces(self, tree: str, file: FileAtHome) -> tuple[str, ...]:
        """What became of a file that is not at its path, as far as it is in the tree.

        A file that the series itself adds is nothing that upstream could have moved.
        """
        if file.before is None or file.binary or self._objects.lookup(self._home_base, file.path) is None:
            return ()
        found = self._movements.successors(file.path, file.before)
        return tuple(p for p in found if self._objects.lookup(tree, p) is not None)

    def text(self, tree: str, path: str) -> Text | None:
        """The lines of a file of a tree; None where there is no plain file."""
        entry = self._objects.lookup(tree, path)
        if entry is None or entry.mode not in {REGULAR, EXECUTABLE}:
            return None
        return self.lines(entry)

    def lines(self, entry: Entry) -> Text:
        """The lines of a blob."""
        if entry.oid not in self._texts:
            self._texts[entry.oid] = Text.of(self._objects.blob(entry.oid))
        return self._texts[entry.oid]

    def _hollow(self, file: FileAtHome, entry: Entry) -> bool:
        key = (file.before.oid if file.before else "", entry.oid)
        if key not in self._hollows:
            wanted = file.text.tells
            have = self.lines(entry).tells
            self._hollows[key] = bool(wanted) and len(wanted & have) < TAKEN * len(wanted)
        return self._hollows[key]
