"""The series on disk: its patches in order, its lock, and the names a person may use for a patch."""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from patchq.errors import InputError
from patchq.series import parsed
from patchq.series.lock import Base, Lock, LockedPatch, read_lock
from patchq.series.patch import PatchMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LOCK_NAME = "upstream.lock"
SERIES_NAME = "series"


class Body(NamedTuple):
    """A patch's body for one base: its bytes and their hash."""

    id: str
    where: str
    data: bytes

    @property
    def sha256(self) -> str:
        """Hash of the bytes, as the lock has it."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True)
class Series:
    """The ordered patches of a project.

    Attributes:
        root: the directory that holds series/ and upstream.lock.
        patches: in order.
        lock: the bases and lanes.
    """

    root: Path
    patches: tuple[PatchMeta, ...]
    lock: Lock

    def find(self, reference: str) -> PatchMeta:
        """The patch that a person means: its id, its number, its name, or the start of one of them.

        Raises:
            InputError: no patch, or more than one, is called that.
        """
        number = reference.zfill(4) if reference.isdigit() else reference
        exact = [p for p in self.patches if number in {p.id, p.number, p.name}]
        found = exact or [
            p
            for p in self.patches
            if reference and (p.id.startswith(reference) or p.name.startswith(reference))
        ]
        if len(found) == 1:
            return found[0]
        known = ", ".join(p.id for p in (found or self.patches))
        what = f"{reference!r} could be more than one patch" if found else f"no patch is called {reference!r}"
        raise InputError(f"{what}.", f"Use one of: {known or 'none; the series is empty'}.")

    def on(self, base: str) -> Series:
        """The series as it is on a base: what each patch.yaml says of that base is in place of what it says for all."""
        return replace(self, patches=tuple(p.on(base) for p in self.patches))

    def closure(self, ids: Iterable[str]) -> tuple[PatchMeta, ...]:
        """These patches and all they depend on, in series order."""
        by_id = {p.id: p for p in self.patches}
        wanted: set[str] = set()
        todo = list(ids)
        while todo:
            patch = todo.pop()
            if patch not in wanted:
                wanted.add(patch)
                todo += by_id[patch].depends
        return tuple(p for p in self.patches if p.id in wanted)

    def base(self, name: str | None = None) -> tuple[str, Base]:
        """A base by name; the pinned one where none is named.

        Raises:
            InputError: there is no such base.
        """
        chosen = (
            name if name is not None else self.lock.with_role("pinned") or next(iter(self.lock.bases), "")
        )
        for candidate in (chosen, f"v{chosen}"):
            if candidate in self.lock.bases:
                return candidate, self.lock.bases[candidate]
        raise InputError(
            f"no base is called {chosen!r}.",
            f"Use one of: {', '.join(self.lock.bases)}; or add one with patchq upstream add.",
        )

    def body_path(self, patch: str, base: str) -> Path:
        """Where a patch's body for a base lives."""
        return self.root / SERIES_NAME / patch / f"{base}.patch"

    def lane(self, base: str) -> tuple[Body, ...]:
        """The bodies of a base's lane, in order, with the lock's hashes checked.

        Raises:
            InputError: the base has no lane, or bodies and lock do not agree.
        """
        locked = {step.id: step for step in self.lock.lanes.get(base, ())}
        bodies = []
        for patch in self.patches:
            path = self.body_path(patch.id, base)
            where = str(path.relative_to(self.root))
            try:
                bodies.append(Body(patch.id, where, path.read_bytes()))
            except FileNotFoundError:
                if patch.id in locked:
                    raise InputError(
                        f"{where} is missing, and {LOCK_NAME} lists it.",
                        f"Restore the file from version control, or run patchq refresh --base {base}.",
                    ) from None
        if not bodies and not locked:
            lanes = ", ".join(self.lock.lanes) or "none yet"
            raise InputError(f"the series has no lane for {base}.", f"Lanes there are: {lanes}.")
        for body in bodies:
            step = locked.pop(body.id, None)
            if step is None:
                raise InputError(
                    f"{body.where} is not listed in {LOCK_NAME}.",
                    "Run patchq refresh to record it, or take it away.",
                )
            if step.sha256 != body.sha256:
                raise InputError(
                    f"{body.where} has sha256 {body.sha256[:12]}…, {LOCK_NAME} says {step.sha256[:12]}….",
                    "Restore the file from version control, or write it anew with patchq refresh.",
                )
        if locked:
            raise InputError(
                f"{LOCK_NAME} lists {next(iter(locked))} in the lane of {base}, and series/ has no such patch.",
                "Restore its directory from version control, or run patchq refresh.",
            )
        order = tuple(step.id for step in self.lock.lanes[base])
        if order != tuple(b.id for b in bodies):
            raise InputError(f"{LOCK_NAME} lists the lane of {base} in another order.", "Run patchq refresh.")
        return tuple(bodies)

    def has_body(self, patch: str) -> bool:
        """Whether any lane has a patch; one that was just begun is in none."""
        return any(step.id == patch for lane in self.lock.lanes.values() for step in lane)

    def locked(self, base: str) -> dict[str, LockedPatch]:
        """The lock's steps for a lane, by patch id."""
        return {step.id: step for step in self.lock.lanes.get(base, ())}


