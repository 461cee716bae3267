"""One patch as a mail: what `git am` reads, read and written here one way only.

The written form: zero commit id, full index, binary, no renames, no diffstat, no signature. A message that `git am`
would cut or mangle is refused when it is written, so that reading gives back what was written.
"""

from __future__ import annotations

import base64
import datetime
import email.utils
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.errors import InputError
from patchq.git.commits import Identity
from patchq.git.diff import FileChange, parse_diff
from patchq.git.mailinfo import (
    clean_message,
    clean_subject,
    decode,
    decode_header,
    split_message,
    spoils_message,
    take_inbody_headers,
)
from patchq.git.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence

FROM_LINE = b"From 0000000000000000000000000000000000000000 Mon Sep 17 00:00:00 2001\n"
DIFF_OPTIONS = (
    "--patch",
    "--full-index",
    "--binary",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "-O/dev/null",
)


YEARS = range(1970, 2100)
"""The years, as a date itself says them, that `git am` reads (git's tm_to_time_t); others it refuses or gets wrong."""


@dataclass(frozen=True)
class MailPatch:
    """A patch as its file says it.

    Attributes:
        author: who wrote it and when.
        message: the whole commit message, title first, ending in a newline.
        changes: what it does, file by file, in the file's order.
    """

    author: Identity
    message: str
    changes: tuple[FileChange, ...]

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path it reads or writes, sorted."""
        return tuple(sorted({p for c in self.changes for p in c.paths}))


def parse_mail(data: bytes, where: str) -> MailPatch:
    """Read one patch file.

    Args:
        data: its bytes.
        where: its name, for messages.

    Raises:
        InputError: at file:line, what is wrong with it.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise InputError(f"{where}:1: the file begins with a byte order mark.", "Save it again without one.")
    if re.match(rb"\s*<(?:!doctype|html)", data[:200], re.IGNORECASE):
        raise InputError(
            f"{where}:1: this is an HTML page, not a patch.", "Fetch the raw patch and save that."
        )
    if data[:1000].split(b"\n", 1)[0].endswith(b"\r"):
        raise InputError(
            f"{where}:1: the file's lines end in CRLF.", "Save it again as it was sent, with LF line ends."
        )
    if not data.startswith(b"From "):
        raise InputError(
            f"{where}:1: the file does not begin with `From `, as a mailed patch does.",
            "Write it with patchq refresh, or with `git format-patch`.",
        )
    head, blank, rest = data.partition(b"\n\n")
    if not blank:
        raise InputError(
            f"{where}:1: there is no empty line after the mail headers.", "The file is truncated."
        )
    headers = _headers(head.split(b"\n")[1:], where)
    encoding = headers.get("content-transfer-encoding", b"8bit").strip().lower()
    if encoding not in {b"8bit", b"7bit", b"binary"}:
        raise InputError(
            f"{where}: a {encoding.decode('latin-1')} mail body is not supported.", "Save it as 8bit."
        )
    body, rest = split_message(rest)
    inbody, body = take_inbody_headers(body)
    headers |= inbody
    for name in ("from", "date", "subject"):
        if name not in headers:
            raise InputError(
                f"{where}:1: the mail has no {name.title()} header.", "Write it with patchq refresh."
            )
    charset = re.search(rb"charset=\"?([^\s;\"]+)", headers.get("content-type", b""), re.IGNORECASE)
    title = clean_subject(decode_header(headers["subject"]))
    text = decode(body, charset[1].decode("ascii", "replace") if charset else "utf-8")
    diff = _diff_of(rest, where, data[: len(data) - len(rest)].count(b"\n") + 1)
    return MailPatch(
        author=_author(headers, where),
        message=clean_message(f"{title}\n\n{text}") + "\n",
        changes=parse_diff(diff, where, data[: len(data) - len(diff)].count(b"\n") + 1),
    )


def format_mail(author: Identity, message: str, diff: bytes, where: str) -> bytes:
    """Write one patch file.

    Args:
        author: who wrote the patch and when.
        message: its commit message.
        diff: its diff, as `diff_trees` gives it.
        where: the patch's name, for messages.

    Raises:
        InputError: `git am` could not carry this message; the line is named.
    """
    title, _, body = message.strip("\n").partition("\n")
    body = clean_message(body)
    inbody, _ = take_inbody_headers(body.encode("utf-8", "surrogateescape"))
    for number, line in enumerate(body.split("\n"), start=3):
        if spoils_message(line) or (inbody and number == 3):  # noqa: PLR2004
            raise InputError(
                f"{where}: line {number} of the commit message, {line!r}, would be taken for a part of the mail.",
                "Indent that line by a space.",
            )
    if not title or title != clean_subject(title):
        raise InputError(
            f"{where}: {title!r} is not a title that `git am` keeps.", "Reword the commit's first line."
        )
    try:
        when = datetime.datetime.fromtimestamp(author.seconds, _zone(author.zone))
    except (ValueError, OverflowError, OSError):
        when = None
    if when is None or author.seconds < 0 or when.year not in YEARS:
        raise InputError(
            f"{where}: the author's date, {author.seconds} {author.zone}, is none that `git am` reads.",
            "Give the commit another: git commit --amend --date=now.",
        )
    head = [
        b"From: %s <%s>"
        % (_encode(author.name, quote=True), author.email.encode("utf-8", "surrogateescape")),
        b"Date: " + email.utils.format_datetime(when).encode(),
        b"Subject: " + _encode(title),
    ]
    if not (title + body + author.name).isascii():
        head += [
            b"MIME-Version: 1.0",
            b"Content-Type: text/plain; charset=UTF-8",
            b"Content-Transfer-Encoding: 8bit",
        ]
    text = body.encode("utf-8", "surrogateescape") + b"\n" if body else b""
    data = FROM_LINE + b"\n".join(head) + b"\n\n" + text + b"---\n\n" + diff
    again = parse_mail(data, where)
    if (again.author, again.message) != (author, clean_message(f"{title}\n\n{body}") + "\n"):
        raise InputError(
            f"{where}: the author or message does not survive being mailed ({again.title!r}).",
            "Use printable text in the author's name and in the message.",
        )
    return data


