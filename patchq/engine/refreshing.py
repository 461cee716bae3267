"""Refreshing a lane from a checkout: its commits, and what was changed on top of them, become the bodies of the patches.

A commit with a patch's title is that patch. Any other commit, and what is not committed, is a change on top, which goes
into the patch that owns its lines (patchq.engine.ownership), or, for a `fixup!` commit, into the patch that it names.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING

from patchq.engine.bodies import make_body
from patchq.engine.gathered import Gathered, OnTop, Slot, work_tree
from patchq.engine.locate import base_commit_of
from patchq.engine.ownership import place
from patchq.errors import InputError, RefusedError
from patchq.git.checkout import user_identity
from patchq.git.commits import Commit, Identity, read_commit
from patchq.git.hunks import HunkRefusedError
from patchq.git.mail import diff_trees, format_mail, parse_mail
from patchq.git.objects import Objects
from patchq.git.pick import pick
from patchq.series.moves import read_moves
from patchq.series.series import Body
from patchq.text import listed

if TYPE_CHECKING:
    from patchq.engine.stack import Stack
    from patchq.git.checkout import Checkout, Head
    from patchq.series.series import Series

MAX_COMMITS = 1000
_FIXUP = re.compile(r"(?:(?:fixup|squash|amend)! )+(.*)")


def gather(
    series: Series,
    base: str,
    objects: Objects,
    checkout: Checkout,
    head: Head,
    base_tree: str,
    lane: Stack | None,
    into: str | None,
) -> Gathered:
    """Work out a lane from a checkout; nothing is written but objects.

    Args:
        series: the series.
        base: the base's name.
        objects: the checkout's objects with the store's, new ones in a repository of their own.
        checkout: the checkout, under its lock.
        head: where it stands.
        base_tree: the base's tree.
        lane: the lane as it is; None where there is none yet.
        into: the patch that gets every change on top.

    Raises:
        RefusedError: the base is not under HEAD; a patch has two commits, or none and no body either; the order is not
            the series'; or a change on top belongs to no one patch.
    """
    return _Gatherer(series, base, objects, checkout, head).run(base_tree, lane, into)


class _Gatherer:
    def __init__(self, series: Series, base: str, objects: Objects, checkout: Checkout, head: Head) -> None:
        self.series = series
        self.base = base
        self.objects = objects
        self.checkout = checkout
        self.head = head
        self.old = {b.id: b for b in self._old_bodies()}
        self.titles: dict[str, str] = {}
        for body in self.old.values():
            with contextlib.suppress(InputError):
                self.titles[parse_mail(body.data, body.where).title] = body.id
        self.titles |= {p.title: p.id for p in series.on(base).patches}

    def run(self, base_tree: str, lane: Stack | None, into: str | None) -> Gathered:
        base_commit, commits = self._above(base_tree, lane)
        slots, trees, on_top = self._stack(base_commit, commits)
        self._check_missing([s.id for s in slots])
        if into is not None and on_top:
            slots, trees = self._with_slot(slots, trees, into)
        for change in on_top:
            after = self._carry(trees[-1], change)
            if after == trees[-1]:
                continue
            if not slots:
                raise RefusedError(
                    f"{change.what} stands on no patch.", "Say which one it is for: --into ID."
                )
            target = into or self._named(change, slots)
            trees = place(self.objects, [s.id for s in slots], trees, after, target)
        ids = [s.id for s in slots]
        bodies = self._bodies(slots, trees, lane)
        absent = [i for i in self.old if i not in ids]
        notes = [f"{listed(absent)}: not in the checkout, kept as it was"] if absent else []
        empty = [p.id for p in self.series.patches if p.id not in {b.id for b in bodies}]
        notes += [
            f"{i} has no body for {self.base} yet"
            for i in empty
            if read_moves(self.series.root, i).to(self.base) is None
        ]
        whats = tuple(change.what for change in on_top)
        return Gathered(base_commit, tuple(slots), tuple(trees), tuple(bodies), whats, tuple(notes))

    def _old_bodies(self) -> list[Body]:
        found = []
        for patch in self.series.patches:
            path = self.series.body_path(patch.id, self.base)
            if path.exists():
                found.append(Body(patch.id, f"series/{patch.id}/{self.base}.patch", path.read_bytes()))
        return found

    def _above(self, base_tree: str, lane: Stack | None) -> tuple[str, list[tuple[str, Commit]]]:
        """The commit of the base under HEAD, and the commits above it, lowest first."""
        chain: list[tuple[str, Commit]] = []
        at = self.head.commit
        for _ in range(MAX_COMMITS):
            try:
                commit = read_commit(self.objects, at)
            except KeyError:
                break
            if commit.tree == base_tree:
                return at, chain[::-1]
            chain.append((at, commit))
            if len(commit.parents) != 1:
                break
            at = commit.parents[0]
        found = base_commit_of(self.objects, self.head.commit, lane) if lane else None
        names = [i for i, _ in chain]
        if found is None or found not in names:
            raise RefusedError(
                f"the tree of {self.base} is not under HEAD.",
                "Commit the patches on a checkout made with patchq apply --create.",
            )
        return found, chain[: names.index(found)][::-1]

    def _stack(
        self, base_commit: str, commits: list[tuple[str, Commit]]
    ) -> tuple[list[Slot], list[str], list[OnTop]]:
        """The patches among the commits, the trees after them without the other commits, and those."""
        trees = [read_commit(self.objects, base_commit).tree]
        slots: list[Slot] = []
        on_top: list[OnTop] = []
        before = trees[0]
        for _, commit in commits:
            patch = self.titles.get(commit.title)
            what = f"the commit {commit.title!r}"
            change = OnTop(what, before, commit.tree, _fixed(commit.title))
            before = commit.tree
            if patch is None:
                on_top.append(change)
                continue
            if patch in {s.id for s in slots}:
                raise RefusedError(
                    f"two commits have the title of {patch}.", "Squash them: one patch is one commit."
                )
            slots.append(Slot(patch, commit.author, commit.message))
            trees.append(self._carry(trees[-1], change))
        now = work_tree(self.checkout, self.head, self.objects)
        if now != before:
            on_top.append(OnTop("what is not committed", before, now))
        self._check_order([s.id for s in slots])
        return slots, trees, on_top

    def _carry(self, tree: str, change: OnTop) -> str:
        """The tree with a change made in it."""
        if change.before == tree:
            return change.after
        if change.before == change.after:
            return tree
        self.objects.flush(self.objects.git_dir)
        diff = diff_trees(self.objects.git_dir, change.before, change.after, self.objects.alternates)
        author = Identity("patchq", "patchq@localhost", 0, "+0000")
        mail = parse_mail(format_mail(author, "change", diff, change.what), change.what)
        try:
            return pick(self.objects, tree, mail, change.what).tree
        except HunkRefusedError as error:
            raise RefusedError(
                f"{change.what} does not go on without the commits between: {error.message}",
                "Put the patches' commits together, one a patch, and the others on top (git rebase -i).",
                files=error.files,
            ) from None

    def _check_order(self, found: list[str]) -> None:
        wanted = [p.id for p in self.series.patches if p.id in found]
        if found != wanted:
            raise RefusedError(
                f"the commits stand in another order than the series ({', '.join(found)}).",
                "Reorder them (git rebase -i); where the series was reordered since: patchq unapply, then apply.",
            )

    def _check_missing(self, found: list[str]) -> None:
        """Refuse a patch that has a body elsewhere, and neither a commit nor a body here, and did not leave this lane."""
        elsewhere = {step.id for steps in self.series.lock.lanes.values() for step in steps}
        missing = []
        for patch in self.series.patches:
            move = read_moves(self.series.root, patch.id).to(self.base)
            if patch.id not in found and patch.id not in self.old and (move is None or move.carried):
                missing.append(patch.id)
        nothing = not found and not self.old
        if missing and (nothing or set(missing) & elsewhere):
            raise RefusedError(
                f"no commit has the title of {', '.join(missing)}.",
                "Commit each patch, titled as in its patch.yaml.",
            )

    def _with_slot(self, slots: list[Slot], trees: list[str], into: str) -> tuple[list[Slot], list[str]]:
        """The stack with a place for a patch that has no commit in it."""
        ids = [s.id for s in slots]
        if into in ids:
            return slots, trees
        if into in self.old:
            raise RefusedError(
                f"{into} is not in the checkout.", "Apply it there first, or name another patch."
            )
        order = [p.id for p in self.series.patches]
        at = sum(order.index(i) < order.index(into) for i in ids)
        title = self.series.on(self.base).find(into).title
        slot = Slot(into, self._user(), title + "\n")
        return [*slots[:at], slot, *slots[at:]], [*trees[: at + 1], *trees[at:]]

    def _user(self) -> Identity:
        """Who works in the checkout, and now, by the user's own git settings."""
        found = user_identity(self.checkout)
        if found is None:
            raise InputError(
                f"git does not know who you are in {self.checkout.top}.",
                "Tell it: git config user.name NAME, and user.email MAIL.",
            )
        return Identity(*found, int(time.time()), time.strftime("%z"))

    def _named(self, change: OnTop, slots: list[Slot]) -> str | None:
        """The patch that a `fixup!` commit names."""
        if not change.title:
            return None
        patch = self.titles.get(change.title)
        if patch is None or patch not in {s.id for s in slots}:
            raise RefusedError(
                f"{change.what} names no patch of the checkout.",
                "Reword it to `fixup! ` and a patch's title.",
            )
        return patch

    @staticmethod
    def _step(trees: list[str], number: int) -> tuple[str, str]:
        return trees[number], trees[number + 1]

    def _bodies(self, slots: list[Slot], trees: list[str], lane: Stack | None) -> list[Body]:
        """The whole lane: the checkout's patches as they are there now, the others as they were."""
        known = {}
        if lane is not None:
            starts = [lane.base_tree, *(s.tree for s in lane.steps)]
            known = {s.id: (starts[n], s.tree, s.author, s.message) for n, s in enumerate(lane.steps)}
        made: dict[str, Body] = {}
        for number, slot in enumerate(slots):
            before, after = self._step(trees, number)
            if known.get(slot.id) == (before, after, slot.author, slot.message) and slot.id in self.old:
                made[slot.id] = self.old[slot.id]
            elif before == after and slot.id in self.old:
                raise RefusedError(
                    f"nothing is left of {slot.id}.", f"Drop it instead: patchq drop {slot.id}."
                )
            else:
                made[slot.id] = make_body(
                    self.objects, slot.id, self.base, slot.author, slot.message, before, after
                )
        both = {**self.old, **made}
        return [both[p.id] for p in self.series.patches if p.id in both]


def _fixed(title: str) -> str:
    found = _FIXUP.fullmatch(title)
    return found[1] if found else ""
