"""One branch for each patch that goes upstream, made in memory and put into a user's clone in one transaction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from patchq.engine.lane import substack
from patchq.engine.rangediff import compare
from patchq.engine.stack import build_stack, commit_stack
from patchq.engine.threeway import merged_lane
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.export.bodies import written
from patchq.export.signing import sign
from patchq.git.checkout import branch_commit, elsewhere
from patchq.git.commits import read_commit
from patchq.git.diff import parse_diff
from patchq.git.mail import MailPatch, diff_trees
from patchq.git.objects import ZERO_OID
from patchq.git.run import GitError
from patchq.vllm.rules import title_pattern, title_rule

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.engine.lane import Lane
    from patchq.export.onto import Onto
    from patchq.export.signing import Person
    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Series

PREFIX = "patchq/pr/"
"""What the branches' names begin with."""
MARKS = "refs/patchq/exported/"
"""Where a clone keeps what each branch was when patchq last wrote it."""
MAX_COMMITS = 100


@dataclass(frozen=True)
class Branch:
    """A branch as it is to be.

    Attributes:
        patch: what it is for.
        name: its name.
        lane: the patch with what it depends on, on the tree that it goes on.
        closure_tree: the tree that evidence of the patch on the lane's own base is about.
        commit: its tip.
        tree: its tree.
        was: its tip before; empty where it is new.
        changes: where it is not new: how each patch differs from what it was, in words; with no patch, the branch.
    """

    patch: PatchMeta
    name: str
    lane: Lane
    closure_tree: str
    commit: str
    tree: str
    was: str = ""
    changes: tuple[tuple[str, str], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The patches on it, in order."""
        return self.lane.stack.ids

    @property
    def status(self) -> Literal["new", "updated", "unchanged"]:
        """What writing it does."""
        return "new" if not self.was else "unchanged" if self.was == self.commit else "updated"


def make_branch(
    series: Series,
    checkout: Checkout,
    objects: Objects,
    lane: Lane,
    onto: Onto,
    patch: PatchMeta,
    who: Person,
    helpers: Sequence[str],
) -> Branch:
    """Make the branch of a patch in memory: the patch on what it depends on, on a commit of the clone.

    Raises:
        RefusedError: the patch has landed there, does not go on, or its branch holds what patchq did not make.
    """
    _refuse_title(objects, onto, patch)
    ids = tuple(p.id for p in series.closure([patch.id]) if p.id in lane.stack.ids)
    stack = substack(objects, lane, ids)
    own = lane._replace(bodies=tuple(b for b in lane.bodies if b.id in ids), stack=stack)
    if onto.match == "other":
        there = merged_lane(series, objects, own, onto.commit)
    else:
        there = own._replace(base_commit=onto.commit, stack=build_stack(objects, onto.tree, own.bodies))
    if patch.id not in there.stack.ids:
        raise RefusedError(f"{patch.id} has landed in {onto.name}: all of it is there.", "Leave it out.")
    signed = tuple(sign(step, who, helpers) for step in there.stack.steps)
    there = there._replace(stack=there.stack._replace(steps=signed))
    tip = commit_stack(objects, onto.commit, onto.tree, signed)[-1]
    branch = Branch(patch, PREFIX + patch.id, there, stack.tree, tip, read_commit(objects, tip).tree)
    return _against_old(series, checkout, objects, branch)


def write_branches(checkout: Checkout, objects: Objects, branches: Sequence[Branch]) -> None:
    """Put branches into a clone: all of them, or none.

    Raises:
        EnvironmentLacksError: the clone cannot be written.
    """
    lines = ["start"]
    for branch in branches:
        for ref in (f"refs/heads/{branch.name}", MARKS + branch.patch.id):
            old = branch_commit(checkout, ref) or ZERO_OID
            lines.append(f"update {ref} {branch.commit} {old}")
    lines += ["prepare", "commit", ""]
    try:
        objects.flush(checkout.common_dir)
        checkout.run(["update-ref", "-m", "patchq: export pr", "--stdin"], stdin="\n".join(lines).encode())
    except GitError as error:
        raise EnvironmentLacksError(
            f"the branches cannot be written to {checkout.top}: {error.reason}.",
            "Make it writable, and no branch be called patchq; none was changed.",
        ) from None


def _refuse_title(objects: Objects, onto: Onto, patch: PatchMeta) -> None:
    if not title_pattern(objects, onto.tree).search(patch.title):
        raise RefusedError(
            f"the title of {patch.id} is not one that upstream takes: {patch.title!r} does not match "
            f"{title_rule(objects, onto.tree).value}.",
            "Reword it in patch.yaml and in the commit, then patchq refresh.",
        )


def _against_old(series: Series, checkout: Checkout, objects: Objects, branch: Branch) -> Branch:
    """A branch with what it was, where it is patchq's to move."""
    ref = f"refs/heads/{branch.name}"
    tip = branch_commit(checkout, ref)
    if tip is None:
        return branch
    if tip == branch.commit:
        return replace(branch, was=tip)
    if tip != branch_commit(checkout, MARKS + branch.patch.id):
        raise RefusedError(
            f"the branch {branch.name} is not as patchq left it, and it is not overwritten.",
            f"Rename it: git -C {checkout.top} branch -m {branch.name} NEW-NAME",
        )
    head = checkout.run(["symbolic-ref", "--quiet", "HEAD"], check=False).decode().strip()
    other = checkout.top if head == ref else elsewhere(checkout, ref)
    if other is not None:
        raise RefusedError(
            f"the branch {branch.name} is checked out in {other}, and would change under it.",
            "Check out another branch there first.",
        )
    return replace(branch, was=tip, changes=_differences(series, objects, tip, branch))


def _differences(series: Series, objects: Objects, tip: str, branch: Branch) -> tuple[tuple[str, str], ...]:
    ids = {patch.title: patch.id for patch in series.patches}
    with written(objects) as (repository, below):
        before, base = _patches(objects, repository, below, ids, tip)
        after, onto = _patches(objects, repository, below, ids, branch.commit)
    found = [("", f"on {onto[:12]}, was on {base[:12]}")] if base != onto else []
    for patch in dict.fromkeys([*after, *before]):
        if patch not in after:
            found.append((patch, "no longer on the branch"))
        elif patch not in before:
            found.append((patch, "newly on the branch"))
        else:
            words = compare(before[patch], after[patch], {}).words
            if words != "unchanged":
                found.append((patch, words))
    return tuple(found)


def _patches(
    objects: Objects, repository: Path, below: Sequence[Path], ids: dict[str, str], tip: str
) -> tuple[dict[str, MailPatch], str]:
    """The series' patches from a tip down, and the commit under them."""
    found: dict[str, MailPatch] = {}
    at = tip
    for _ in range(MAX_COMMITS):
        commit = read_commit(objects, at)
        if commit.title not in ids or len(commit.parents) != 1:
            break
        parent = read_commit(objects, commit.parents[0])
        diff = diff_trees(repository, parent.tree, commit.tree, tuple(below))
        changes = parse_diff(diff, at[:12]) if diff else ()
        found[ids[commit.title]] = MailPatch(commit.author, commit.message, changes)
        at = commit.parents[0]
    return dict(reversed(found.items())), at
