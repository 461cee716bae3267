"""A lane ready to be used: its base in the store, its stack built and checked, and the parts of it that a person asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from patchq.engine.built import built_stack
from patchq.engine.stack import Stack, Step, build_stack, commit_stack
from patchq.errors import InputError
from patchq.git.commits import read_commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.series.series import Body, Series
    from patchq.upstream.store import Store


class Lane(NamedTuple):
    """A lane ready to be used: its base in the store, its bodies, and the whole stack, checked against the lock.

    Attributes:
        base: the base's name.
        base_commit: its commit.
        bodies: the patches' bodies.
        stack: the stack on that commit's tree.
        commits: the stack's commits on that commit, where they are among the store's objects.
        pack: the store's pack that holds them.
    """

    base: str
    base_commit: str
    bodies: tuple[Body, ...]
    stack: Stack
    commits: tuple[str, ...] = ()
    pack: str = ""


def load_lane(series: Series, store: Store, objects: Objects, base: str) -> Lane:
    """Build a base's lane in memory and check every step.

    Raises:
        RefusedError: a body does not apply, or a tree is not the locked one.
        InputError: the base is not in the store, or bodies and lock do not agree.
    """
    bodies = series.lane(base)
    commit = store.require(base, series.lock.bases[base], objects)
    locked_trees = {step.id: step.tree for step in series.lock.lanes[base]}
    built = built_stack(store, objects, commit, bodies, locked_trees)
    return Lane(base, commit, bodies, built.stack, built.commits, built.pack)


def choose(series: Series, lane: Lane, upto: str | None, only: Sequence[str]) -> tuple[str, ...]:
    """The patches a person asks for, in order: all, up to one, or some with their closure.

    Raises:
        InputError: a name is not a patch of this lane.
    """
    if upto is not None and only:
        raise InputError("--upto and --only do not go together.", "Use one of them.")
    in_lane = lane.stack.ids
    wanted = [series.find(name).id for name in ([upto] if upto is not None else only)]
    for patch in wanted:
        if patch not in in_lane:
            raise InputError(f"{patch} has no body for {lane.base}.", f"The lane has: {', '.join(in_lane)}.")
    if upto is not None:
        return in_lane[: in_lane.index(wanted[0]) + 1]
    if only:
        return tuple(p.id for p in series.closure(wanted) if p.id in in_lane)
    return in_lane


def substack(objects: Objects, lane: Lane, ids: Sequence[str]) -> Stack:
    """The stack of some patches of a lane on its base."""
    if tuple(ids) == lane.stack.ids[: len(ids)]:
        return Stack(lane.stack.base_tree, lane.stack.steps[: len(ids)])
    return build_stack(objects, lane.stack.base_tree, [b for b in lane.bodies if b.id in ids])


def commit_steps(objects: Objects, lane: Lane, parent: str, steps: Sequence[Step]) -> str:
    """The top of the commits of some steps on `parent`: the lane's own where they are the same, else made here."""
    own = (lane.base_commit, *lane.commits)
    if lane.commits and parent in own:
        at = own.index(parent)
        if tuple(steps) == lane.stack.steps[at : at + len(steps)]:
            return own[at + len(steps)]
    commits = commit_stack(objects, parent, read_commit(objects, parent).tree, steps)
    return commits[-1] if commits else parent
