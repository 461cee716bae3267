"""Taking a command back, from its entry in the log: what stood there before stands there again, or nothing changes."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import key_of, locked
from patchq.engine.journal import new_token, working_on
from patchq.engine.log import Entry, in_effect
from patchq.errors import InputError, RefusedError
from patchq.git.checkout import branch_commit, elsewhere, read_head, refuse_underway
from patchq.git.obstacles import refuse_in_the_way
from patchq.git.switch import Switch
from patchq.git.trees import Change
from patchq.interrupt import uninterrupted
from patchq.series.series import SERIES_NAME
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from patchq.engine.log import CheckoutChange
    from patchq.engine.project import Project
    from patchq.git.checkout import Checkout, Head


@dataclass(frozen=True)
class Undone:
    """What was taken back, and the entry that this is itself."""

    target: Entry
    entry: Entry


def choose(entries: Sequence[Entry], number: int | None) -> Entry:
    """The entry to take back: the one named, else the last command that stands and is no undo itself.

    Raises:
        InputError: there is none of that number, or none at all.
        RefusedError: it is taken back already.
    """
    undone = in_effect(list(entries))
    if number is None:
        standing = [e for e in entries if e.undoes is None and undone[e.number] is None and not e.damaged]
        if not standing:
            raise InputError("there is nothing to undo.", "See patchq log.")
        return standing[-1]
    found = next((e for e in entries if e.number == number), None)
    if found is None:
        raise InputError(f"the log has no entry {number}.", "See patchq log.")
    if found.damaged:
        raise InputError(f"entry {number} of the log is damaged.", "It cannot be undone; see patchq log.")
    if undone[number] is not None:
        raise RefusedError(
            f"entry {number} is undone already, by {undone[number]}.",
            f"To have it again: patchq undo {undone[number]}.",
        )
    return found


def undo(project: Project, number: int | None) -> Undone:
    """Take an entry back. An undo is taken back like any other entry, which does the command again.

    Raises:
        RefusedError: a file or checkout has changed since, by hand or by a later command; it is named.
    """
    entries = project.log.entries()
    target = choose(entries, number)
    _refuse_gone(target, entries)
    _refuse_changed(project, target, entries)
    _refuse_left_over(project, target)
    files = {c.path: c.old for c in target.files}
    what = f"undo {target.number} ({target.what})"
    with contextlib.ExitStack() as held:
        held.enter_context(uninterrupted())
        moved = None
        if target.checkout is not None and target.checkout.switch is not None:
            moved = held.enter_context(_turned_back(target.checkout, target.checkout.switch, target.number))
        elif target.checkout is not None:
            held.enter_context(_taken_away(target.checkout))
        elif target.undoes is not None:
            _refuse_making(target, entries)
        entry = project.commit(what, files, moved=moved, undoes=target.number)
    if entry is None:
        raise RefusedError(f"entry {target.number} changed nothing that is left.", "See patchq log.")
    return Undone(target, entry)


def _refuse_gone(target: Entry, entries: Sequence[Entry]) -> None:
    """Refuse to turn a checkout back that is not there; name the entry that can be taken back instead."""
    change = target.checkout
    if change is None or change.switch is None or Path(change.path).exists():
        return
    undone = in_effect(list(entries))
    others = [
        e.number
        for e in entries
        if e.number < target.number and e.undoes is None and undone[e.number] is None and not e.damaged
        if e.checkout is None or Path(e.checkout.path).exists()
    ]
    instead = f"To take back what was done before it: patchq undo {others[-1]}." if others else ""
    raise RefusedError(
        f"{change.path}, which entry {target.number} ({target.what}) changed, is not there any more.",
        instead or "There is nothing else to undo; see patchq log.",
    )


def _refuse_changed(project: Project, target: Entry, entries: Sequence[Entry]) -> None:
    changed = [c.path for c in target.files if project.read(c.path) != c.new]
    if not changed:
        return
    undone = in_effect(list(entries))
    later = [
        e
        for e in entries
        if e.number > target.number and undone[e.number] is None and set(e.paths) & set(changed)
    ]
    by_hand = [path for path in changed if not any(path in e.paths for e in later)]
    if by_hand:
        raise RefusedError(
            f"{listed(by_hand)} was changed by hand after entry {target.number} ({target.what}).",
            "Put that aside (git stash), then run this again; nothing was changed.",
            files=tuple(by_hand),
        )
    numbers = ", ".join(str(e.number) for e in reversed(later))
    raise RefusedError(
        f"{listed(changed)} was changed after entry {target.number} by {numbers}.",
        f"Undo first, in this order: {numbers}.",
        files=tuple(changed),
    )


def _refuse_left_over(project: Project, target: Entry) -> None:
    """Refuse to take away a patch's directory in which a person has put something more."""
    going = {c.path for c in target.files if c.old is None}
    for path in sorted(going):
        parts = path.split("/")
        if parts[0] != SERIES_NAME or parts[-1] != "patch.yaml":
            continue
        directory = project.root / SERIES_NAME / parts[1]
        found = [p.relative_to(project.root).as_posix() for p in directory.rglob("*") if p.is_file()]
        more = [p for p in found if p not in going and not p.endswith(".new")]
        if more:
            raise RefusedError(
                f"{listed(more)} came into a directory that entry {target.number} ({target.what}) made.",
                "Move it away, then run this again; nothing was changed.",
                files=tuple(more),
            )


