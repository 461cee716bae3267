"""Git's diff format, read strictly: a patch says exactly what it does, or it is refused at file:line.

Format: the `git diff` section "Generating patch text with -p" and, for binary patches, apply.c and base85.c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from patchq.errors import InputError
from patchq.git.binary import Binary, read_binary
from patchq.git.lines import Reader, shown, split_lines
from patchq.git.objects import EMPTY_BLOB, REGULAR
from patchq.git.paths import check_path, header_names, unquote

_SIGNATURE = frozenset({b"-- \n", b"--\n", b"-- \r\n"})
_HUNK = re.compile(rb"@@ -(\d{1,10})(?:,(\d{1,10}))? \+(\d{1,10})(?:,(\d{1,10}))? @@(?: ?(.*))?$")
_INDEX = re.compile(rb"index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})(?: (\d{6}))?$")
_PAIRS = (("old mode", "new mode"), ("rename from", "rename to"), ("copy from", "copy to"))
_MARKS = ("new file mode", "deleted file mode", *(mark for pair in _PAIRS for mark in pair))


@dataclass(frozen=True)
class Hunk:
    """One hunk of a text diff.

    Attributes:
        line: where its header stands in the patch file, from 1.
        old_start: first line in the preimage, from 1 (0 where the preimage is empty).
        new_start: first line in the postimage, from 1.
        heading: what follows the second `@@` (git puts the enclosing definition there).
        old: the preimage's lines, with their endings.
        new: the postimage's lines, with their endings.
        leading: lines of context before the first change.
        trailing: lines of context after the last change.
        kept: lines of context in all.
    """

    line: int
    old_start: int
    new_start: int
    heading: bytes
    old: tuple[bytes, ...]
    new: tuple[bytes, ...]
    leading: int
    trailing: int
    kept: int = 0

    @property
    def added(self) -> int:
        """How many lines it adds."""
        return len(self.new) - self.kept

    @property
    def removed(self) -> int:
        """How many lines it takes away."""
        return len(self.old) - self.kept


@dataclass(frozen=True)
class FileChange:
    """What a patch does to one file.

    Attributes:
        line: where its `diff --git` stands in the patch file, from 1.
        old_path: the preimage's path; None where the file is added.
        new_path: the postimage's path; None where the file is deleted.
        old_mode: the preimage's mode where the patch states it.
        new_mode: the postimage's mode where the patch states it.
        old_oid: the preimage's (possibly abbreviated) object id, where there is an index line.
        new_oid: the postimage's.
        copied: whether the old path stays (a copy), else it goes (a rename) where the two differ.
        hunks: the text changes.
        binary: the binary change, if it is one.
    """

    line: int
    old_path: str | None
    new_path: str | None
    old_mode: int | None = None
    new_mode: int | None = None
    old_oid: str = ""
    new_oid: str = ""
    copied: bool = False
    hunks: tuple[Hunk, ...] = ()
    binary: Binary | None = None

    @property
    def path(self) -> str:
        """The path a person would name."""
        return self.new_path if self.new_path is not None else str(self.old_path)

    @property
    def gone(self) -> str | None:
        """The path that it takes away, by deletion or rename."""
        return None if self.copied or self.old_path == self.new_path else self.old_path

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path it reads or writes."""
        return tuple(dict.fromkeys(p for p in (self.old_path, self.new_path) if p is not None))


def parse_diff(data: bytes, where: str, first_line: int = 1) -> tuple[FileChange, ...]:
    """Read a diff.

    Args:
        data: the text from the first `diff --git` on.
        where: the file's name, for messages.
        first_line: the number of the first line of `data` in that file.

    Raises:
        InputError: it is not a well-formed git diff, or names a path that leaves the tree.
    """
    reader = Reader(where, split_lines(data), first_line=first_line)
    changes: list[FileChange] = []
    while (line := reader.peek()) is not None:
        if line.startswith(b"diff --git "):
            changes.append(_file_change(reader))
        elif line in _SIGNATURE:
            reader.take()
            _signature(reader)
        elif not line.strip() and not any(rest.strip() for rest in reader.lines[reader.at :]):
            break
        else:
            raise reader.fail(f"{shown(line)} is neither a hunk line nor the start of a file's diff")
    _refuse_twice(changes, where)
    return tuple(changes)


