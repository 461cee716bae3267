"""Choosing the lane that a command works with, and bringing its base into the store where it is not."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from patchq.engine.journal import Record
from patchq.engine.lane import Lane, load_lane
from patchq.engine.locate import Standing, locate
from patchq.errors import InputError, RefusedError
from patchq.git.checkout import Head, branch_commit
from patchq.git.commits import read_commit
from patchq.git.objects import Objects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from patchq.engine.draft import Bench
    from patchq.git.checkout import Checkout
    from patchq.series.series import Series
    from patchq.upstream.store import Store


def open_lane(series: Series, store: Store, objects: Objects, base: str) -> Lane:
    """The lane of a base; the base is fetched where it is not in the store.

    Raises:
        PatchqError: there is no such lane, it does not hold, or its base cannot be fetched.
    """
    if base not in series.lock.lanes:
        lanes = ", ".join(series.lock.lanes) or "none yet"
        raise InputError(f"the series has no lane for {base}.", f"Lanes there are: {lanes}.")
    if store.commit(base, series.lock.bases[base], objects) is None:
        from patchq.ui.progress import make_progress
        from patchq.upstream.fetch import fetch_base

        fetch_base(base, series.lock.bases[base], make_progress())
    return load_lane(series, store, objects, base)


@contextlib.contextmanager
def open_bench(series: Series, store: Store, *others: Path) -> Iterator[Bench]:
    """A place to make trees in: a repository for the while, over the store's objects and others'; bases are fetched on the way.

    Args:
        series: the series.
        store: the store.
        others: object directories of other repositories.
    """
    from patchq.engine.draft import Bench
    from patchq.git.bare import scratch_repository
    from patchq.ui.progress import make_progress
    from patchq.upstream.fetch import fetch_base

    with scratch_repository() as git_dir, Objects(git_dir, (store.git_dir / "objects", *others)) as objects:

        def ground(base: str) -> str:
            commit = fetch_base(base, series.lock.bases[base], make_progress())
            return read_commit(objects, commit).tree

        yield Bench(objects, ground)


def fitting_lane(
    series: Series,
    store: Store,
    objects: Objects,
    checkout: Checkout,
    reading: Callable[[], Head],
    base: str | None,
    *,
    three_way: bool = False,
) -> Standing:
    """The lane that a checkout stands on, and where: the named one, else the first that fits, the pinned one first.

    Where none fits: the lane merged onto the checkout, if that is asked for or was done before.

    Args:
        series: the series.
        store: the store.
        objects: the checkout's objects, with the store's.
        checkout: the checkout.
        reading: its HEAD, as `reading_head` gives it: asked for when it is needed.
        base: the base that is named.
        three_way: whether the lane may be merged.

    Raises:
        RefusedError: none fits; what is said is what keeps the pinned one (or the named one) from fitting.
    """
    pinned = series.base(base)[0]
    alone = base is not None or len(series.lock.lanes) <= 1
    names = [pinned] if alone else sorted(series.lock.lanes, key=lambda n: n != pinned)
    first: RefusedError | None = None
    for name in names:
        lane = open_lane(series, store, objects, name)
        head = reading()
        try:
            return Standing(head, lane, locate(objects, head.commit, lane.stack, lane.bodies))
        except RefusedError as error:
            first = first or error
    if first is None:
        raise InputError("the series has no lane yet.", "Make one with patchq refresh.")
    head = reading()
    under = _origin(checkout, head)
    if not (three_way or under):
        raise first
    from patchq.engine.threeway import merged_lane

    try:
        lane = open_lane(series, store, objects, names[0])
        merged = merged_lane(series, objects, lane, under or head.commit)
        return Standing(head, merged, locate(objects, head.commit, merged.stack, merged.bodies))
    except RefusedError:
        if three_way:
            raise
        raise first from None


def _origin(checkout: Checkout, head: Head) -> str | None:
    """The commit that a branch of patchq's was put on."""
    origin = Record(checkout).origin(head.ref)
    return branch_commit(checkout, origin) if origin else None