@contextlib.contextmanager
def _turned_back(change: CheckoutChange, done: Switch, number: int) -> Iterator[tuple[Checkout, Switch]]:
    """A checkout under its lock, and the switch that brings it back.

    Raises:
        RefusedError: it stands elsewhere by now, or something is in the way.
    """
    with working_on(Path(change.path), "undoing in") as checkout:
        head = read_head(checkout)
        refuse_underway(checkout)
        _refuse_moved(checkout, head, done, number)
        changes = tuple(Change(c.path, c.new, c.old) for c in done.changes)
        if done.files:
            refuse_in_the_way(checkout, changes, head.dirty)
        drop, drop_to = None, None
        if done.new_ref is not None and done.new_ref != done.old_ref and done.branch_was != done.new_commit:
            drop, drop_to = done.new_ref, done.branch_was
        was = branch_commit(checkout, done.old_ref) if done.old_ref else None
        yield (
            checkout,
            Switch(
                new_token(),
                done.new_commit,
                done.old_commit,
                done.new_ref,
                done.old_ref,
                was,
                drop,
                changes,
                drop_to=drop_to,
                files=done.files,
            ),
        )


def _refuse_moved(checkout: Checkout, head: Head, done: Switch, number: int) -> None:
    if (head.commit, head.ref) != (done.new_commit, done.new_ref):
        raise RefusedError(
            f"HEAD of {checkout.top} has moved since entry {number}: it is {head.branch or 'detached'} at {head.commit[:12]}.",
            f"Check out {(done.new_ref or done.new_commit).removeprefix('refs/heads/')} as patchq left it, "
            f"{done.new_commit[:12]}, then run this again.",
        )
    with checkout.objects() as objects:
        if not objects.has(done.old_commit):
            raise RefusedError(
                f"{checkout.top} has the commit {done.old_commit[:12]} no more, which it stood on before.",
                "It was cleaned up by git; use patchq apply or unapply.",
            )
    if done.old_ref is None or done.old_ref == done.new_ref:
        return
    tip = branch_commit(checkout, done.old_ref)
    other = elsewhere(checkout, done.old_ref)
    name = done.old_ref.removeprefix("refs/heads/")
    if tip not in {None, done.old_commit} or other is not None:
        where = f"checked out in {other}" if other else f"at {str(tip)[:12]}"
        raise RefusedError(
            f"the branch {name} of {checkout.top} has moved since entry {number}: it is {where}.",
            "Put it back (git branch -f), or move it away (git branch -m), then run this again.",
        )


def _refuse_making(target: Entry, entries: Sequence[Entry]) -> None:
    """A checkout that was made and taken away again is made as it was made first."""
    first = next((e for e in entries if e.number == target.undoes), None)
    if first is not None and first.checkout is not None and first.checkout.made:
        path = first.checkout.path
        raise InputError(f"{path} was taken away.", f"Make it again: patchq apply --create {path}")


@contextlib.contextmanager
def _taken_away(change: CheckoutChange) -> Iterator[None]:
    """Take away a checkout that patchq made, where nothing was done in it since; it comes back where that is not logged.

    Raises:
        RefusedError: there is anything in it that making it again would not give.
    """
    path = Path(change.path)
    with locked(f"create-{key_of(path)}", f"taking away {path}"):
        for left in path.parent.glob(f".{glob.escape(path.name)}.patchq-*"):
            shutil.rmtree(left, ignore_errors=True)
    if not path.exists():
        yield
        return
    with working_on(path, "taking away") as checkout:
        head = read_head(checkout)
        said = os.fsdecode(checkout.run(["status", "--porcelain", "--ignored", "-z"]))
        refs = os.fsdecode(checkout.run(["for-each-ref", "--format=%(refname)"])).split()
        commits = checkout.run(["rev-list", "--all", "--not", change.made]).split()
        own = [line[3:] for line in said.split("\0") if line]
        if own or head.commit != change.made or commits or len(refs) > 2:  # noqa: PLR2004
            what = listed(own) if own else "its commits and branches"
            raise RefusedError(
                f"{path} has more in it than patchq made: {what}.",
                "Delete it yourself if nothing in it is wanted.",
                files=tuple(own),
            )
    aside = path.with_name(f".{path.name}.patchq-{os.getpid()}")
    path.rename(aside)
    try:
        yield
    except BaseException:
        aside.rename(path)
        raise
    shutil.rmtree(aside)
