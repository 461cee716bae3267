"""Building a lane as a stack: patch by patch in memory, each step's tree checked against the lock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from patchq.errors import RefusedError
from patchq.git.commits import Commit, put_commit
from patchq.git.hunks import HunkRefusedError, Offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from patchq.git.commits import Identity
    from patchq.git.mail import MailPatch
    from patchq.git.objects import Entry, Objects
    from patchq.series.series import Body

_AT_A_TIME = 50
"""Bodies that are read at a time, so that memory does not grow with their number."""

Verdict = Literal["clean", "offset", "merged", "conflict", "missing"]


class Step(NamedTuple):
    """One patch of a stack.

    Attributes:
        id: the patch.
        author: who wrote it and when.
        message: its whole commit message.
        tree: the tree after it.
        changes: what it wrote, by path.
        offsets: hunks that applied elsewhere than they say.
        merged: whether it went on by a three-way merge.
    """

    id: str
    author: Identity
    message: str
    tree: str
    changes: Mapping[str, Entry | None]
    offsets: tuple[Offset, ...]
    merged: bool = False

    @property
    def title(self) -> str:
        """The first line of the message."""
        return self.message.split("\n", 1)[0]

    @property
    def verdict(self) -> Verdict:
        """How it applied."""
        if self.merged:
            return "merged"
        return "offset" if self.offsets else "clean"


class Stack(NamedTuple):
    """A base tree and the steps on it."""

    base_tree: str
    steps: tuple[Step, ...]

    @property
    def tree(self) -> str:
        """The tree at the top."""
        return self.steps[-1].tree if self.steps else self.base_tree

    @property
    def ids(self) -> tuple[str, ...]:
        """The patches, in order."""
        return tuple(step.id for step in self.steps)

    @property
    def changes(self) -> dict[str, Entry | None]:
        """What the whole stack wrote, by path."""
        merged: dict[str, Entry | None] = {}
        for step in self.steps:
            merged.update(step.changes)
        return merged


class StepRefusedError(RefusedError):
    """A patch of a stack does not apply.

    Attributes:
        id: the patch.
        verdict: `missing` where its target is gone, else `conflict`.
    """

    def __init__(self, patch: str, error: HunkRefusedError) -> None:
        super().__init__(error.message, error.remedy, files=error.files)
        self.id = patch
        self.verdict: Verdict = "missing" if error.missing else "conflict"


def build_stack(
    objects: Objects, base_tree: str, bodies: Iterable[Body], locked: Mapping[str, str] | None = None
) -> Stack:
    """Apply bodies in order to a base, in memory.

    Args:
        objects: where the base is read and the results are made.
        base_tree: id of the base's tree.
        bodies: the patches.
        locked: the tree that must stand after each patch, by patch id; no check where None.

    Raises:
        StepRefusedError: a patch does not apply; file and hunk are named.
        RefusedError: a step's tree is not the locked one.
        InputError: a body is not a well-formed patch.
    """
    from patchq.git.pick import pick

    tree = base_tree
    steps = []
    for body, patch in _read(objects, base_tree, list(bodies)):
        try:
            picked = pick(objects, tree, patch, body.where)
        except HunkRefusedError as error:
            raise StepRefusedError(body.id, error) from None
        if locked is not None and picked.tree != locked[body.id]:
            raise RefusedError(
                f"{body.where}: after it the tree is {picked.tree}, upstream.lock says {locked[body.id]}.",
                "Restore upstream.lock and series/ from version control, or record the change with patchq refresh.",
            )
        tree = picked.tree
        steps.append(Step(body.id, patch.author, patch.message, tree, picked.changes, picked.offsets))
    return Stack(base_tree, tuple(steps))


def _read(objects: Objects, base_tree: str, bodies: Sequence[Body]) -> Iterator[tuple[Body, MailPatch]]:
    """The bodies with what they say; the base's files that they change are read some bodies at a time."""
    from patchq.git.mail import parse_mail

    for at in range(0, len(bodies), _AT_A_TIME):
        some = [(body, parse_mail(body.data, body.where)) for body in bodies[at : at + _AT_A_TIME]]
        objects.read_ahead(
            base_tree, [c.old_path for _, patch in some for c in patch.changes if c.old_path is not None]
        )
        yield from some


def commit_stack(objects: Objects, parent: str, parent_tree: str, steps: Sequence[Step]) -> tuple[str, ...]:
    """Make one commit per step on `parent`, whose files outside the steps stay as they are, and give them in order.

    Author, date and message are the patch's; the committer is the author, so that the ids depend on nothing else.
    """
    commits: list[str] = []
    top, tree = parent, parent_tree
    for step in steps:
        tree = objects.edit_tree(tree, step.changes)
        top = put_commit(objects, Commit(tree, (top,), step.author, step.message))
        commits.append(top)
    return tuple(commits)
