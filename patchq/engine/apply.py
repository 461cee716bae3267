"""Applying and unapplying a lane on a checkout: decided in memory, then one switch."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from patchq.engine.built import built_stack
from patchq.engine.journal import Note, Record, new_token, switch_checkout
from patchq.engine.locate import Position, locate
from patchq.engine.stack import Stack, Step, build_stack, commit_stack
from patchq.errors import EnvironmentLacksError, InputError, PatchqError, RefusedError
from patchq.git.checkout import (
    Checkout,
    Head,
    branch_commit,
    branches_at,
    elsewhere,
    read_head,
    refuse_underway,
)
from patchq.git.commits import read_commit
from patchq.git.objects import Objects
from patchq.git.obstacles import refuse_in_the_way
from patchq.git.packs import share_pack
from patchq.git.run import GitError, run
from patchq.git.switch import Switch
from patchq.git.trees import diff_trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.series.series import Body, Series
    from patchq.upstream.store import Store


@dataclass(frozen=True)
class Lane:
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


@dataclass(frozen=True)
class Outcome:
    """What apply or unapply did, or would do.

    Attributes:
        base: the base's name.
        match: how the checkout was matched with it.
        tree: HEAD's tree now.
        head: HEAD's commit now.
        branch: the branch HEAD is on now, None where detached.
        steps: the patches that are applied now.
        changed: whether anything was (or, in a dry run, would be) written.
        created: whether the checkout was made.
        files: the paths that differ from before.
    """

    base: str
    match: Literal["tree", "blobs"]
    tree: str
    head: str
    branch: str | None
    steps: tuple[Step, ...]
    changed: bool
    created: bool = False
    files: tuple[str, ...] = field(default=())


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


def branch_for(base: str, branch: str | None) -> str:
    """The branch that a lane is put on: the one named, else `patchq/<base>`.

    Raises:
        InputError: it is not a name for a branch.
    """
    name = f"patchq/{base}" if branch is None else branch
    if re.fullmatch(r"[a-z]+/v[0-9]+(?:\.[0-9]+)*", name):
        return name
    try:
        run(["check-ref-format", f"refs/heads/{name}"])
    except GitError:
        name = f"-{name}"
    if name.startswith("-"):
        raise InputError(f"{branch!r} is not a name for a branch.", "Choose another with --branch.")
    return name


def apply_to(
    checkout: Checkout,
    objects: Objects,
    lane: Lane,
    ids: Sequence[str],
    branch: str | None,
    *,
    dry_run: bool,
    note: Note | None = None,
) -> Outcome:
    """Bring a checkout to the base plus exactly these patches.

    Args:
        checkout: the checkout, locked and recovered.
        objects: its objects, with the store's.
        lane: the lane.
        ids: the patches wanted, in order.
        branch: the branch to use; `patchq/<base>` where None.
        dry_run: decide everything and write nothing.
        note: what the project's log is to say of it.

    Raises:
        RefusedError: the checkout is not on the base, or something is in the way; nothing was written.
    """
    head = read_head(checkout)
    _refuse_unmerged(checkout, head)
    position = locate(objects, head.commit, lane.stack, lane.bodies)
    stack = substack(objects, lane, ids)
    tree = read_commit(objects, head.commit).tree
    target = f"refs/heads/{branch_for(lane.base, branch)}"
    if position.ids == tuple(ids) and (branch is None or head.ref == target):
        return Outcome(lane.base, position.match, tree, head.commit, head.branch, stack.steps, changed=False)
    refuse_underway(checkout)
    parent, steps = _where_to_build(checkout, head, position, stack)
    top = commit_steps(objects, lane, parent, steps)
    was = _check_branch(checkout, objects, lane, target, head, top)
    changes = diff_trees(objects, tree, read_commit(objects, top).tree)
    refuse_in_the_way(checkout, changes, head.dirty)
    if not dry_run:
        _flush(checkout, objects, lane)
        if head.ref != target:
            Record(checkout).remember_origin(target, head.ref or head.commit)
        switch = Switch(new_token(), head.commit, top, head.ref, target, was, None, tuple(changes))
        switch_checkout(checkout, switch, note)
    return Outcome(
        lane.base,
        position.match,
        read_commit(objects, top).tree,
        top,
        target.removeprefix("refs/heads/"),
        stack.steps,
        changed=True,
        files=tuple(c.path for c in changes),
    )


def unapply(
    checkout: Checkout, objects: Objects, lane: Lane, *, dry_run: bool, note: Note | None = None
) -> Outcome:
    """Bring a checkout back to the base, on the branch it came from where that still stands there.

    Raises:
        RefusedError: commits of the user's stand on the patches, or something is in the way.
    """
    head = read_head(checkout)
    _refuse_unmerged(checkout, head)
    position = locate(objects, head.commit, lane.stack, lane.bodies)
    tree = read_commit(objects, head.commit).tree
    if not position.ids:
        return Outcome(lane.base, position.match, tree, head.commit, head.branch, (), changed=False)
    refuse_underway(checkout)
    if position.extras or position.base_commit is None:
        raise _own_commits(checkout, position)
    base = position.base_commit
    new_ref = _way_back(checkout, head, base)
    base_tree = read_commit(objects, base).tree
    changes = diff_trees(objects, tree, base_tree)
    refuse_in_the_way(checkout, changes, head.dirty)
    if not dry_run:
        made_here = (
            head.ref is not None and head.ref != new_ref and Record(checkout).origin(head.ref) is not None
        )
        switch = Switch(
            new_token(),
            head.commit,
            base,
            head.ref,
            new_ref,
            base,
            head.ref if made_here else None,
            tuple(changes),
        )
        switch_checkout(checkout, switch, note)
    return Outcome(
        lane.base,
        position.match,
        base_tree,
        base,
        new_ref.removeprefix("refs/heads/") if new_ref else None,
        (),
        changed=True,
        files=tuple(c.path for c in changes),
    )


def _where_to_build(
    checkout: Checkout, head: Head, position: Position, stack: Stack
) -> tuple[str, tuple[Step, ...]]:
    """The commit to build on, and the steps still to make there."""
    have = len(position.ids)
    if stack.ids[:have] == position.ids:
        return head.commit, stack.steps[have:]
    if position.extras or position.base_commit is None:
        raise _own_commits(checkout, position)
    return position.base_commit, stack.steps


def _own_commits(checkout: Checkout, position: Position) -> RefusedError:
    shown = "; ".join(repr(t[:60]) for t in position.extras[:3]) or "history that does not show the base"
    return RefusedError(
        f"{checkout.top} has commits of its own among the patches: {shown}.",
        "Move them to a branch on the base (git rebase --onto), then run this again.",
    )


def _refuse_unmerged(checkout: Checkout, head: Head) -> None:
    if head.unmerged:
        raise RefusedError(
            f"{checkout.top} has files in conflict: {', '.join(head.unmerged[:5])}.",
            "Resolve or abort the merge first.",
            files=head.unmerged,
        )


def _check_branch(
    checkout: Checkout, objects: Objects, lane: Lane, ref: str, head: Head, top: str
) -> str | None:
    """Refuse to move a branch that holds anything the series could not make again, or that is in use elsewhere.

    Returns:
        Where it points, None where it does not exist.
    """
    name = ref.removeprefix("refs/heads/")
    other = elsewhere(checkout, ref)
    if other is not None:
        raise RefusedError(
            f"the branch {name} is checked out in {other}.", "Use that one, or choose another: --branch."
        )
    tip = branch_commit(checkout, ref)
    if tip is None or tip in {head.commit, top}:
        if (
            tip == head.commit
            and ref == head.ref
            and Record(checkout).origin(ref) is None
            and not name.startswith("patchq/")
        ):
            raise RefusedError(
                f"{name} is a branch of your own, and patchq does not move those.",
                "Choose another with --branch.",
            )
        return tip
    with contextlib.suppress(PatchqError, KeyError):
        position = locate(objects, tip, lane.stack, lane.bodies)
        if position.ids and not position.extras and position.base_commit is not None:
            return tip
    raise RefusedError(
        f"the branch {name} holds commits that the series does not.",
        "Rename it (git branch -m), or choose another: --branch.",
    )


def _way_back(checkout: Checkout, head: Head, base: str) -> str | None:
    """The branch to return to: where HEAD came from, else the one branch that stands at the base, else none."""
    origin = Record(checkout).origin(head.ref)
    if origin is not None:
        if not origin.startswith("refs/"):
            return None
        if branch_commit(checkout, origin) == base and elsewhere(checkout, origin) is None:
            return origin
    here = [r for r in branches_at(checkout, base) if r != head.ref and elsewhere(checkout, r) is None]
    return here[0] if len(here) == 1 else None


def _flush(checkout: Checkout, objects: Objects, lane: Lane) -> None:
    """Give a checkout the objects of its new commits."""
    try:
        if lane.pack:
            share_pack(lane.pack, objects.git_dir / "objects", checkout.object_dir)
        objects.flush(checkout.common_dir)
    except (GitError, OSError) as error:
        reason = error.stderr if isinstance(error, GitError) else error.strerror
        raise EnvironmentLacksError(
            f"{checkout.top} cannot be written: {reason}.",
            "Make it writable, or make room; nothing was changed.",
        ) from None