def _signature(reader: Reader) -> None:
    """What may follow format-patch's `-- ` line: git's version, and nothing else (a second mail would be lost)."""
    if (line := reader.peek()) is not None and not line.startswith((b"From ", b"diff ")):
        reader.take()
    while (line := reader.peek()) is not None:
        if line.strip():
            raise reader.fail(f"{shown(line)} stands after the end of the patch", "Keep one patch a file.")
        reader.take()


def _refuse_twice(changes: list[FileChange], where: str) -> None:
    """Refuse two changes of one path; but a file may go and another come in its place, as when its type changes."""
    comes: set[str | None] = set()
    goes: set[str | None] = set()
    for change in changes:
        stays = change.old_path == change.new_path
        for path in change.paths:
            twice = path == change.new_path and (path in comes or (stays and path in goes))
            if twice or (path == change.gone and path in goes):
                raise InputError(
                    f"{where}:{change.line}: {path} is changed twice in one patch.",
                    "Write the patch anew from its commit: patchq refresh.",
                )
        comes.add(change.new_path)
        goes |= {change.old_path} if stays else {change.gone}
        comes.discard(None)
        goes.discard(None)


def _file_change(reader: Reader) -> FileChange:
    start = reader.number
    header = reader.take()
    names = header_names(header)
    old: str | None = names
    new: str | None = names
    values: dict[str, int | str | bool] = {}
    binary = False
    while (line := reader.peek()) is not None:
        text = line.rstrip(b"\n")
        if match := _INDEX.match(text):
            values["old_oid"], values["new_oid"] = match[1].decode(), match[2].decode()
            if match[3]:
                values["old_mode"] = values["new_mode"] = _mode(reader, text)
        elif text.startswith((b"old mode ", b"deleted file mode ")):
            values["old_mode"] = _mode(reader, text)
            if text.startswith(b"deleted"):
                new = None
        elif text.startswith((b"new mode ", b"new file mode ")):
            values["new_mode"] = _mode(reader, text)
            if text.startswith(b"new file"):
                old = None
        elif text.startswith((b"rename from ", b"copy from ")):
            old = _path(reader, text.split(b" ", 2)[2], strip=False)
        elif text.startswith((b"rename to ", b"copy to ")):
            new = _path(reader, text.split(b" ", 2)[2], strip=False)
            values["copied"] = text.startswith(b"copy")
        elif text.startswith((b"similarity index ", b"dissimilarity index ")):
            pass
        elif text.startswith(b"--- "):
            old = _dashed(reader, text[4:], old)
        elif text.startswith(b"+++ "):
            new = _dashed(reader, text[4:], new)
            reader.take()
            break
        elif text == b"GIT binary patch":
            binary = True
            reader.take()
            break
        elif text.startswith(b"Binary files "):
            raise reader.fail(
                "a binary file is named but its content is left out", "Write it with `git diff --binary`."
            )
        else:
            break
        reader.take()
    if old is None and new is None:
        raise InputError(f"{reader.where}:{start}: {shown(header)} names no file.", "Write the patch anew.")
    head = reader.lines[start - reader.first_line : reader.at]
    body = read_binary(reader) if binary else None
    hunks = [] if binary else _hunks(reader)
    change = FileChange(start, old, new, hunks=tuple(hunks), binary=body, **values)  # type: ignore[arg-type]
    _check_whole(change, head, reader.lines[reader.at - 1], reader.where)
    return change


def _check_whole(change: FileChange, head: list[bytes], last: bytes, where: str) -> None:
    """Refuse a file's diff that leaves the tree, or that says less than its header promises.

    Raises:
        InputError: what is wrong with it.
    """
    for path in change.paths:
        check_path(path, f"{where}:{change.line}")
    if lacking := _lacking(change, head, last):
        raise InputError(
            f"{where}:{change.line}: {lacking}.",
            "The file is truncated or was edited by hand; write it anew from its commit: patchq refresh.",
        )


