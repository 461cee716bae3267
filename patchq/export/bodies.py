"""Some patches of a lane as bodies that apply one after the other, and the two forms in which other tools take them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from patchq.errors import RefusedError
from patchq.git.bare import scratch_repository
from patchq.git.mail import diff_trees, format_mail, parse_mail
from patchq.git.objects import EXECUTABLE, REGULAR
from patchq.series.series import Body

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from patchq.engine.lane import Lane
    from patchq.engine.stack import Stack
    from patchq.git.objects import Objects

SERIES = "series"
"""Quilt's list of patches."""


def bodies_of(objects: Objects, lane: Lane, stack: Stack) -> tuple[Body, ...]:
    """The bodies of some patches: the lane's own bytes where they are its beginning, else written anew for where they stand."""
    if stack.ids == lane.stack.ids[: len(stack.ids)]:
        return lane.bodies[: len(stack.ids)]
    where = {body.id: body.where for body in lane.bodies}
    tree = stack.base_tree
    bodies = []
    with written(objects) as (repository, below):
        for step in stack.steps:
            diff = diff_trees(repository, tree, step.tree, below)
            mail = format_mail(step.author, step.message, diff, where[step.id])
            bodies.append(Body(step.id, where[step.id], mail))
            tree = step.tree
    return tuple(bodies)


@contextlib.contextmanager
def written(objects: Objects) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """What was made in memory, written to a repository that is gone afterwards, and the object directories below it."""
    with scratch_repository() as repository:
        objects.flush(repository)
        yield repository, objects.directories


def mbox_of(bodies: Sequence[Body]) -> bytes:
    """The patches as one mailbox: input for `git am --keep-non-patch --keep-cr`."""
    return b"".join(body.data for body in bodies)


def quilt_of(bodies: Sequence[Body]) -> dict[str, bytes]:
    """The patches as a directory for quilt, by file name.

    Raises:
        RefusedError: a patch has what `patch`, which quilt runs, cannot carry: a binary change or a link.
    """
    for body in bodies:
        for change in parse_mail(body.data, body.where).changes:
            reason = ""
            if change.binary is not None:
                reason = "is binary"
            elif not {change.old_mode, change.new_mode} <= {None, REGULAR, EXECUTABLE}:
                reason = "is a link"
            if reason:
                raise RefusedError(
                    f"{body.where}:{change.line}: {change.path} {reason}, which quilt cannot carry.",
                    "Hand the patches on with patchq export mbox.",
                    files=(change.path,),
                )
    files = {f"{body.id}.patch": body.data for body in bodies}
    return {**files, SERIES: "".join(f"{name}\n" for name in files).encode()}
