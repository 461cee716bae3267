"""One change as the rules see it: two trees, a message, and which lines are new."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from patchq.git.objects import SUBMODULE, SYMLINK
from patchq.git.trees import diff_trees

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from patchq.git.objects import Entry, Objects


@dataclass(frozen=True)
class Finding:
    """A rule that a change breaks.

    Attributes:
        id: the patch, or the commit.
        rule: its name.
        file: in the tree; empty where it is about the message or the whole.
        line: from 1 in the changed file; 0 where it is about the whole file.
        message: what is wrong.
    """

    id: str
    rule: str
    file: str
    line: int
    message: str


@dataclass(frozen=True)
class Edit:
    """A run of lines that a change replaces: the old ones, the new ones, and where these begin, from 1."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    start: int


@dataclass(frozen=True)
class TextFile:
    """A changed text file: its lines before and after, None for no file."""

    path: str
    before: tuple[str, ...] | None
    after: tuple[str, ...] | None

    @cached_property
    def edits(self) -> tuple[Edit, ...]:
        """What changes, in order."""
        old, new = self.before or (), self.after or ()
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        tail = 0
        while tail < min(len(old), len(new)) - same and old[-1 - tail] == new[-1 - tail]:
            tail += 1
        one, two = old[same : len(old) - tail], new[same : len(new) - tail]
        matcher = difflib.SequenceMatcher(None, one, two, autojunk=False)
        return tuple(
            Edit(one[i:j], two[k:m], same + k + 1)
            for tag, i, j, k, m in matcher.get_opcodes()
            if tag != "equal"
        )

    @cached_property
    def added(self) -> frozenset[int]:
        """The numbers of the lines that the change adds, from 1."""
        return frozenset(n for edit in self.edits for n in range(edit.start, edit.start + len(edit.new)))


@dataclass(frozen=True)
class Change:
    """What is linted.

    Attributes:
        id: the patch, or the commit.
        objects: where the trees are read.
        before: tree id.
        after: tree id.
        message: the commit's.
        author: `Name <mail>`.
        signed: whether it must carry its author's sign-off already.
    """

    id: str
    objects: Objects
    before: str
    after: str
    message: str
    author: str
    signed: bool = False
    _files: dict[str, TextFile] = field(default_factory=dict, compare=False, repr=False)

    @property
    def title(self) -> str:
        """The message's first line."""
        return self.message.split("\n", 1)[0]

    @cached_property
    def entries(self) -> Mapping[str, tuple[Entry | None, Entry | None]]:
        """What stands at each changed path before and after."""
        return {c.path: (c.old, c.new) for c in diff_trees(self.objects, self.before, self.after)}

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """The changed files that are there after it."""
        return tuple(sorted(p for p, (_, new) in self.entries.items() if new is not None))

    def text(self, path: str) -> TextFile:
        """A changed file as lines; what is not UTF-8 is replaced."""
        if path not in self._files:
            old, new = self.entries[path]
            self._files[path] = TextFile(path, self._lines(old), self._lines(new))
        return self._files[path]

    def texts(self, suffix: str = "") -> Iterator[TextFile]:
        """The changed files that are there after it and end so, but links."""
        for path in self.paths:
            entry = self.entries[path][1]
            if path.endswith(suffix) and entry is not None and entry.mode != SYMLINK:
                yield self.text(path)

    def finding(self, rule: str, message: str, file: str = "", line: int = 0) -> Finding:
        """A finding about this change."""
        return Finding(self.id, rule, file, line, message)

    def _lines(self, entry: Entry | None) -> tuple[str, ...] | None:
        if entry is None or entry.mode == SUBMODULE:
            return None
        return tuple(self.objects.blob(entry.oid).decode("utf-8", "replace").split("\n"))
