"""moves.yaml: how a patch came to each base, or why it is not carried there; it stands beside the patch."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from patchq.series.parsed import read_known
from patchq.series.rulings import Verdict
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from pathlib import Path

NAME = "moves.yaml"
HEADER = "Written by patchq rebase: how the patch came to each base, or why it is not carried there."


@dataclass(frozen=True)
class Move:
    """What a rebase did with a patch.

    Attributes:
        base: the base it was moved to.
        carried: whether the base's lane has it.
        verdict: what it was there.
        reason: why, in a sentence.
        lane: the lane it came from.
        source_sha256: the hash of the body it came with.
        base_tree: the base's tree.
        skipped: whether a person left it out.
    """

    base: str
    carried: bool
    verdict: Verdict
    reason: str
    lane: str
    source_sha256: str
    base_tree: str
    skipped: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9a-f]{64}", self.source_sha256):
            raise ValueError(f"source_sha256 {self.source_sha256!r} is not 64 hexadecimal digits")
        if not re.fullmatch(r"[0-9a-f]{40}", self.base_tree):
            raise ValueError(f"base_tree {self.base_tree!r} is not 40 hexadecimal digits")

    def still_skips(self, source_sha256: str, base_tree: str) -> bool:
        """Whether a person left out these very bytes on this very tree; else it is to be asked again."""
        return self.skipped and (self.source_sha256, self.base_tree) == (source_sha256, base_tree)


@dataclass(frozen=True)
class Moves:
    """The whole of a moves.yaml: at most one move a base."""

    moves: tuple[Move, ...] = field(default=())

    def __post_init__(self) -> None:
        bases = [move.base for move in self.moves]
        twice = next((base for base in bases if bases.count(base) > 1), None)
        if twice is not None:
            raise ValueError(f"there are two moves to {twice}")

    def to(self, base: str) -> Move | None:
        """The move to a base."""
        return next((move for move in self.moves if move.base == base), None)


def read_moves(root: Path, patch: str) -> Moves:
    """A patch's moves; none where there is no file.

    Raises:
        InputError: at file:line, what is wrong.
    """
    path = root / SERIES_NAME / patch / NAME
    if not path.exists():
        return Moves()
    return read_known(path, Moves, where=f"{SERIES_NAME}/{patch}/{NAME}")


def with_move(root: Path, patch: str, move: Move) -> dict[str, bytes]:
    """What a patch's moves.yaml becomes with a move in place of the one to the same base, by its path in the project."""
    from patchq.series.yamlfile import dump_yaml

    known = read_moves(root, patch).moves
    if move in known:
        return {}
    kept = [m for m in known if m.base != move.base]
    rows = [asdict(m) for m in (*kept, move)]
    for row in rows:
        if not row["skipped"]:
            del row["skipped"]
    text = dump_yaml({"moves": rows}, HEADER)
    return {f"{SERIES_NAME}/{patch}/{NAME}": text.encode()}