def find_root(given: Path | None, start: Path) -> Path:
    """The project's directory: as given, else `PATCHQ_ROOT`, else the nearest above `start` with an upstream.lock.

    Raises:
        InputError: there is none.
    """
    named = given or (Path(value) if (value := os.environ.get("PATCHQ_ROOT")) else None)
    if named is not None:
        if (named / LOCK_NAME).is_file():
            return named.resolve()
        raise InputError(
            f"{named} has no {LOCK_NAME}.", "Point --root (or PATCHQ_ROOT) at the directory that holds it."
        )
    for directory in (start, *start.parents):
        if (directory / LOCK_NAME).is_file():
            return directory.resolve()
    raise InputError(
        f"there is no {LOCK_NAME} here or above.",
        "Change into a patchq project, or name it with --root DIR or PATCHQ_ROOT.",
    )


def load_series(root: Path) -> Series:
    """Read the whole series; one that was read before is not checked again.

    Raises:
        InputError: at file:line, the first thing wrong in it.
    """
    contents = _contents(root)
    key = parsed.key_of_bytes(contents) if contents is not None else ""
    kinds = itertools.chain([Lock], itertools.repeat(PatchMeta))
    known = parsed.recall(key, kinds) if key else None
    if known:
        lock, *patches = known
        return Series(root, tuple(patches), lock)
    series = _read_series(root)
    if key:
        parsed.keep(key, [series.lock, *series.patches])
    return series


def _contents(root: Path) -> list[tuple[str, bytes]] | None:
    """All that a series is read from: names and bytes; None where something cannot be read."""
    directory = root / SERIES_NAME
    try:
        found = [(LOCK_NAME, (root / LOCK_NAME).read_bytes())]
        for name in sorted(os.listdir(directory)) if directory.is_dir() else []:
            if not name.startswith(".") and (directory / name).is_dir():
                names = "\0".join(sorted(os.listdir(directory / name)))
                found.append((name, os.fsencode(names)))
                found.append((f"{name}/patch.yaml", (directory / name / "patch.yaml").read_bytes()))
    except OSError:
        return None
    return found


def _read_series(root: Path) -> Series:
    from patchq.series.yamlfile import read_yaml

    lock = read_lock(root / LOCK_NAME)
    patches: list[PatchMeta] = []
    seen: dict[str, str] = {}
    directory = root / SERIES_NAME
    names = (
        sorted(e.name for e in os.scandir(directory) if e.is_dir() and not e.name.startswith("."))
        if directory.is_dir()
        else []
    )
    for name in names:
        where = f"{SERIES_NAME}/{name}/patch.yaml"
        patch = read_yaml(directory / name / "patch.yaml", PatchMeta, where=where)
        if patch.id in seen:
            raise InputError(
                f"{where}: the id {patch.id!r} is also that of {seen[patch.id]}.", "Give each its own."
            )
        seen[patch.id] = where
        patches.append(patch)
    for patch, name in zip(patches, names, strict=True):
        if patch.id != name:
            raise InputError(
                f"{seen[patch.id]}: id is {patch.id!r} and the directory is {name!r}.",
                "Make the two the same.",
            )
    _check_numbers(patches, seen)
    _check_bodies(root, names, lock)
    _check_bases(root, patches, lock)
    return Series(root, tuple(patches), lock)


