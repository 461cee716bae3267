"""One patch before and after it was moved: changes of content, of context and of position told apart."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from patchq.git.diff import FileChange, Hunk
    from patchq.git.mail import MailPatch


@dataclass(frozen=True)
class Edits:
    """The edits of one file that are others than they were, each line with the sign that a patch gives it.

    Attributes:
        file: its new path.
        before: edits that the patch no longer makes in that form.
        after: edits that it makes instead, or besides.
    """

    file: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True)
class Difference:
    """How a patch differs from what it was, by its files' new paths.

    Attributes:
        content: files in which it adds or removes other lines.
        context: files in which the same edits stand among other lines.
        position: files in which the same edits among the same lines stand elsewhere.
        dropped: files (by their old paths) that it no longer touches.
        added: files that it did not touch.
        moved: files that have another path, old and new.
        message: whether title, text, author or date are others.
        edits: what became of its edits, file by file, where the content changed.
    """

    content: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    position: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    moved: tuple[tuple[str, str], ...] = ()
    message: bool = False
    edits: tuple[Edits, ...] = ()

    @property
    def words(self) -> str:
        """The difference in words."""
        parts = [
            f"{what}: {', '.join(files)}"
            for what, files in (
                ("content changed", self.content),
                ("context changed", self.context),
                ("moved lines", self.position),
                ("no longer touched", self.dropped),
                ("newly touched", self.added),
            )
            if files
        ]
        parts += [f"{old} is now {new}" for old, new in self.moved]
        if self.message:
            parts.append("message changed")
        return "; ".join(parts) or "unchanged"


def compare(old: MailPatch, new: MailPatch, moved: Mapping[str, Sequence[str]]) -> Difference:
    """Hold a patch against what it was.

    Args:
        old: before.
        new: after.
        moved: where each file that upstream moved went; several places where it was split.
    """
    before = {c.path: c for c in old.changes}
    after = {c.path: c for c in new.changes}
    found: dict[str, list[str]] = {"content": [], "context": [], "position": []}
    seen: set[str] = set()
    dropped = []
    edits = []
    for path, change in sorted(before.items()):
        targets = [t for t in moved.get(path, (path,)) if t in after]
        seen.update(targets)
        if not targets:
            dropped.append(path)
            continue
        kind = _compare_file(change, [after[t] for t in targets])
        if kind:
            found[kind] += targets
        if kind == "content":
            edits.append(_edits_of(targets[0], change.hunks, [h for t in targets for h in after[t].hunks]))
    return Difference(
        content=tuple(found["content"]),
        context=tuple(found["context"]),
        position=tuple(found["position"]),
        dropped=tuple(dropped),
        added=tuple(sorted(set(after) - seen)),
        moved=tuple((o, n) for o in sorted(moved) for n in moved[o] if n in after and n != o),
        message=(old.author, old.message) != (new.author, new.message),
        edits=tuple(edits),
    )


def _compare_file(old: FileChange, new: Sequence[FileChange]) -> str:
    hunks = [hunk for change in new for hunk in change.hunks]
    if (old.new_mode, old.binary and old.new_oid) != (new[0].new_mode, new[0].binary and new[0].new_oid):
        return "content"
    if sorted(_edits(old.hunks)) != sorted(_edits(hunks)):
        return "content"
    if [_context(h) for h in old.hunks] != [_context(h) for h in hunks]:
        return "context"
    return "position" if [h.old_start for h in old.hunks] != [h.old_start for h in hunks] else ""


def _edits(hunks: Iterable[Hunk]) -> list[tuple[tuple[bytes, ...], tuple[bytes, ...]]]:
    """The removed and added lines of each run of changes."""
    found = []
    for hunk in hunks:
        matcher = difflib.SequenceMatcher(None, hunk.old, hunk.new, autojunk=False)
        found += [
            (hunk.old[i1:i2], hunk.new[j1:j2])
            for tag, i1, i2, j1, j2 in matcher.get_opcodes()
            if tag != "equal"
        ]
    return found


def _edits_of(file: str, old: Iterable[Hunk], new: Iterable[Hunk]) -> Edits:
    """The edits that only one of two versions of a file's change has."""
    before, after = _edits(old), _edits(new)

    def lines(edits: list[tuple[tuple[bytes, ...], tuple[bytes, ...]]]) -> tuple[str, ...]:
        rows = [
            (sign, line) for out, into in edits for sign, part in (("-", out), ("+", into)) for line in part
        ]
        return tuple(sign + line.rstrip(b"\r\n").decode("utf-8", "backslashreplace") for sign, line in rows)

    return Edits(
        file, lines([e for e in before if e not in after]), lines([e for e in after if e not in before])
    )


def _context(hunk: Hunk) -> tuple[bytes, ...]:
    matcher = difflib.SequenceMatcher(None, hunk.old, hunk.new, autojunk=False)
    kept: list[bytes] = []
    for tag, i1, i2, _, _ in matcher.get_opcodes():
        if tag == "equal":
            kept += hunk.old[i1:i2]
    return tuple(kept)
