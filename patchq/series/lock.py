"""upstream.lock: the bases, and per lane the patches' hashes and the tree after each step. Written by patchq alone."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "Written by patchq. Do not edit: every value here is checked, and a changed one stops the work."
_OID = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Source:
    """Where a base's tree comes from.

    Attributes:
        kind: `sdist` from the package index; `git` remote; local `clone`; local `directory`.
        version: of the sdist.
        sha256: of the sdist.
        url: of the git remote.
        revision: in the remote or clone.
        path: of the clone or directory.
    """

    kind: Literal["sdist", "git", "clone", "directory"]
    version: str = ""
    sha256: str = ""
    url: str = ""
    revision: str = ""
    path: str = ""

    def __post_init__(self) -> None:
        needed = {
            "sdist": ("version", "sha256"),
            "git": ("url", "revision"),
            "clone": ("path", "revision"),
            "directory": ("path",),
        }[self.kind]
        for name in needed:
            if not getattr(self, name):
                raise ValueError(f"a source of kind {self.kind} needs {', '.join(needed)}; {name} is missing")
        if self.sha256 and not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 {self.sha256!r} is not 64 hexadecimal digits")
        if self.revision.startswith("-") or self.url.startswith("-"):
            raise ValueError("a url or revision does not begin with a dash")

    def as_dict(self) -> dict[str, str]:
        """The fields that are set."""
        return {k: v for k, v in asdict(self).items() if v}

    def __str__(self) -> str:
        return {
            "sdist": f"sdist {self.version}",
            "git": f"git {self.url} at {self.revision[:12]}",
            "clone": f"clone {self.path} at {self.revision[:12]}",
            "directory": f"directory {self.path}",
        }[self.kind]


@dataclass(frozen=True)
class Base:
    """One named upstream tree.

    Attributes:
        source: where it comes from.
        tree: its git tree id; empty where nobody has verified it.
        date: the day it was released, as its commit in a created checkout is dated.
        role: `pinned` is what is deployed, `current` is upstream's newest.
    """

    source: Source
    tree: str = ""
    date: str = ""
    role: Literal["pinned", "current", ""] = ""

    def __post_init__(self) -> None:
        if self.tree and not _OID.fullmatch(self.tree):
            raise ValueError(f"tree {self.tree!r} is not 40 hexadecimal digits")
        if self.date and not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise ValueError(f"date {self.date!r} is not YYYY-MM-DD")

    @property
    def verified(self) -> bool:
        """Whether its tree id is known."""
        return bool(self.tree)


@dataclass(frozen=True)
class LockedPatch:
    """One step of a lane.

    Attributes:
        id: the patch.
        sha256: of the bytes of its body for this base.
        tree: id of the tree after it.
    """

    id: str
    sha256: str
    tree: str

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256):
            raise ValueError(f"sha256 {self.sha256!r} is not 64 hexadecimal digits")
        if not _OID.fullmatch(self.tree):
            raise ValueError(f"tree {self.tree!r} is not 40 hexadecimal digits")


@dataclass(frozen=True)
class Lock:
    """The whole of upstream.lock."""

    version: Literal[1]
    bases: dict[str, Base]
    lanes: dict[str, tuple[LockedPatch, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in self.bases:
            if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
                raise ValueError(f"{name!r} is not a name for a base")
        for name in self.lanes:
            if name not in self.bases:
                raise ValueError(f"lane {name!r} has no base of that name")
        for role in ("pinned", "current"):
            if len([b for b in self.bases.values() if b.role == role]) > 1:
                raise ValueError(f"more than one base has the role {role}")

    def with_role(self, role: str) -> str | None:
        """The name of the base that has this role."""
        return next((name for name, base in self.bases.items() if base.role == role), None)

    def with_base(self, name: str, base: Base) -> Lock:
        """This lock with one base added or replaced."""
        return replace(self, bases={**self.bases, name: base})

    def with_lane(self, base: str, steps: tuple[LockedPatch, ...]) -> Lock:
        """This lock with one lane replaced."""
        return replace(self, lanes={**self.lanes, base: steps})


def read_lock(path: Path) -> Lock:
    """Read upstream.lock.

    Raises:
        InputError: at file:line, what is wrong.
    """
    from patchq.series.yamlfile import read_yaml

    return read_yaml(path, Lock, where=path.name)


def format_lock(lock: Lock) -> str:
    """The text of upstream.lock, the same for the same lock."""
    from patchq.series.yamlfile import dump_yaml

    def base(value: Base) -> dict[str, Any]:
        fields = {
            "role": value.role,
            "date": value.date,
            "tree": value.tree,
            "source": value.source.as_dict(),
        }
        return {k: v for k, v in fields.items() if v}

    return dump_yaml(
        {
            "version": lock.version,
            "bases": {name: base(value) for name, value in lock.bases.items()},
            "lanes": {name: [asdict(step) for step in steps] for name, steps in lock.lanes.items()},
        },
        HEADER,
    )
