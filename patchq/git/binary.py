"""Binary patches: base85 text into content or a delta, and a delta put on its base (git: apply.c, base85.c, patch-delta.c)."""

from __future__ import annotations

import base64
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from patchq.git.lines import Reader

MAX_BINARY = 256 * 1024 * 1024
"""Bytes a binary patch may inflate to; more is taken for a bomb."""


@dataclass(frozen=True)
class Binary:
    """One direction of a binary patch: the whole content, or a delta against the preimage."""

    kind: Literal["literal", "delta"]
    data: bytes


def read_binary(reader: Reader) -> Binary:
    """Read what follows `GIT binary patch`, and keep the forward direction.

    Raises:
        InputError: it is not base85, does not inflate, or is larger than `MAX_BINARY`.
    """
    forward: Binary | None = None
    while (line := reader.peek()) is not None:
        match = re.match(rb"(literal|delta) (\d{1,18})$", line.rstrip(b"\n"))
        if match is None:
            break
        size = int(match[2])
        if size > MAX_BINARY:
            raise reader.fail(f"a binary patch of {size} bytes is over the limit of {MAX_BINARY}")
        reader.take()
        packed = bytearray()
        while (row := reader.peek()) is not None and row.strip():
            code = row[0]
            length = code - 64 if 65 <= code <= 90 else code - 70 if 97 <= code <= 122 else 0  # noqa: PLR2004
            try:
                packed += base64.b85decode(row[1:].strip())[:length]
            except ValueError:
                raise reader.fail("a line of the binary patch is not base85") from None
            reader.take()
        if reader.peek() is not None:
            reader.take()
        inflater = zlib.decompressobj()
        try:
            data = inflater.decompress(bytes(packed), size + 1)
        except zlib.error:
            raise reader.fail("the binary patch does not inflate") from None
        if len(data) != size:
            raise reader.fail(f"the binary patch promises {size} bytes and has {len(data)}")
        forward = forward or Binary("literal" if match[1] == b"literal" else "delta", data)
    if forward is None:
        raise reader.fail("a binary patch with no content")
    return forward


def apply_delta(base: bytes, delta: bytes) -> bytes:
    """A git delta applied to its base (format: git's pack-format, "Deltified representation").

    Raises:
        ValueError: the delta is not for this base, or is broken.
    """
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = delta[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value

    try:
        if varint() != len(base):
            raise ValueError("base size differs")
        size = varint()
        out = bytearray()
        while at < len(delta):
            op = delta[at]
            at += 1
            if op & 0x80:
                offset = length = 0
                for i in range(7):
                    if op & (1 << i):
                        if i < 4:  # noqa: PLR2004
                            offset |= delta[at] << (8 * i)
                        else:
                            length |= delta[at] << (8 * (i - 4))
                        at += 1
                out += base[offset : offset + (length or 0x10000)]
            elif op:
                out += delta[at : at + op]
                at += op
            else:
                raise ValueError("reserved instruction")
            if len(out) > size:
                break
    except IndexError:
        raise ValueError("delta is truncated") from None
    if len(out) != size:
        raise ValueError("result size differs")
    return bytes(out)
