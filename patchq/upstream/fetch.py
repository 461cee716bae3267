"""Bringing a base into the store from any of its sources, and proving that it is the tree the lock names."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked
from patchq.errors import EnvironmentLacksError, InputError, RefusedError
from patchq.git.commits import resolve
from patchq.git.objects import EXECUTABLE, REGULAR, SYMLINK
from patchq.git.remote import fetch_revision
from patchq.upstream import index
from patchq.upstream.archive import TreeFile, read_sdist
from patchq.upstream.store import Store
from patchq.vllm import PROJECT
from patchq.vllm.generated import is_generated

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from patchq.progress import Progress
    from patchq.series.lock import Base, Source


def fetch_base(
    name: str, base: Base, progress: Progress, *, again: bool = False, history: bool = False
) -> str:
    """Bring a base into the store, unless it is there, and give its commit.

    Args:
        name: the base's name.
        base: what the lock says of it.
        progress: told how far it is.
        again: fetch it even if it is there.
        history: fetch also what a git source's commit descends from.

    Raises:
        RefusedError: its tree is not the one that the lock names; the store keeps what it had.
        EnvironmentLacksError: the source cannot be reached, or gave something else than was asked for.
    """
    store = Store()
    if not (again or history) and (commit := store.commit(name, base)):
        return commit
    with locked("store", f"fetching {name}"):
        store.tidy()
        commit = _take(store, name, base.source, base.date, progress, history=history)
        tree = store.tree_of(commit)
        if base.verified and tree != base.tree:
            raise RefusedError(
                f"{name} from {base.source} is tree {tree}, upstream.lock says {base.tree}.",
                "Restore upstream.lock from version control; if it is right, the source is not what it was.",
            )
        store.keep(name, commit)
    return commit


def _take(store: Store, name: str, source: Source, date: str, progress: Progress, *, history: bool) -> str:
    if source.kind == "sdist":
        release = index.find_sdist(PROJECT, source.version)
        wanted = index.Release(release.filename, release.url, source.sha256, release.size)
        downloads = cache_dir() / "downloads"
        file = index.download(wanted, downloads, progress)
        with progress.task(f"reading {release.filename}", total=None, unit="files") as step:
            files = _counted(read_sdist(file, release.filename, is_generated), step)
            commit = store.take_files(files, f"vLLM {source.version}", date)
        file.unlink()
        return commit
    if source.kind in {"git", "clone"}:
        return _take_revision(store, name, source, source.revision, progress, history=history)
    path = Path(source.path).expanduser()
    if not path.is_dir():
        raise InputError(
            f"{path}, the source of {name}, is not a directory.", "Correct it: patchq upstream add."
        )
    return store.take_files(_read_directory(path), f"vLLM from {path.name}", date)


def fetch_other(name: str, source: Source, revision: str, progress: Progress) -> str:
    """Bring another revision of a base's git source into the store and give its commit.

    Args:
        name: the base's name, for messages.
        source: its source, a git remote or a clone.
        revision: a branch, tag or commit there.
        progress: told how far it is.

    Raises:
        InputError: the source has no such revision.
        EnvironmentLacksError: the source cannot be reached.
    """
    store = Store()
    with locked("store", f"fetching {revision}"):
        store.tidy()
        return _take_revision(store, name, source, revision, progress)


def _take_revision(
    store: Store, name: str, source: Source, revision: str, progress: Progress, *, history: bool = False
) -> str:
    if source.kind == "git":
        with progress.task(f"fetching {revision[:12]} from {source.url}", total=None, unit="objects") as step:
            return fetch_revision(store.git_dir, source.url, revision, step, history=history)
    path = Path(source.path).expanduser()
    if not path.is_dir():
        raise InputError(
            f"{path}, the source of {name}, is not a directory.", "Correct it: patchq upstream add."
        )
    commit_there = resolve(path, revision)
    if commit_there is None:
        raise InputError(f"{path} has no commit {revision!r}.", "Name a commit, branch or tag of that clone.")
    with progress.task(f"fetching {revision} from {path}", total=None, unit="objects") as step:
        return fetch_revision(store.git_dir, path.resolve().as_uri(), commit_there, step, history=history)


def _counted(files: Iterator[TreeFile], step: Callable[[int], None]) -> Iterator[TreeFile]:
    for file in files:
        step(1)
        yield file


def _read_directory(top: Path) -> Iterator[TreeFile]:
    """The files of a directory tree as git would see them; repositories' own files and generated ones left out."""

    def unreadable(error: OSError) -> None:
        raise EnvironmentLacksError(f"{error.filename} cannot be read: {error.strerror}.", "Mend it.")

    for directory, names, files in os.walk(top, onerror=unreadable):
        here = Path(directory)
        names[:] = sorted(n for n in names if n not in {".git", "__pycache__"})
        for name in sorted([*files, *(n for n in names if (here / n).is_symlink())]):
            path = here / name
            inner = path.relative_to(top).as_posix()
            if is_generated(inner) or name == ".git":
                continue
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                yield TreeFile(inner, SYMLINK, os.fsencode(path.readlink()))
            elif stat.S_ISREG(status.st_mode):
                try:
                    yield TreeFile(
                        inner, EXECUTABLE if status.st_mode & 0o100 else REGULAR, path.read_bytes()
                    )
                except OSError as error:
                    raise EnvironmentLacksError(
                        f"{path} cannot be read: {error.strerror}.", "Mend it."
                    ) from None
