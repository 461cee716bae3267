"""What a compiled kernel is and uses, read from the cubin itself; standard library only, since it also goes into bundles.

A cubin is a 64-bit ELF file. The target stands in its flags; registers and stack in the `.nv.info` section's
attributes, static shared memory in the size of `.nv.shared.KERNEL`. What a kernel asks for at launch is not in it:
Triton writes it beside the cubin, Humming as the symbol SMEM_SIZE inside.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_CUDA = 190
"""ELF's number for CUDA code (EM_CUDA)."""
_NEW_ABI = 8
"""From this ABI version on (CUDA 13), the architecture is the second byte of the flags; before, the lowest."""
_REGCOUNT, _MIN_STACK, _FRAME = 0x2F, 0x12, 0x11
"""EIATTR_REGCOUNT, EIATTR_MIN_STACK_SIZE, EIATTR_FRAME_SIZE: a symbol's index and a number."""
_SIZED = 4
"""The format of an attribute whose length stands before its value."""
DYNAMIC_SYMBOL = "SMEM_SIZE"
NEWER = re.compile(
    r"\b(wgmma\S*|tcgen05\S*|setmaxnreg\S*|cp\.async\.bulk\S*|tensormap\S*|cp\.reduce\.async\.bulk\S*|"
    r"barrier\.cluster\S*|mapa\S*|getctarank\S*|griddepcontrol\S*|elect\.sync|stmatrix\S*|multimem\S*|"
    r"mbarrier\.(?:try_wait|expect_tx|complete_tx)\S*|fence\.proxy\S*|"
    r"\S*\.shared::cluster\S*|cvt\S*\.e[45]m[0-9]+x2\S*|mma\S*\.e[45]m[0-9]+\S*|red\.async\S*|st\.async\S*)"
)
"""PTX that no card before SM89 has, most of it SM90's (PTX ISA, target notes of each instruction)."""


class NotACubinError(ValueError):
    """The bytes are not a CUDA ELF file."""


@dataclass(frozen=True)
class Cubin:
    """One compiled kernel.

    Attributes:
        name: the function's name.
        origin: `triton`, `humming`, or empty.
        sha256: of the cubin's bytes.
        target: the architecture in its header, such as `sm_86`.
        registers: a thread's.
        stack_bytes: a thread's; above zero, registers were spilled or arrays are in local memory.
        shared_bytes: a block's, static and dynamic together.
        ptx_target: of the PTX that it was assembled from, where that is at hand.
        newer: instructions in that PTX that the target of an older card lacks.
    """

    name: str
    origin: str
    sha256: str
    target: str
    registers: int
    stack_bytes: int
    shared_bytes: int
    ptx_target: str = ""
    newer: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


class _Section(NamedTuple):
    name: str
    offset: int
    size: int


def read_cubin(data: bytes, *, dynamic: int | None = None, origin: str = "", ptx: str = "") -> Cubin:
    """Read a cubin.

    Args:
        data: the file.
        dynamic: bytes of shared memory asked for at launch; the figure of the symbol SMEM_SIZE where None.
        origin: who made it.
        ptx: what it was assembled from; empty where it is not at hand.

    Raises:
        NotACubinError: it is not a CUDA ELF file with at least one function.
    """
    try:
        return _read(data, dynamic, origin, ptx)
    except NotACubinError:
        raise
    except (struct.error, IndexError, ValueError) as error:
        raise NotACubinError(f"this is a broken cubin: {error}") from None


def _read(data: bytes, dynamic: int | None, origin: str, ptx: str) -> Cubin:
    if data[:5] != b"\x7fELF\x02" or struct.unpack_from("<H", data, 18)[0] != _CUDA:
        raise NotACubinError("this is not a CUDA ELF file")
    flags = struct.unpack_from("<I", data, 48)[0]
    number = flags >> 8 & 0xFF if data[8] >= _NEW_ABI else flags & 0xFF
    sections = _sections(data)
    symbols = _symbols(data, sections)
    functions = [s.name.removeprefix(".text.") for s in sections if s.name.startswith(".text.")]
    if not functions:
        raise NotACubinError("this cubin has no function")
    registers, stack = _resources(data, sections)
    static = sum(s.size for s in sections if s.name.startswith(".nv.shared.") and "reserved" not in s.name)
    if dynamic is None:
        place = symbols.get(DYNAMIC_SYMBOL)
        dynamic = struct.unpack_from("<I", data, place)[0] if place is not None else 0
    target = re.search(r"^\.target\s+(sm_\w+)", ptx, re.MULTILINE)
    code = re.sub(r"//[^\n]*", "", ptx)
    return Cubin(
        functions[0],
        origin,
        hashlib.sha256(data).hexdigest(),
        f"sm_{number}",
        registers,
        stack,
        static + dynamic,
        target[1] if target else "",
        tuple(sorted(set(NEWER.findall(code)))),
    )


def _sections(data: bytes) -> list[_Section]:
    start = struct.unpack_from("<Q", data, 40)[0]
    width, count, names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, start + i * width) for i in range(count)]
    texts = heads[names][4]
    return [_Section(_string(data, texts + head[0]), head[4], head[5]) for head in heads]


def _string(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _symbols(data: bytes, sections: list[_Section]) -> dict[str, int]:
    """Where in the file each symbol's value stands."""
    places = {s.name: s for s in sections}
    if ".symtab" not in places or ".strtab" not in places:
        return {}
    table, texts = places[".symtab"], places[".strtab"].offset
    found = {}
    for at in range(table.offset, table.offset + table.size, 24):
        name_at, _, _, section, value = struct.unpack_from("<IBBHQ", data, at)
        if 0 < section < len(sections):
            found[_string(data, texts + name_at)] = sections[section].offset + value
    return found


def _resources(data: bytes, sections: list[_Section]) -> tuple[int, int]:
    """The most registers of any function, and the deepest stack in bytes."""
    registers = stack = 0
    info = next((s for s in sections if s.name == ".nv.info"), _Section("", 0, 0))
    at, end = info.offset, info.offset + info.size
    while at + 4 <= end:
        form, attribute, length = struct.unpack_from("<BBH", data, at)
        if form != _SIZED:
            at += 4
            continue
        if length >= 8 and attribute in {_REGCOUNT, _MIN_STACK, _FRAME}:  # noqa: PLR2004
            value = struct.unpack_from("<I", data, at + 8)[0]
            registers = max(registers, value) if attribute == _REGCOUNT else registers
            stack = max(stack, value) if attribute != _REGCOUNT else stack
        at += 4 + length
    return registers, stack


def collect_cubins(cache: Path) -> list[Cubin]:
    """The kernels that were compiled into a cache directory, in the order of their paths; each content once.

    Triton leaves `NAME.cubin`, `NAME.json` and `NAME.ptx` in a directory, Humming `kernel.cubin` beside its source.
    """
    found: dict[str, Cubin] = {}
    for path in sorted(cache.rglob("*.cubin")):
        note, source = path.with_suffix(".json"), path.with_suffix(".ptx")
        ptx = source.read_text("utf-8", "replace") if source.is_file() else ""
        try:
            if note.is_file():
                shared = json.loads(note.read_bytes()).get("shared", 0)
                # Triton's figure is all of it: its cubins have no static part beside.
                cubin = read_cubin(path.read_bytes(), dynamic=int(shared), origin="triton", ptx=ptx)
            else:
                origin = "humming" if path.with_suffix(".cu").is_file() else ""
                cubin = read_cubin(path.read_bytes(), origin=origin, ptx=ptx)
        except (NotACubinError, ValueError):
            continue
        found.setdefault(cubin.sha256, cubin)
    return list(found.values())
