"""A series in memory, to be changed there: every file of every patch, and the lanes worked out anew from them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchq.engine.stack import Stack, StepRefusedError, build_stack
from patchq.errors import InputError, RefusedError
from patchq.series.evidence import NAME as EVIDENCE
from patchq.series.lock import Lock, LockedPatch, format_lock
from patchq.series.rewrite import rename_ids
from patchq.series.series import LOCK_NAME, SERIES_NAME, Body, Series

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from patchq.git.objects import Objects

META = "patch.yaml"
_LEFT = re.compile(r"\..*\.new")
"""What a killed write leaves beside its file (patchq.cache.write_atomically)."""


@dataclass(frozen=True)
class Draft:
    """A series in memory.

    Attributes:
        lock: the bases, and the lanes as they were when it was read or settled last.
        patches: the files of each patch by name, by id, in series order.
    """

    lock: Lock
    patches: dict[str, dict[str, bytes]]

    def lane(self, base: str) -> list[Body]:
        """The bodies for a base, in order."""
        name = f"{base}.patch"
        return [
            Body(patch, f"{SERIES_NAME}/{patch}/{name}", files[name])
            for patch, files in self.patches.items()
            if name in files
        ]

    @property
    def bases(self) -> tuple[str, ...]:
        """The bases that have a lane."""
        return tuple(base for base in self.lock.bases if self.lane(base))

    def text(self, patch: str) -> str:
        """A patch's patch.yaml."""
        return self.patches[patch][META].decode()

    def with_file(self, patch: str, name: str, data: bytes | None) -> Draft:
        """This draft with one file of a patch replaced, or taken away."""
        files = {k: v for k, v in self.patches[patch].items() if k != name or data is not None}
        if data is not None:
            files[name] = data
        return replace(self, patches={**self.patches, patch: files})

    def in_order(self, order: Sequence[str]) -> Draft:
        """This draft with its patches in another order, or some of them."""
        return replace(self, patches={patch: self.patches[patch] for patch in order})

    def renamed(self, ids: Mapping[str, str]) -> Draft:
        """This draft with some patches called otherwise; what names them by id follows, but for prose."""
        patches = {}
        for patch, files in self.patches.items():
            new = dict(files)
            new[META] = rename_ids(files[META].decode(), ids).encode()
            if patch in ids and EVIDENCE in files:
                old, called = (f'"id": "{i}"'.encode() for i in (patch, ids[patch]))
                new[EVIDENCE] = b"".join(
                    line.replace(old, called, 1) for line in files[EVIDENCE].splitlines(keepends=True)
                )
            patches[ids.get(patch, patch)] = new
        lanes = {
            base: tuple(replace(step, id=ids.get(step.id, step.id)) for step in steps)
            for base, steps in self.lock.lanes.items()
        }
        return Draft(replace(self.lock, lanes=lanes), patches)


@dataclass(frozen=True)
class Bench:
    """Where trees are made: objects in memory over the store's.

    Attributes:
        objects: where bases are read and results made.
        ground: the tree of a base, by its name; it is fetched where it is not in the store.
    """

    objects: Objects
    ground: Callable[[str], str]

    def stack(self, base: str, bodies: Sequence[Body], doing: str) -> Stack:
        """Build a lane.

        Args:
            base: the base's name.
            bodies: the lane's bodies.
            doing: what is being done, for the message, as in `moving 0003-x`.

        Raises:
            RefusedError: a patch does not apply; it, its file and its hunk are named.
        """
        try:
            return build_stack(self.objects, self.ground(base), bodies)
        except StepRefusedError as error:
            raise RefusedError(
                f"{doing} would break {error.id} on {base}: {error.message}",
                "Nothing was written. Do it another way, or change that patch first.",
                files=error.files,
            ) from None

    def settle(self, draft: Draft, doing: str) -> Draft:
        """A draft with the lanes of its lock worked out from its bodies; a lane whose bodies are as they were is not built.

        Raises:
            RefusedError: a patch does not apply.
        """
        lanes: dict[str, tuple[LockedPatch, ...]] = {}
        known = draft.lock.lanes
        for base in dict.fromkeys((*known, *draft.bases)):
            bodies = draft.lane(base)
            if [b.sha256 for b in bodies] == [s.sha256 for s in known.get(base, ())]:
                trees = [s.tree for s in known.get(base, ())]
            else:
                trees = [s.tree for s in self.stack(base, bodies, doing).steps]
            steps = tuple(LockedPatch(b.id, b.sha256, t) for b, t in zip(bodies, trees, strict=True))
            if steps:
                lanes[base] = steps
        return replace(draft, lock=replace(draft.lock, lanes=lanes))


def read_draft(series: Series) -> Draft:
    """Read every file of a series, and hold the lanes against the lock.

    Raises:
        InputError: bodies and lock do not agree, or something that is not a plain file lies in a patch's directory.
    """
    for base in series.lock.lanes:
        series.lane(base)
    patches = {p.id: _files(series.root / SERIES_NAME / p.id, p.id) for p in series.patches}
    return Draft(series.lock, patches)


def differences(old: Draft, new: Draft) -> dict[str, bytes | None]:
    """What shall stand at each path of a project whose series becomes another; what stays is not in it."""

    def files(draft: Draft) -> dict[str, bytes]:
        found = {
            f"{SERIES_NAME}/{patch}/{name}": data
            for patch, named in draft.patches.items()
            for name, data in named.items()
        }
        return {**found, LOCK_NAME: format_lock(draft.lock).encode()}

    before, after = files(old), files(new)
    changed: dict[str, bytes | None] = {path: None for path in before if path not in after}
    return changed | {path: data for path, data in after.items() if before.get(path) != data}


def _files(directory: Path, patch: str) -> dict[str, bytes]:
    found = {}
    for top, _, names in os.walk(directory):
        for name in sorted(names):
            path = directory.__class__(top) / name
            if _LEFT.fullmatch(name):
                continue
            if path.is_symlink() or not path.is_file():
                raise InputError(
                    f"{SERIES_NAME}/{patch}/{path.relative_to(directory)} is not a plain file.",
                    "Take it away, or put a file there.",
                )
            found[path.relative_to(directory).as_posix()] = path.read_bytes()
    return found
