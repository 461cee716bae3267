"""resolutions.yaml: conflicts that a person resolved once, kept so that nobody resolves them again."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from patchq.series.parsed import read_known
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME = "resolutions.yaml"
HEADER = (
    "Written by patchq rebase: conflicts that a person resolved, used again where the same three sides meet."
)


@dataclass(frozen=True)
class Resolution:
    """One resolved conflict: what stood on the three sides, and what a person made of it.

    Attributes:
        file: the file it was in.
        base: what the patch was made on.
        upstream: what upstream has there.
        patch: what the patch has there.
        resolved: what it became.
    """

    file: str
    base: str
    upstream: str
    patch: str
    resolved: str

    @property
    def sides(self) -> tuple[str, str, str]:
        """What a conflict is recognised by."""
        return (self.base, self.upstream, self.patch)


@dataclass(frozen=True)
class Resolutions:
    """The whole of a resolutions.yaml."""

    resolutions: tuple[Resolution, ...] = field(default=())

    def find(self, base: str, upstream: str, patch: str) -> Resolution | None:
        """What a person made of these three sides; the newest where it was resolved twice."""
        same = [r for r in self.resolutions if r.sides == (base, upstream, patch)]
        return same[-1] if same else None


def read_resolutions(root: Path, patch: str) -> Resolutions:
    """A patch's resolved conflicts; none where there is no file.

    Raises:
        InputError: at file:line, what is wrong.
    """
    path = root / SERIES_NAME / patch / NAME
    if not path.exists():
        return Resolutions()
    return read_known(path, Resolutions, where=f"{SERIES_NAME}/{patch}/{NAME}")


def with_resolutions(root: Path, patch: str, found: Iterable[Resolution]) -> dict[str, bytes]:
    """What a patch's resolutions.yaml becomes with more in it, by its path; one of the same three sides is replaced."""
    from patchq.series.yamlfile import dump_yaml

    known = read_resolutions(root, patch).resolutions
    new = [r for r in found if r not in known]
    if not new:
        return {}
    sides = {r.sides for r in new}
    kept = [r for r in known if r.sides not in sides]
    text = dump_yaml({"resolutions": [asdict(r) for r in (*kept, *new)]}, HEADER)
    return {f"{SERIES_NAME}/{patch}/{NAME}": text.encode()}
