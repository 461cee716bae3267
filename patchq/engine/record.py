"""Recording a stack of commits as a lane: what bodies and lock become, in the one way that they are written."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchq.engine.bodies import keep_unchanged
from patchq.engine.stack import Stack, StepRefusedError, build_stack
from patchq.errors import RefusedError
from patchq.git.objects import Objects
from patchq.series.lock import LockedPatch, format_lock
from patchq.series.series import LOCK_NAME, Body, Series

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Recorded:
    """What was recorded.

    Attributes:
        series: the series with its new lock.
        stack: the lane as it now builds.
        written: the patches whose bodies changed.
        files: what shall stand at the lane's paths, relative to the project.
    """

    series: Series
    stack: Stack
    written: tuple[str, ...]
    files: Mapping[str, bytes]


def record_lane(
    series: Series, base: str, objects: Objects, base_tree: str, bodies: Sequence[Body], doing: str
) -> Recorded:
    """Decide what the files of a lane become; nothing is written, so that a caller can write it all at once.

    A body that says the same as the one on disk stays as it is, to the byte.

    Args:
        series: the series.
        base: the base's name.
        objects: where its tree is read and trees are made.
        base_tree: its tree.
        bodies: the lane, in order.
        doing: what is being done, for the message, as in `refreshing`.

    Raises:
        RefusedError: a body does not apply; it, its file and its hunk are named.
    """
    try:
        build_stack(objects, base_tree, bodies)
    except StepRefusedError as error:
        raise RefusedError(
            f"{doing} would break {error.id} on {base}: {error.message}",
            "Nothing was written. Change that patch first, or do it otherwise.",
            files=error.files,
        ) from None
    known = {}
    for body in bodies:
        path = series.body_path(body.id, base)
        if path.exists():
            known[body.id] = path.read_bytes()
    kept = keep_unchanged(objects, base_tree, bodies, known)
    stack = build_stack(objects, base_tree, kept)
    steps = tuple(LockedPatch(b.id, b.sha256, s.tree) for b, s in zip(kept, stack.steps, strict=True))
    lock = series.lock.with_lane(base, steps)
    files = {body.where: body.data for body in kept} | {LOCK_NAME: format_lock(lock).encode()}
    written = tuple(b.id for b in kept if known.get(b.id) != b.data)
    return Recorded(replace(series, lock=lock), stack, written, files)