def _check_numbers(patches: list[PatchMeta], where: dict[str, str]) -> None:
    """A number is one patch's alone, as it is the place in the series.

    Raises:
        InputError: naming the two.
    """
    for one, two in itertools.pairwise(patches):
        if one.number == two.number:
            raise InputError(
                f"{where[two.id]}: the number {two.number} is also that of {one.id}.",
                "Give one of the two another number, in its directory's name and its id.",
            )


def _check_bodies(root: Path, names: list[str], lock: Lock) -> None:
    """A body is for a base that is there; one for another would be passed over.

    Raises:
        InputError: naming the file.
    """
    for name in names:
        for entry in sorted(os.listdir(root / SERIES_NAME / name)):
            base = entry.removesuffix(".patch")
            if base not in {entry, *lock.bases} and not entry.startswith("."):
                raise InputError(
                    f"{SERIES_NAME}/{name}/{entry} is a body for {base!r}, and {LOCK_NAME} has no base of that name.",
                    f"Rename it for one of {', '.join(lock.bases) or 'none'}; add the base with patchq upstream add; or take it away.",
                )


def _check_bases(root: Path, patches: list[PatchMeta], lock: Lock) -> None:
    """What patches say of single bases is about bases that there are, and dependencies hold on each of them.

    Raises:
        InputError: at file:line.
    """

    def at(patch: str, *keys: str) -> str:
        from patchq.series.yamlfile import find_line

        where = f"{SERIES_NAME}/{patch}/patch.yaml"
        return f"{where}:{find_line(root / where, *keys)}"

    for patch in patches:
        for base in patch.bases:
            if base not in lock.bases:
                raise InputError(
                    f"{at(patch.id, 'bases', base)}: bases names {base!r}, and {LOCK_NAME} has no base of that name.",
                    f"Use one of: {', '.join(lock.bases)}.",
                )
    _check_depends(patches, lambda patch: at(patch, "depends"))
    for base in dict.fromkeys(base for patch in patches for base in patch.bases):
        said = {p.id for p in patches if base in p.bases and p.bases[base].depends is not None}

        def there(patch: str, base: str = base, said: set[str] = said) -> str:
            return at(patch, *(("bases", base) if patch in said else ()), "depends")

        _check_depends([p.on(base) for p in patches], there)


def _check_depends(patches: list[PatchMeta], where: Callable[[str], str]) -> None:
    """Every dependency exists and stands earlier, so that there is no cycle.

    Raises:
        InputError: naming the patch, and the cycle where there is one.
    """
    depends = {p.id: p.depends for p in patches}
    order = {p.id: i for i, p in enumerate(patches)}
    for patch in patches:
        for needed in patch.depends:
            if needed not in depends:
                raise InputError(
                    f"{where(patch.id)}: depends on {needed!r}, and no patch is called that.",
                    f"Use ids from series/: {', '.join(depends)}.",
                )
    for patch in patches:
        for needed in patch.depends:
            if order[needed] >= order[patch.id]:
                path = _path_between(needed, patch.id, depends)
                if path:
                    cycle = " → ".join([patch.id, *path])
                    raise InputError(
                        f"{where(patch.id)}: depends makes a cycle: {cycle}.", "Take one edge out."
                    )
                raise InputError(
                    f"{where(patch.id)}: depends on {needed}, which comes later in the series.",
                    "Move one of the two.",
                )


def _path_between(start: str, goal: str, depends: dict[str, tuple[str, ...]]) -> list[str]:
    """The ids on a way along `depends` from `start` to `goal`, both named; empty where there is none."""
    todo = [[start]]
    seen = set()
    while todo:
        path = todo.pop()
        if path[-1] == goal:
            return path
        if path[-1] not in seen:
            seen.add(path[-1])
            todo += [[*path, n] for n in depends[path[-1]]]
    return []
