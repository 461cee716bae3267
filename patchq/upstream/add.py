"""Adding a base to upstream.lock: its tree id is taken from what its source gives now."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from patchq.engine.project import changing
from patchq.errors import InputError
from patchq.series.lock import Base, Source, format_lock
from patchq.series.series import LOCK_NAME, Series, load_series
from patchq.upstream.fetch import fetch_base
from patchq.upstream.index import find_sdist
from patchq.upstream.store import Store
from patchq.vllm import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.progress import Progress


def add_base(
    series: Series,
    name: str,
    progress: Progress,
    *,
    sdist: str | None,
    git: str | None,
    clone: Path | None,
    directory: Path | None,
    rev: str,
) -> tuple[Series, Base]:
    """Fetch a new base and write it into the lock.

    Returns:
        The series with the new lock, and the base.

    Raises:
        InputError: the name is taken or unusable, or not exactly one source is named.
        EnvironmentLacksError: the source cannot be reached.
    """
    _refuse_known(series, name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", name) or ".." in name or name.endswith(".lock"):
        raise InputError(
            f"{name!r} is not a name for a base.", "Use letters, digits, dots and dashes, as in v0.28.0."
        )
    named = [s for s in (sdist, git, clone, directory) if s is not None]
    if len(named) != 1:
        raise InputError("name exactly one source.", "Use one of --sdist, --git, --clone, --directory.")
    try:
        if sdist is not None:
            source = Source("sdist", version=sdist, sha256=find_sdist(PROJECT, sdist).sha256)
        elif git is not None:
            source = Source("git", url=git, revision=rev)
        elif clone is not None:
            source = Source("clone", path=str(clone.absolute()), revision=rev)
        else:
            source = Source("directory", path=str(directory.absolute() if directory else ""))
    except ValueError as error:
        raise InputError(f"{error}.", "Correct the source.") from None
    base = Base(source)
    store = Store()
    commit = fetch_base(name, base, progress, again=True)
    if source.kind in {"git", "clone"}:
        source = replace(source, revision=commit)
    base = Base(source, tree=store.tree_of(commit))
    with changing(series.root, f"adding the base {name}") as project:
        series = load_series(series.root)
        _refuse_known(series, name)
        lock = series.lock.with_base(name, base)
        project.commit(f"upstream add {name}", {LOCK_NAME: format_lock(lock).encode()})
    return replace(series, lock=lock), base


def _refuse_known(series: Series, name: str) -> None:
    if name in series.lock.bases:
        raise InputError(
            f"a base called {name!r} is there already.", "Choose another name; see patchq upstream list."
        )
