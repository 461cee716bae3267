"""Applying and unapplying a lane on a checkout: decided in memory, then one switch."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from patchq.engine.journal import Note, Record, new_token, switch_checkout
from patchq.engine.lane import Lane, commit_steps, substack
from patchq.engine.locate import locate
from patchq.errors import EnvironmentLacksError, InputError, PatchqError, RefusedError
from patchq.git.checkout import (
    Checkout,
    Head,
    branch_commit,
    branches_at,
    elsewhere,
    refuse_underway,
)
from patchq.git.commits import read_commit
from patchq.git.objects import Objects
from patchq.git.obstacles import refuse_in_the_way
from patchq.git.packs import share_pack
from patchq.git.run import GitError, reason_of, run
from patchq.git.switch import Switch
from patchq.git.trees import diff_trees

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.locate import Position, Standing
    from patchq.engine.stack import Stack, Step


class Outcome(NamedTuple):
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
        extras: titles of commits among the patches that are not the lane's.
    """

    base: str
    match: Literal["tree", "blobs"]
    tree: str
    head: str
    branch: str | None
    steps: tuple[Step, ...]
    changed: bool
    created: bool = False
    files: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()


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
    standing: Standing,
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
        standing: where it stands.
        ids: the patches wanted, in order.
        branch: the branch to use; `patchq/<base>` where None.
        dry_run: decide everything and write nothing.
        note: what the project's log is to say of it.

    Raises:
        RefusedError: the checkout is not on the base, or something is in the way; nothing was written.
    """
    head, lane, position = standing.head, standing.lane, standing.position
    _refuse_unmerged(checkout, head)
    stack = substack(objects, lane, ids)
    tree = read_commit(objects, head.commit).tree
    target = f"refs/heads/{branch_for(lane.base, branch)}"
    if position.ids == tuple(ids) and (branch is None or head.ref == target):
        return Outcome(
            lane.base,
            position.match,
            tree,
            head.commit,
            head.branch,
            stack.steps,
            changed=False,
            extras=position.extras,
        )
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
    checkout: Checkout, objects: Objects, standing: Standing, *, dry_run: bool, note: Note | None = None
) -> Outcome:
    """Bring a checkout back to the base, on the branch it came from where that still stands there.

    Raises:
        RefusedError: commits of the user's stand on the patches, or something is in the way.
    """
    head, lane, position = standing.head, standing.lane, standing.position
    _refuse_unmerged(checkout, head)
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
        reason = reason_of(error)
        raise EnvironmentLacksError(
            f"{checkout.top} cannot be written: {reason}.",
            "Make it writable, or make room; nothing was changed.",
        ) from None
