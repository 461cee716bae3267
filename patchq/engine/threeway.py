"""A lane put on a tree that is not its base, by three-way merges: only where a person asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchq.cache import scratch_dir
from patchq.engine.home import find_home
from patchq.engine.placing import place
from patchq.engine.signs import read_signs
from patchq.engine.stack import Stack, Step
from patchq.engine.targets import Targets
from patchq.errors import RefusedError
from patchq.git.bare import scratch_repository
from patchq.git.commits import read_commit
from patchq.git.mail import diff_trees, format_mail
from patchq.git.objects import Objects
from patchq.series.series import Body

if TYPE_CHECKING:
    from patchq.engine.lane import Lane
    from patchq.series.series import Series


def merged_lane(series: Series, objects: Objects, lane: Lane, commit: str) -> Lane:
    """A lane as it is on a commit's tree: patches that the tree has already are not in it.

    Args:
        series: the patches.
        objects: the objects of the repository that has the commit, with the store's.
        lane: the lane on its own base.
        commit: what it is to go on.

    Raises:
        RefusedError: a patch conflicts there; its files are named.
    """
    series = series.on(lane.base)
    base_tree = read_commit(objects, commit).tree
    targets = Targets(objects, lane.stack.base_tree, base_tree)
    metas = {p.id: p for p in series.patches}
    tree = base_tree
    steps: list[Step] = []
    bodies: list[Body] = []
    scratch = scratch_dir()
    with scratch_repository() as repository:
        for body in lane.bodies:
            closure = [p.id for p in series.closure([body.id])]
            home = find_home(objects, lane.stack.base_tree, lane.bodies, closure, metas[body.id])
            placed = place(objects, scratch, tree, home, read_signs(objects, tree, home, targets), targets)
            if placed.troubles:
                first = placed.troubles[0]
                raise RefusedError(
                    f"{body.where} does not go on this checkout, not by a three-way merge either: "
                    f"{first.file} {first.reason}.",
                    "Apply to a checkout of the base, or port the patch: patchq rebase; nothing was changed.",
                    files=tuple(t.file for t in placed.troubles),
                )
            if placed.tree == tree and home.files:
                continue
            objects.flush(repository)
            diff = diff_trees(repository, tree, placed.tree, objects.directories)
            mail = format_mail(home.patch.author, home.patch.message, diff, body.where)
            bodies.append(Body(body.id, body.where, mail))
            merged = placed.fit == "merged"
            steps.append(
                Step(
                    body.id,
                    home.patch.author,
                    home.patch.message,
                    placed.tree,
                    placed.changes,
                    placed.offsets,
                    merged,
                )
            )
            tree = placed.tree
    return lane._replace(
        base_commit=commit,
        bodies=tuple(bodies),
        stack=Stack(base_tree, tuple(steps)),
        commits=(),
        pack="",
    )
