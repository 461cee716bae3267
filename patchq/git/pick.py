"""Applying one patch to one tree, in memory and strictly.

A hunk's preimage must stand in the file to the letter. Where it stands elsewhere than the header says, that is an
offset and is reported; where it stands nowhere, or in more than one place that could be meant, the hunk is refused.
There is no fuzz.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchq.git.binary import apply_delta
from patchq.git.diff import FileChange, Hunk
from patchq.git.hunks import HunkRefusedError, Offset
from patchq.git.lines import split_lines
from patchq.git.objects import DIRECTORY, REGULAR, SUBMODULE, Entry, Objects, object_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.mail import MailPatch


@dataclass(frozen=True)
class Picked:
    """A patch applied to a tree.

    Attributes:
        tree: the resulting tree's id.
        changes: what now stands at each path that the patch writes; None where it took a file away.
        offsets: the hunks that moved.
    """

    tree: str
    changes: dict[str, Entry | None]
    offsets: tuple[Offset, ...] = field(default=())


def pick(objects: Objects, tree: str, patch: MailPatch, where: str) -> Picked:
    """Apply a patch to a tree.

    Args:
        objects: where the tree is read and the result is made.
        tree: id of the tree to apply to.
        patch: the patch.
        where: the patch's file name, for messages.

    Raises:
        HunkRefusedError: the first file or hunk that does not apply, named.
    """
    written: dict[str, Entry | None] = {}
    offsets: list[Offset] = []
    going = {change.gone for change in patch.changes}
    for change in patch.changes:
        old = objects.lookup(tree, change.old_path) if change.old_path is not None else None
        if change.new_path not in {change.old_path, None} and change.new_path not in going:
            _check_free(objects, tree, change, where)
        if change.old_path is not None:
            _check_preimage(objects, change, old, where)
        if change.gone is not None:
            written.setdefault(change.gone, None)
        if change.new_path is not None:
            entry, moved = _postimage(objects, change, old, where)
            written[change.new_path] = entry
            offsets += moved
    try:
        result = objects.edit_tree(tree, written)
    except ValueError as error:
        raise HunkRefusedError(
            f"{where}: a file and a directory would both be called {str(error)!r} after the patch.",
            "Port the patch to this base.",
            str(error),
        ) from None
    return Picked(result, written, tuple(offsets))


def _check_free(objects: Objects, tree: str, change: FileChange, where: str) -> None:
    found = objects.lookup(tree, change.path)
    if found is not None and found.mode != DIRECTORY:
        raise HunkRefusedError(
            f"{where}:{change.line}: the patch adds {change.path}, which is there already.",
            "See what put it there.",
            change.path,
            missing=True,
        )


def _check_preimage(objects: Objects, change: FileChange, old: Entry | None, where: str) -> None:
    at = f"{where}:{change.line}"
    path = str(change.old_path)
    if old is None or old.mode == DIRECTORY:
        raise HunkRefusedError(
            f"{at}: {path} is not in the tree.",
            "It was moved or deleted there; port the patch.",
            path,
            missing=True,
        )
    if change.old_mode is not None and change.old_mode != old.mode:
        raise HunkRefusedError(
            f"{at}: {path} has mode {old.mode:o}, the patch expects {change.old_mode:o}.",
            "Port the patch to this base.",
            path,
        )
    if change.new_path is None and not _same(change.old_oid, old.oid):
        left = None if change.binary else _apply_hunks(objects.blob(old.oid), change, where)[0]
        if left != b"":
            raise HunkRefusedError(
                f"{at}: {path}, which the patch deletes, is not the file that it was made from.",
                "Port the patch to this base.",
                path,
            )


def _postimage(
    objects: Objects,
    change: FileChange,
    old: Entry | None,
    where: str,
) -> tuple[Entry, list[Offset]]:
    mode = change.new_mode or (old.mode if old else REGULAR)
    at = f"{where}:{change.line}"
    if mode == SUBMODULE or (old and old.mode == SUBMODULE):
        raise HunkRefusedError(
            f"{at}: {change.path} is a submodule.", "patchq carries files only.", change.path
        )
    if not change.hunks and change.binary is None:
        return Entry(mode, old.oid if old else objects.put("blob", b"")), []
    known = old is not None and _same(change.old_oid, old.oid)
    before = objects.blob(old.oid) if old else b""
    moved: list[Offset] = []
    if change.binary is not None:
        if old is not None and not known:
            raise HunkRefusedError(
                f"{at}: the binary file {change.path} is not the one that the patch was made from.",
                "Port the patch to this base.",
                change.path,
            )
        try:
            after = (
                change.binary.data
                if change.binary.kind == "literal"
                else apply_delta(before, change.binary.data)
            )
        except ValueError as error:
            raise HunkRefusedError(
                f"{at}: the binary patch of {change.path} is broken: {error}.",
                "Write the patch anew.",
                change.path,
            ) from None
    else:
        after, moved = _apply_hunks(before, change, where, exact=known)
    if (known or old is None) and change.new_oid and not _same(change.new_oid, object_id("blob", after)):
        raise HunkRefusedError(
            f"{at}: applied to the very file it names, the patch of {change.path} does not give the result it names.",
            "Its text was edited by hand; write it anew from its commit: patchq refresh.",
            change.path,
        )
    return Entry(mode, objects.put("blob", after)), moved


def _same(abbreviated: str, oid: str) -> bool:
    return bool(abbreviated) and oid.startswith(abbreviated)


def _apply_hunks(
    before: bytes, change: FileChange, where: str, *, exact: bool = False
) -> tuple[bytes, list[Offset]]:
    """A file's content after its hunks, and those that moved; `exact` for the very file that the patch was made from."""
    lines = split_lines(before)
    out: list[bytes] = []
    moved: list[Offset] = []
    done = shift = 0
    for number, hunk in enumerate(change.hunks, start=1):
        expected = max(hunk.old_start - 1, 0) if hunk.old else hunk.old_start
        at = _exactly(lines, hunk, expected, done) if exact else _locate(lines, hunk, expected + shift, done)
        if isinstance(at, str):
            raise HunkRefusedError(
                f"{where}:{hunk.line}: hunk {number} of {change.path} {at}.",
                "The file differs from the one the patch was made for; port the patch to this base.",
                change.path,
            )
        out += lines[done:at]
        out += hunk.new
        done = at + len(hunk.old)
        shift = at - expected
        if shift:
            moved.append(Offset(change.path, number, shift))
    out += lines[done:]
    for text in out[:-1]:
        if not text.endswith(b"\n"):
            raise HunkRefusedError(
                f"{where}:{change.line}: the hunks of {change.path} would join two lines.",
                "Port the patch.",
                change.path,
            )
    return b"".join(out), moved


