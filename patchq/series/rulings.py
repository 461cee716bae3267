"""rulings.yaml: what a person decided about a patch on a base, and why; it stands beside the patch."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from patchq.series.parsed import read_known
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from pathlib import Path

NAME = "rulings.yaml"
HEADER = "Written by patchq verdict set: what a person decided, and why."

Verdict = Literal[
    "clean", "offset", "merged", "conflict", "missing", "landed", "partial", "reworked", "reverted"
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""What can become of a patch on a base."""


@dataclass(frozen=True)
class Ruling:
    """One decision.

    Attributes:
        base: the base's name.
        verdict: what the patch is there.
        because: why.
        patch_sha256: the hash of the patch's bytes that were judged.
        base_tree: the tree of the base that they were judged against.
        date: the day.
    """

    base: str
    verdict: Verdict
    because: str
    patch_sha256: str
    base_tree: str
    date: str

    def __post_init__(self) -> None:
        if not self.because.strip():
            raise ValueError("a ruling says why, under because")
        if not re.fullmatch(r"[0-9a-f]{64}", self.patch_sha256):
            raise ValueError(f"patch_sha256 {self.patch_sha256!r} is not 64 hexadecimal digits")
        if not re.fullmatch(r"[0-9a-f]{40}", self.base_tree):
            raise ValueError(f"base_tree {self.base_tree!r} is not 40 hexadecimal digits")
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise ValueError(f"date {self.date!r} is not YYYY-MM-DD")

    def holds(self, patch_sha256: str, base_tree: str) -> bool:
        """Whether it is about these very bytes and this very tree; else it has expired."""
        return (self.patch_sha256, self.base_tree) == (patch_sha256, base_tree)


@dataclass(frozen=True)
class Rulings:
    """The whole of a rulings.yaml: at most one ruling a base."""

    rulings: tuple[Ruling, ...] = field(default=())

    def __post_init__(self) -> None:
        bases = [ruling.base for ruling in self.rulings]
        twice = next((base for base in bases if bases.count(base) > 1), None)
        if twice is not None:
            raise ValueError(f"there are two rulings for {twice}")

    def for_base(self, base: str) -> Ruling | None:
        """The ruling for a base."""
        return next((ruling for ruling in self.rulings if ruling.base == base), None)


def read_rulings(root: Path, patch: str) -> Rulings:
    """A patch's rulings; none where there is no file.

    Raises:
        InputError: at file:line, what is wrong.
    """
    path = root / SERIES_NAME / patch / NAME
    if not path.exists():
        return Rulings()
    return read_known(path, Rulings, where=f"{SERIES_NAME}/{patch}/{NAME}")


def with_ruling(root: Path, patch: str, ruling: Ruling) -> dict[str, bytes]:
    """What a patch's rulings.yaml becomes with a ruling in place of the one for the same base, by its path."""
    from patchq.series.yamlfile import dump_yaml

    known = read_rulings(root, patch).rulings
    kept = [r for r in known if r.base != ruling.base]
    text = dump_yaml({"rulings": [asdict(r) for r in (*kept, ruling)]}, HEADER)
    return {f"{SERIES_NAME}/{patch}/{NAME}": text.encode()}
