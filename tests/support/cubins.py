"""Cubins made by hand: an ELF file with what `patchq.gpu.cubin` reads and nothing else."""

from __future__ import annotations

import struct

HEADER = 64


def make_cubin(
    *,
    number: int = 86,
    abi: int = 7,
    name: str = "kernel",
    registers: int = 40,
    stack: int = 0,
    static: int = 0,
    dynamic: int | None = None,
    machine: int = 190,
) -> bytes:
    """A cubin of one function for an architecture (`number` 86 is sm_86), in the flags as its ABI version has them."""
    info = struct.pack("<BBHII", 4, 0x2F, 8, 1, registers) + struct.pack("<BBHII", 4, 0x12, 8, 1, stack)
    info = struct.pack("<BBH", 1, 0x20, 0) + info
    contents = {
        "": b"",
        f".text.{name}": b"\0" * 16,
        ".nv.info": info,
        f".nv.shared.{name}": b"\0" * static,
        ".nv.shared.reserved.0": b"\0" * 1024,
    }
    if dynamic is not None:
        contents[".nv.global.init"] = struct.pack("<I", dynamic)
        contents[".strtab"] = b"\0SMEM_SIZE\0"
        section = list(contents).index(".nv.global.init")
        contents[".symtab"] = bytes(24) + struct.pack("<IBBHQQ", 1, 0, 0, section, 0, 4)
    names = b"".join(n.encode() + b"\0" for n in [*contents, ".shstrtab"])
    contents[".shstrtab"] = names
    body, heads, offset, at = b"", b"", HEADER, 0
    for label, data in contents.items():
        heads += struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, offset, len(data), 0, 0, 1, 0)
        body += data
        offset += len(data)
        at += len(label) + 1
    flags = number << 8 if abi >= 8 else number
    ident = b"\x7fELF\x02\x01\x01" + bytes([51, abi]) + bytes(7)
    head = struct.pack(
        "<HHIQQQIHHHHHH",
        2,
        machine,
        1,
        0,
        0,
        offset,
        flags,
        HEADER,
        0,
        0,
        64,
        len(contents),
        len(contents) - 1,
    )
    return ident + head + body + heads
