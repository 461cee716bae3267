"""The bases that a forecast stands on, and bringing those that it needs into the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchq.engine.forecast import Forecast
from patchq.engine.ground import Ground
from patchq.errors import InputError
from patchq.series.lock import Base
from patchq.ui.progress import make_progress
from patchq.upstream.fetch import fetch_base, fetch_other

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.series.series import Series
    from patchq.upstream.store import Store


def choose_bases(series: Series, store: Store, named: Sequence[str], *, every: bool) -> list[str]:
    """The bases that a person asks for, in the lock's order: those named, all whose tree is known, or those here.

    Raises:
        InputError: there is no base of that name.
    """
    wanted = {series.base(name)[0] for name in named}
    if every:
        wanted |= {name for name, base in series.lock.bases.items() if base.verified}
    if not wanted:
        wanted = set(store.refs())
    return [name for name in series.lock.bases if name in wanted]


def open_forecast(
    series: Series, store: Store, objects: Objects, bases: Sequence[str], more: Sequence[Ground] = ()
) -> Forecast:
    """A forecast over every base that is in the store; those asked for and those of lanes are brought there.

    Args:
        series: the patches.
        store: the store.
        objects: its objects.
        bases: the bases asked for, by name.
        more: trees that are no bases of the lock.

    Raises:
        PatchqError: a base cannot be fetched, or is not what the lock says.
    """
    if not series.lock.lanes:
        raise InputError("the series has no lane yet.", "Make one with patchq refresh.")
    grounds = []
    here = store.commits(series.lock.bases, objects)
    for name, base in series.lock.bases.items():
        commit = here.get(name)
        if commit is None and (name in bases or name in series.lock.lanes):
            commit = fetch_base(name, base, make_progress())
        if commit is not None:
            grounds.append(Ground.at(objects, name, commit, base))
    return Forecast(series, objects, [*grounds, *more])


def watched(
    series: Series, objects: Objects, forecast_bases: Sequence[str], ref: str
) -> tuple[str, str, Ground | None]:
    """What `--watch REF` is about.

    Args:
        series: the bases.
        objects: the store's objects.
        forecast_bases: the bases named beside it; the first is what REF is compared with.
        ref: a base's name, or a revision of a git source.

    Returns:
        The name of the column that is watched, that of the one it is compared with, and the watched tree where it is
        no base of the lock.

    Raises:
        InputError: it is neither a base nor can there be a git source that has it, or there is nothing to compare with.
    """
    names = list(series.lock.bases)
    if ref in names or f"v{ref}" in names:
        name = series.base(ref)[0]
        older = [n for n in forecast_bases if n != name] or [
            n for n in names[: names.index(name)] if series.lock.bases[n].verified
        ]
        if not older:
            raise InputError(f"there is no base before {name}.", "Name the one to compare with: --base BASE.")
        return name, older[0] if forecast_bases else older[-1], None
    having = [n for n in (*forecast_bases, *names) if series.lock.bases[n].source.kind in {"git", "clone"}]
    if not having:
        raise InputError(
            f"{ref!r} is no base, and no base has a git source to look it up in.",
            "Add one: patchq upstream add NAME --git URL --rev REVISION.",
        )
    base = series.lock.bases[having[0]]
    commit = fetch_other(having[0], base.source, ref, make_progress())
    ground = Ground.at(objects, ref, commit, Base(base.source))
    return ref, forecast_bases[0] if forecast_bases else having[0], ground
