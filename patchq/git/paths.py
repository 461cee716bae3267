"""Paths as patches write them: quoted in C's way, and never outside the tree."""

from __future__ import annotations

import re

from patchq.errors import InputError

_ESCAPES = {
    **{ord(k): v for k, v in zip('abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True)},
}

_IGNORED = dict.fromkeys((*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF))
"""Code points that HFS+ does not see in a name."""


def check_path(path: str, where: str) -> None:
    """Refuse a path that would leave the tree or reach into a repository's own files.

    Raises:
        InputError: the path is absolute, has `.`, `..` or `.git` in it, or is empty somewhere.
    """
    bad = any(part in {"", ".", ".."} for part in path.split("/"))
    if bad or "\0" in path or any(_reserved(part) for part in re.split(r"[/\\]", path)):
        raise InputError(
            f"{where}: the path {path!r} is not a file inside the tree.", "Do not use this patch."
        )


def _reserved(part: str) -> bool:
    """Whether a file system may take a name for `..` or `.git`, as git's own `core.protectHFS` and `protectNTFS` say."""
    seen = part.translate(_IGNORED).partition(":")[0].lower()
    return seen == ".." or seen.rstrip(". ") in {".git", "git~1"}


def header_names(line: bytes) -> str | None:
    """The one path that both sides of a `diff --git` line name, or None where they differ."""
    rest = line[len(b"diff --git ") :].rstrip(b"\n")
    if rest.startswith(b'"'):
        end = 1
        while end < len(rest) and rest[end : end + 1] != b'"':
            end += 2 if rest[end : end + 1] == b"\\" else 1
        left, right = unquote(rest[: end + 1]), rest[end + 2 :]
        right_name = unquote(right) if right.startswith(b'"') else right
        if left is None or right_name is None:
            return None
        one, two = left.partition(b"/")[2], right_name.partition(b"/")[2]
        return one.decode("utf-8", "surrogateescape") if one == two else None
    half, odd = divmod(len(rest) - 1, 2)
    if odd or rest[half : half + 1] != b" ":
        return None
    one, two = rest[:half].partition(b"/")[2], rest[half + 1 :].partition(b"/")[2]
    return one.decode("utf-8", "surrogateescape") if one == two and one else None


def unquote(text: bytes) -> bytes | None:
    """A path in git's C-style quotes, undone; None where it is not well-formed."""
    if len(text) < 2 or not text.endswith(b'"'):  # noqa: PLR2004
        return None
    out = bytearray()
    at = 1
    while at < len(text) - 1:
        byte = text[at]
        if byte != ord("\\"):
            out.append(byte)
            at += 1
            continue
        octal = re.match(rb"[0-3][0-7]{2}", text[at + 1 : at + 4])
        if octal:
            out.append(int(octal[0], 8))
            at += 4
        elif text[at + 1] in _ESCAPES:
            out.append(_ESCAPES[text[at + 1]])
            at += 2
        else:
            return None
    return bytes(out)