def _lacking(change: FileChange, head: list[bytes], last: bytes) -> str:
    """What the header of a file's diff promises and its rest, to its last line, does not keep; empty where all is there."""
    marks = {mark for mark in _MARKS for line in head[1:] if line.startswith(mark.encode() + b" ")}
    halves = [
        f"{a} without {b}"
        for one, two in _PAIRS
        for a, b in ((one, two), (two, one))
        if (a in marks) > (b in marks)
    ]
    path = change.path
    added, deleted = change.old_path is None, change.new_path is None
    whole = added or deleted
    oids = (
        {change.old_oid if deleted else "", change.new_oid if added else ""}
        if whole
        else {change.old_oid, change.new_oid}
    )
    kept = bool(change.hunks) or change.binary is not None
    checks = {
        f"the diff of {path} has a line {''.join(halves[:1])!r}": bool(halves),
        f"the diff of {path} does not say plainly whether the file is deleted": deleted
        != ("deleted file mode" in marks),
        f"the diff of {path} does not say plainly whether the file is added": added
        != ("new file mode" in marks),
        f"the diff of {path} ends inside a line": not last.endswith(b"\n"),
        f"the diff of {path} does not say what its content is": not kept and whole and not change.old_oid,
        f"the diff of {path} names another content and does not hold it": not kept
        and any(oid and not (whole and EMPTY_BLOB.startswith(oid)) for oid in oids),
        f"the diff of {path} changes nothing": not kept
        and change.old_path == change.new_path
        and change.old_mode == change.new_mode,
    }
    return next((problem for problem, found in checks.items() if found), "")


def _hunks(reader: Reader) -> list[Hunk]:
    hunks: list[Hunk] = []
    while (line := reader.peek()) is not None and line.startswith(b"@@"):
        match = _HUNK.match(line.rstrip(b"\n"))
        if match is None:
            raise reader.fail(f"{shown(line)} is not a hunk header")
        start = reader.number
        reader.take()
        counts = [int(match[2] or b"1"), int(match[4] or b"1")]
        hunks.append(_hunk(reader, start, int(match[1]), int(match[3]), match[5] or b"", counts))
    return hunks


def _hunk(
    reader: Reader, start: int, old_start: int, new_start: int, heading: bytes, counts: list[int]
) -> Hunk:
    old: list[bytes] = []
    new: list[bytes] = []
    leading = trailing = kept = 0
    changed = False
    while len(old) < counts[0] or len(new) < counts[1]:
        line = reader.peek()
        if line is None:
            raise reader.fail(
                f"the patch ends inside the hunk of line {start}, which promises {counts[0]} old and "
                f"{counts[1]} new lines",
                "The file is truncated or its counts are wrong; write it anew from its commit.",
            )
        mark, text = line[:1], line[1:]
        if mark == b"\n":
            mark, text = b" ", b"\n"
        if mark == b" ":
            trailing += 1
            kept += 1
            leading += not changed
        elif mark in b"+-" and mark:
            changed, trailing = True, 0
        else:
            raise reader.fail(
                f"{shown(line)} stands inside the hunk of line {start}, whose counts promise more lines"
            )
        if not text.endswith(b"\n"):
            raise reader.fail(
                "the patch ends inside a line", "The file is truncated; write it anew from its commit."
            )
        reader.take()
        following = reader.peek()
        if following is not None and following.startswith(b"\\"):
            reader.take()
            text = text.removesuffix(b"\n")
        if mark in b" -":
            old.append(text)
        if mark in b" +":
            new.append(text)
    if (len(old), len(new)) != tuple(counts):
        raise reader.fail(
            f"the hunk of line {start} promises {counts[0]} old and {counts[1]} new lines and has {len(old)} and {len(new)}",
        )
    if not changed:
        raise reader.fail(f"the hunk of line {start} changes nothing")
    extra = reader.peek()
    if extra is not None and extra[:1] in b"+ -" and not extra.startswith(b"-- ") and extra != b"--\n":
        raise reader.fail(f"{shown(extra)} stands after the hunk of line {start} has all its promised lines")
    return Hunk(start, old_start, new_start, heading.strip(), tuple(old), tuple(new), leading, trailing, kept)


def _mode(reader: Reader, text: bytes) -> int:
    word = text.rsplit(b" ", 1)[1]
    if not re.fullmatch(rb"100644|100755|120000|160000|100664", word):
        raise reader.fail(
            f"{word.decode('latin-1')} is not a file mode; allowed are 100644, 100755, 120000, 160000"
        )
    return REGULAR if word == b"100664" else int(word, 8)


def _path(reader: Reader, text: bytes, *, strip: bool = True) -> str:
    name = unquote(text) if text.startswith(b'"') else text
    if name is None:
        raise reader.fail(f"{shown(text)} is not a well-quoted path")
    if strip:
        _, _, name = name.partition(b"/")
    return name.decode("utf-8", "surrogateescape")


def _dashed(reader: Reader, text: bytes, current: str | None) -> str | None:
    """The path of a `---` or `+++` line; git puts a tab after a name that has a space."""
    if text == b"/dev/null":
        return None
    path = _path(reader, text.removesuffix(b"\t"))
    if current is not None and path != current:
        raise reader.fail(f"{path!r} stands where the header names {current!r}")
    return path
