"""New patches at the end of a series: empty ones, and those made of what comes in from outside."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from patchq.engine.bodies import make_body
from patchq.engine.draft import META
from patchq.engine.editing import Edited, make_room
from patchq.engine.stack import build_stack
from patchq.errors import InputError, PatchqError, RefusedError
from patchq.git.hunks import HunkRefusedError
from patchq.git.pick import pick
from patchq.series.patch import ID_PATTERN, TITLE_PATTERN
from patchq.series.skeleton import named, skeleton, tests_among, titled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.draft import Bench, Draft
    from patchq.engine.incoming import Incoming
    from patchq.series.series import Series


def new(series: Series, draft: Draft, name: str, title: str | None) -> Edited:
    """A patch that has no body yet, last in the series (or at the number that its id has).

    Raises:
        InputError: the name, number or title cannot be used, or is taken.
    """
    patch = name if re.fullmatch(ID_PATTERN, name) else f"{make_room(draft, None)[0]}-{name}"
    _check_id(draft, patch)
    _check_title(series, title)
    words = patch[5:].replace("-", " ")
    text = skeleton(patch, title or titled(words[:1].upper() + words[1:]))
    patches = {**draft.patches, patch: {META: text.encode()}}
    return Edited(replace(draft, patches={i: patches[i] for i in sorted(patches)}))


def bring_in(
    series: Series, draft: Draft, bench: Bench, base: str, found: Sequence[Incoming], name: str | None
) -> tuple[Edited, tuple[str, ...]]:
    """One patch for each that comes in, at the end of a base's lane.

    Args:
        series: the series.
        draft: the same in memory.
        bench: where trees are made.
        base: the base whose lane gets them; other lanes get them by a rebase.
        found: what comes in, in order.
        name: what to call it, where it is one.

    Returns:
        The series with them, and their ids.

    Raises:
        RefusedError: one does not apply on the lane; its file and hunk are named.
        InputError: its title or name is taken.
    """
    if name is not None and len(found) != 1:
        raise InputError(
            f"{len(found)} patches come in, and --name is one name.", "Leave --name away; see patchq rename."
        )
    tree = bench.stack(base, draft.lane(base), "importing").tree
    notes, ids = [], []
    for incoming in found:
        title = titled(incoming.mail.title)
        _check_title(series, title)
        patch = f"{make_room(draft, None)[0]}-{name or _free_name(draft, named(title))}"
        _check_id(draft, patch)
        try:
            picked = pick(bench.objects, tree, incoming.mail, incoming.where)
        except HunkRefusedError as error:
            last = next(reversed([b.id for b in draft.lane(base)]), "nothing")
            raise RefusedError(
                f"{incoming.mail.title!r} does not apply on {base} after {last}: {error.message}",
                "Rebase it onto the series first (git rebase in the clone), then import it again.",
                files=error.files,
            ) from None
        message = title + "\n" + incoming.mail.message.partition("\n")[2]
        body = make_body(bench.objects, patch, base, incoming.mail.author, message, tree, picked.tree)
        text = skeleton(patch, title, tests=tests_among(sorted(p for p, e in picked.changes.items() if e)))
        files = {META: text.encode(), f"{base}.patch": body.data}
        draft = replace(draft, patches={**draft.patches, patch: files})
        needed = _needs(draft, bench, base, patch, {p.id: set(p.depends) for p in series.on(base).patches})
        text = (
            text.replace("depends: []", "depends:" + "".join(f"\n  - {n}" for n in needed))
            if needed
            else text
        )
        draft = draft.with_file(patch, META, text.encode())
        notes += [f"{patch}: {o.file} hunk {o.hunk} went on by {o.lines:+d} lines" for o in picked.offsets]
        tree = picked.tree
        ids.append(patch)
    others = [b for b in draft.bases if b != base]
    notes += (
        [f"the lanes of {', '.join(others)} do not have it yet: patchq rebase --onto BASE"] if others else []
    )
    return Edited(bench.settle(draft, "importing"), notes=tuple(notes)), tuple(ids)


def _needs(draft: Draft, bench: Bench, base: str, patch: str, declared: dict[str, set[str]]) -> list[str]:
    """The patches without which the last one does not apply, but for those that others of them need anyway."""
    bodies = draft.lane(base)
    kept = [b for b in bodies if b.id != patch]
    reach: dict[str, set[str]] = {}
    for body in kept:
        direct = declared.get(body.id, set()) | _written_depends(draft, body.id, declared)
        reach[body.id] = direct | {deeper for d in direct for deeper in reach.get(d, ())}
    for other in [b.id for b in reversed(kept)]:
        without = [b for b in kept if b.id != other and other not in reach[b.id]]
        try:
            build_stack(bench.objects, bench.ground(base), [*without, bodies[-1]])
        except PatchqError:
            continue
        kept = without
    wanted = {b.id for b in kept}
    return [i for i in draft.patches if i in wanted - {d for k in wanted for d in reach[k]}]


def _written_depends(draft: Draft, patch: str, declared: dict[str, set[str]]) -> set[str]:
    """What a patch that came in a moment ago depends on."""
    if patch in declared:
        return set()
    import yaml

    return set(yaml.safe_load(draft.text(patch))["depends"])


def _free_name(draft: Draft, name: str) -> str:
    taken = {patch[5:] for patch in draft.patches}
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free


def _check_id(draft: Draft, patch: str) -> None:
    if not re.fullmatch(ID_PATTERN, patch):
        raise InputError(
            f"{patch[5:]!r} is not a name for a patch.", "Use lower case, digits and single dashes."
        )
    clash = next((p for p in draft.patches if p[:4] == patch[:4] or p[5:] == patch[5:]), None)
    if clash is not None:
        raise InputError(f"{patch} has the number or the name of {clash}.", "Choose another.")


def _check_title(series: Series, title: str | None) -> None:
    if title is None:
        return
    if not re.match(TITLE_PATTERN, title):
        raise InputError(
            f"title {title!r} does not begin with upstream's tags, such as [Kernel][Quantization].",
            "Add them.",
        )
    same = next((p.id for p in series.patches if p.title == title), None)
    if same is not None:
        raise InputError(
            f"{same} has the title {title!r} already.", "Drop or rename that one, or reword this one."
        )
