"""Which patch needs which: derived by building stacks with and without, and held against what patch.yaml declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from patchq.engine.stack import build_stack
from patchq.errors import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from patchq.git.objects import Objects
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Body

Kind = Literal["textual", "semantic", "undeclared", "unfounded"]


@dataclass(frozen=True)
class Edge:
    """One patch needs another.

    Attributes:
        source: the patch that needs.
        target: the patch that is needed.
        kind: `textual` declared, and does not apply without; `semantic` declared with a reason, though it applies
            without; `undeclared` does not apply without, and patch.yaml does not say so; `unfounded` declared without
            a reason, and it applies without.
        files: the files that both touch.
        because: the reason that patch.yaml states.
    """

    source: str
    target: str
    kind: Kind
    files: tuple[str, ...]
    because: str


@dataclass(frozen=True)
class Dependencies:
    """The derived and declared order of a lane.

    Attributes:
        edges: direct needs.
        commutes: pairs whose order does not matter: both orders apply and give the same tree.
    """

    edges: tuple[Edge, ...]
    commutes: tuple[tuple[str, str], ...]

    @property
    def agree(self) -> bool:
        """Whether what is declared is what is derived, or has a reason."""
        return all(edge.kind in {"textual", "semantic"} for edge in self.edges)


def derive(
    objects: Objects, base_tree: str, bodies: Sequence[Body], patches: Iterable[PatchMeta]
) -> Dependencies:
    """Find the needs of every patch of a lane by building without each earlier one.

    Args:
        objects: where the base is read and trees are made.
        base_tree: the base's tree.
        bodies: the lane, in order.
        patches: what patch.yaml says of each.
    """
    by_id = {body.id: body for body in bodies}
    order = [body.id for body in bodies]
    meta = {p.id: p for p in patches if p.id in by_id}
    paths = {s.id: set(s.changes) for s in build_stack(objects, base_tree, bodies).steps}

    def tree(ids: Sequence[str]) -> str | None:
        try:
            return build_stack(objects, base_tree, [by_id[i] for i in ids]).tree
        except RefusedError:
            return None

    needs: dict[str, tuple[str, ...]] = {}
    for number, patch in enumerate(order):
        kept = list(order[:number])
        for other in order[:number]:
            without = [i for i in kept if i != other and other not in needs[i]]
            if other in kept and tree([*without, patch]) is not None:
                kept = without
        needs[patch] = tuple(kept)
    edges = []
    for patch in order:
        derived = set(needs[patch]) - {deeper for needed in needs[patch] for deeper in needs[needed]}
        declared = set(meta[patch].depends)
        implied = _reach(declared, meta)
        for other in order:
            kind = _kind(other, derived, declared, implied, meta[patch])
            if kind is not None:
                shared = tuple(sorted(paths[patch] & paths[other]))
                edges.append(Edge(patch, other, kind, shared, meta[patch].because.get(other, "")))
    pairs = [(a, b) for n, a in enumerate(order) for b in order[n + 1 :]]
    commutes = tuple((a, b) for a, b in pairs if _commute(tree, order, needs, a, b))
    return Dependencies(tuple(edges), commutes)


def _kind(
    other: str, derived: set[str], declared: set[str], implied: set[str], patch: PatchMeta
) -> Kind | None:
    if other in declared:
        return "textual" if other in derived else "semantic" if other in patch.because else "unfounded"
    return "undeclared" if other in derived and other not in implied else None


def _reach(declared: set[str], meta: Mapping[str, PatchMeta]) -> set[str]:
    """Everything that what is declared depends on in turn."""
    reached: set[str] = set()
    todo = list(declared)
    while todo:
        patch = todo.pop()
        for needed in meta[patch].depends if patch in meta else ():
            if needed not in reached:
                reached.add(needed)
                todo.append(needed)
    return reached


def _commute(
    tree: Callable[[Sequence[str]], str | None],
    order: Sequence[str],
    needs: Mapping[str, tuple[str, ...]],
    first: str,
    second: str,
) -> bool:
    """Whether two patches, on no more than what both need, give the same tree in either order."""
    if first in needs[second]:
        return False
    ground = [i for i in order if i in {*needs[first], *needs[second]}]
    swapped = tree([*ground, second, first])
    return swapped is not None and swapped == tree([*ground, first, second])
