"""Where a file went that is no longer at its path: renamed, or a module that became a package of several files."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from patchq.git.blocks import Text
from patchq.git.objects import DIRECTORY, EMPTY_BLOB, SUBMODULE
from patchq.git.trees import diff_trees

if TYPE_CHECKING:
    from collections.abc import Iterable

    from patchq.git.blocks import Block
    from patchq.git.objects import Entry, Objects

ALIKE = 0.5
"""The share of lines in common from which two files are one and the same, as in git's rename detection."""
TAKEN = 0.3
"""The share of a new file's lines that must come from the old one for it to be a piece of that."""


class Movements:
    """The files that came between two trees, searched for what an old one became."""

    def __init__(self, objects: Objects, old_tree: str, new_tree: str) -> None:
        self._objects = objects
        self._trees = (old_tree, new_tree)
        self._added: dict[str, Entry] | None = None
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}

    def added(self) -> dict[str, Entry]:
        """The files that the new tree has and the old one has not, by path."""
        if self._added is None:
            changes = diff_trees(self._objects, *self._trees)
            self._added = {
                c.path: c.new
                for c in changes
                if c.old is None and c.new is not None and c.new.mode not in {DIRECTORY, SUBMODULE}
            }
        return self._added

    def successors(self, path: str, old: Entry) -> tuple[str, ...]:
        """What a file became, the likeliest first; nothing where no new file is like it.

        A file of the same content is the answer alone, then one that is alike enough; else the new files that hold a
        good part of it, those of a package with the module's name first. An empty file became nothing: any other is like it.
        """
        if old.oid == EMPTY_BLOB:
            return ()
        key = (path, old.oid)
        if key not in self._found:
            self._found[key] = self._search(path, old)
        return self._found[key]

    def _search(self, path: str, old: Entry) -> tuple[str, ...]:
        added = self.added()
        same = sorted(p for p, entry in added.items() if entry.oid == old.oid)
        if same:
            return (min(same, key=lambda p: (_far(path, p), p)),)
        here = PurePosixPath(path)
        wanted = _telling(self._objects.blob(old.oid))
        alike = sorted(n for n in added if PurePosixPath(n).suffix == here.suffix)
        near = [n for n in alike if n.startswith(f"{here.parent}/") or PurePosixPath(n).name == here.name]
        package = f"{here.with_suffix('')}/"
        found, sure = self._compare(path, wanted, near)
        if sure or (found and all(name.startswith(package) for name in found)):
            return found
        return self._compare(path, wanted, alike)[0]

    def _compare(
        self, path: str, wanted: frozenset[bytes], names: Iterable[str]
    ) -> tuple[tuple[str, ...], bool]:
        """Which files hold an old one's lines, and whether the first of them is that file."""
        added = self.added()
        lines = {
            name: have for name in names if wanted & (have := _telling(self._objects.blob(added[name].oid)))
        }
        alike = {name: 2 * len(wanted & have) / (len(wanted) + len(have)) for name, have in lines.items()}
        order = sorted(lines, key=lambda name: (-alike[name], _far(path, name), name))
        whole = [name for name in order if alike[name] >= ALIKE][:1]
        left = wanted - lines[whole[0]] if whole else wanted
        package = f"{PurePosixPath(path).with_suffix('')}/"
        pieces = [
            name
            for name in order
            if name not in whole
            and len(left & lines[name]) >= TAKEN * len(left if name.startswith(package) else lines[name])
        ]
        covered = frozenset[bytes]().union(*(wanted & lines[name] for name in (*whole, *pieces)))
        if len(covered) < max(TAKEN * len(wanted), 1):
            return (), False
        return (*whole, *sorted(pieces, key=lambda name: not name.startswith(package))), bool(whole)


def assign(blocks: Iterable[Block], candidates: dict[str, Text]) -> dict[str, list[Block]]:
    """Give each block of a file that was moved to the file it belongs to now.

    A block goes where its lines still stand between their neighbours, else where the definition around it is, else to
    the first candidate.
    """
    names = {path: text.names for path, text in candidates.items()}
    found: dict[str, list[Block]] = {}
    for block in blocks:
        surrounded = (*block.lead, *block.old, *block.trail)
        stands = [p for p, text in candidates.items() if text.places(surrounded)]
        around = [p for p in candidates if block.scope and block.scope[-1] in names[p]]
        chosen = (stands or around or list(candidates))[0]
        found.setdefault(chosen, []).append(block)
    return found


def _telling(data: bytes) -> frozenset[bytes]:
    """The different lines of a file that say something."""
    return frozenset(line for raw in data.split(b"\n") if len(line := raw.strip()) > 3)  # noqa: PLR2004


def _far(one: str, two: str) -> tuple[bool, int]:
    """Whether two paths end in different names, and how many steps lie between their directories."""
    a, b = PurePosixPath(one).parts, PurePosixPath(two).parts
    shared = len([1 for x, y in zip(a, b, strict=False) if x == y])
    return a[-1] != b[-1], len(a) + len(b) - 2 * shared
