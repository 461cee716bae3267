"""What `git am` makes of a mail's text, by git's own rules (mailinfo.c, strbuf.c), so that both read one patch alike."""

from __future__ import annotations

import base64
import binascii
import re

_WORD = re.compile(rb"=\?([^?\s]+)\?([bBqQ])\?([^?]*)\?=")
_BREAK = re.compile(rb"^(?:diff -|Index: |--- \S|---[ \t\r\f\v]*$)", re.MULTILINE)
_INBODY = re.compile(rb"(from|subject|date):[ \t]*(.*)", re.IGNORECASE)
_MAIL_START = re.compile(r"From .*\d\d?:\d\d:\d\d \d{4}")
"""A line that `git am` takes for the beginning of the next mail in a file (builtin/mailsplit.c, is_from_line)."""


def decode(data: bytes, charset: str = "utf-8") -> str:
    """Other people's bytes as text: as declared, else UTF-8, else Latin-1, which nothing fails."""
    for name in (charset, "utf-8"):
        try:
            return data.decode(name)
        except (UnicodeDecodeError, LookupError):
            continue
    return data.decode("latin-1")


def decode_header(value: bytes) -> str:
    """A header's value, unfolded, with its RFC 2047 words decoded."""
    value = re.sub(rb"\n[ \t]+", b" ", value).strip()
    value = re.sub(rb"\?=\s+=\?", b"?==?", value)
    out = ""
    at = 0
    for word in _WORD.finditer(value):
        out += decode(value[at : word.start()])
        try:
            packed = word[3] if word[2] in b"bB" else base64.b64encode(_quoted(word[3]))
            out += decode(base64.b64decode(packed, validate=True), word[1].decode("ascii", "replace"))
        except binascii.Error:
            out += decode(word[0])
        at = word.end()
    return out + decode(value[at:])


def _quoted(text: bytes) -> bytes:
    return binascii.a2b_qp(text, header=True)


def clean_subject(text: str) -> str:
    """A subject as `git am --keep-non-patch` keeps it: no `Re:`, no `[PATCH ...]`, single spaces."""
    at = 0
    while at < len(text):
        rest = text[at:]
        if re.match(r"re:", rest, re.IGNORECASE):
            text = text[:at] + rest[3:]
        elif rest[0] in " \t:":
            text = text[:at] + rest[1:]
        elif rest[0] == "[" and "]" in rest:
            tag = rest[: rest.index("]") + 1]
            if "PATCH" in tag:
                text = text[:at] + rest[len(tag) :]
            else:
                at += len(tag) + (rest[len(tag) : len(tag) + 1].isspace())
        else:
            break
    return re.sub(r"[ \t\n\r\f\v]+", " ", text).strip(" ")


def clean_message(text: str) -> str:
    """A message as git keeps it: no blanks at line ends, no two empty lines together, none at the ends."""
    lines = [line.rstrip(" \t\r\f\v") for line in text.split("\n")]
    kept = [line for i, line in enumerate(lines) if line or (i and lines[i - 1])]
    return "\n".join(kept).strip("\n")


def split_message(rest: bytes) -> tuple[bytes, bytes]:
    """What follows a mail's headers, cut at the line that ends the message."""
    found = _BREAK.search(rest)
    return (rest[: found.start()], rest[found.start() :]) if found else (rest, b"")


def take_inbody_headers(body: bytes) -> tuple[dict[str, bytes], bytes]:
    """The headers that stand at the beginning of a message, where a mail is sent on for somebody else, and the rest."""
    headers: dict[str, bytes] = {}
    lines = body.lstrip(b"\n").split(b"\n")
    name = ""
    while lines:
        line = lines[0]
        if found := _INBODY.match(line):
            name = found[1].decode().lower()
            if name in headers:
                break
            headers[name] = found[2]
        elif re.match(rb"\[PATCH\](\s|$)", line) and "subject" not in headers:
            name, headers["subject"] = "subject", line
        elif re.match(rb">From [0-9a-f]{40} Mon Sep 17 00:00:00 2001$", line):
            name = ""
        elif line[:1] in {b" ", b"\t"} and name:
            headers[name] += b"\n" + line
        else:
            break
        lines.pop(0)
    return headers, b"\n".join(lines)


def spoils_message(line: str) -> bool:
    """Whether `git am` would end the message, or the mail, at this line."""
    return bool(_BREAK.match(line.encode("utf-8", "surrogateescape")) or _MAIL_START.match(line))