def diff_trees(git_dir: Path, old: str, new: str, alternates: Sequence[Path] = ()) -> bytes:
    """The diff between two trees of a repository, in the one form that bodies are written in.

    Git runs in an empty repository that borrows the objects, where no attribute or setting can change that form: those
    of the repository, and those of the directory that one stands in, would.

    Args:
        git_dir: the repository.
        old: a tree's id.
        new: another's.
        alternates: object directories of others that may be read as well.
    """
    found = run(["rev-parse", "--git-path", "objects"], cwd=git_dir, env={"GIT_DIR": str(git_dir)})
    objects = git_dir / os.fsdecode(found).rstrip("\n")
    with tempfile.TemporaryDirectory(prefix="patchq-") as empty:
        (Path(empty) / "HEAD").write_text("ref: refs/heads/none\n")
        (Path(empty) / "refs").mkdir()
        env = {"GIT_DIR": empty, "GIT_OBJECT_DIRECTORY": str(objects.absolute())}
        if alternates:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = os.pathsep.join(map(str, alternates))
        return run(["diff-tree", "-r", *DIFF_OPTIONS, old, new], cwd=Path(empty), env=env)


def _headers(lines: list[bytes], where: str) -> dict[str, bytes]:
    headers: dict[str, bytes] = {}
    name = ""
    for number, line in enumerate(lines, start=2):
        if line[:1] in b" \t" and name:
            headers[name] += b"\n" + line
            continue
        key, colon, value = line.partition(b":")
        name = key.decode("latin-1").strip().lower()
        if not colon or not re.fullmatch(r"[!-9;-~]+", key.decode("latin-1")):
            raise InputError(
                f"{where}:{number}: this is not a mail header.", "Write the patch with patchq refresh."
            )
        headers.setdefault(name, value.strip())
    return headers


def _diff_of(rest: bytes, where: str, first_line: int) -> bytes:
    """The diff in what follows a message, past the diffstat.

    Raises:
        InputError: there is none, or there is one in another form, which would be passed over.
    """
    found = re.compile(rb"^diff --git ", re.MULTILINE).search(rest)
    before = rest[: found.start()] if found else rest
    if foreign := re.search(rb"^(?:\+\+\+ |@@ -)", before, re.MULTILINE):
        line = first_line + before[: foreign.start()].count(b"\n")
        raise InputError(
            f"{where}:{line}: a diff begins here without a `diff --git` line.",
            "Write the patch with patchq refresh, or with `git format-patch`.",
        )
    if found is None:
        raise InputError(
            f"{where}:{first_line}: the patch changes no file.",
            "If it was cut off, restore it; if its commit is empty, drop the patch.",
        )
    return rest[found.start() :]


def _author(headers: dict[str, bytes], where: str) -> Identity:
    raw = headers["from"].replace(b"\n", b"")
    match = re.match(rb"\s*(.*?)\s*<([^<>]*)>\s*$", raw, re.DOTALL)
    if match is None:
        raise InputError(
            f"{where}:2: `From:` does not read `Name <mail>`.", "Write the patch with patchq refresh."
        )
    name = decode_header(match[1])
    if name.startswith('"') and name.endswith('"') and len(name) > 1:
        name = re.sub(r"\\(.)", r"\1", name[1:-1])
    date = headers["date"].decode("latin-1")
    zone_given = re.search(r"\s([+-]\d+)", date)
    try:
        parsed = email.utils.parsedate_tz(date)
        seconds = email.utils.mktime_tz(parsed) if parsed else -1
    except (ValueError, OverflowError):
        seconds = -1
    if (
        parsed is None
        or seconds < 0
        or parsed[0] not in YEARS
        or str(parsed[0]) not in date
        or (zone_given and not re.fullmatch(r"[+-]([01]\d|2[0-3])[0-5]\d", zone_given[1]))
    ):
        raise InputError(f"{where}:3: `Date:` is not a mail date.", "Write the patch with patchq refresh.")
    minutes = (parsed[9] or 0) // 60
    sign = "-" if minutes < 0 else "+"
    zone = f"{sign}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return Identity(name, decode(match[2]), seconds, zone)


def _zone(zone: str) -> datetime.timezone:
    minutes = int(zone[1:3]) * 60 + int(zone[3:5])
    return datetime.timezone(datetime.timedelta(minutes=-minutes if zone.startswith("-") else minutes))


def _encode(text: str, *, quote: bool = False) -> bytes:
    """A header value: as it is where it is ASCII and looks like no RFC 2047 word, else RFC 2047 in base64, one word a line."""
    if quote and re.search(r'[()<>@,;:\\".\[\]]', text):
        text = '"' + re.sub(r'(["\\])', r"\\\1", text) + '"'
    if text.isascii() and "=?" not in text:
        return text.encode()
    words: list[bytes] = []
    chunk = b""
    for char in text:
        coded = char.encode("utf-8", "surrogateescape")
        if len(chunk) + len(coded) > 42:  # noqa: PLR2004
            words.append(chunk)
            chunk = b""
        chunk += coded
    words.append(chunk)
    return b"\n ".join(b"=?UTF-8?B?" + base64.b64encode(w) + b"?=" for w in words)