def _exactly(lines: Sequence[bytes], hunk: Hunk, expected: int, floor: int) -> int | str:
    """The index that a hunk's header gives, if its preimage stands there; no other place can be meant."""
    end = expected + len(hunk.old)
    if floor <= expected and end <= len(lines) and tuple(lines[expected:end]) == hunk.old:
        return expected
    return _difference(lines, hunk, expected)


def _locate(lines: Sequence[bytes], hunk: Hunk, expected: int, floor: int) -> int | str:
    """The index at which a hunk's preimage stands, or why there is none.

    As in git, a hunk that starts at line 1 with no context before its first change must match at the file's start, and
    one with no context after its last change at the file's end. Beyond git, the definition that the hunk header names
    must be the one above the place, and one place alone may fit, be it the expected one or not: in a file that is not
    the one the patch was made from, an identical block may have moved to where the right one was.
    """
    if not hunk.old:
        if hunk.old_start:
            return "has no context, so that its place cannot be told"
        return "adds a whole file where there is one" if lines else expected
    size = len(hunk.old)
    at_end = hunk.trailing == 0
    at_start = hunk.old_start == 1 and hunk.leading == 0
    places = [
        i
        for i in occurrences(lines, hunk.old, floor)
        if (not at_end or i + size == len(lines)) and (not at_start or i == 0)
    ]
    named = [i for i in places if _heading(lines, i) == hunk.heading]
    if not hunk.heading and len(named) != 1:
        named = places
    if len(named) == 1:
        return named[0]
    if named:
        return (
            f"matches at lines {', '.join(str(i + 1) for i in named[:4])}: which one is meant cannot be told"
        )
    if places:
        above = hunk.heading.decode("utf-8", "replace")
        return f"matches at line {places[0] + 1} only, which is not in {above!r}"
    return _difference(lines, hunk, expected)


def occurrences(lines: Sequence[bytes], block: Sequence[bytes], floor: int) -> list[int]:
    """The indexes, from `floor` on, at which a block of lines stands to the letter."""
    rarest = max(range(len(block)), key=lambda i: len(block[i]))
    wanted, size, whole = block[rarest], len(block), tuple(block)
    found: list[int] = []
    at = floor + rarest
    while True:
        try:
            at = lines.index(wanted, at)
        except ValueError:
            return found
        first = at - rarest
        if tuple(lines[first : first + size]) == whole:
            found.append(first)
        at += 1


def _heading(lines: Sequence[bytes], at: int) -> bytes:
    """What git would put behind `@@` for a hunk at this place: the nearest line above that starts a definition."""
    for line in reversed(lines[:at]):
        if line[:1].isalpha() or line[:1] in {b"_", b"$"}:
            return line.rstrip()[:80].rstrip()
    return b""


def _difference(lines: Sequence[bytes], hunk: Hunk, expected: int) -> str:
    """Where the file departs from the hunk's preimage, for the message."""
    for i, text in enumerate(hunk.old):
        have = lines[expected + i] if 0 <= expected + i < len(lines) else None
        if have != text:
            shown = "the end of the file" if have is None else _shown(have, text)
            return f"expects {_shown(text, have)} at line {expected + i + 1} and finds {shown}"
    edge = "end" if hunk.trailing == 0 else "beginning"
    return f"must stand at the {edge} of the file, and there is more there"


def _shown(text: bytes, other: bytes | None) -> str:
    """A line for a message; blanks and line ends only where they are the difference."""
    blanks = other is not None and text.strip() == other.strip()
    return repr((text if blanks else text.strip()).decode("utf-8", "replace")[:60])
