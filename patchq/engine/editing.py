"""Editing a series in memory: move, drop, rename, fold and split; each refuses what would break a later patch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from patchq.engine.bodies import make_body, same_text
from patchq.engine.draft import META
from patchq.errors import InputError, RefusedError
from patchq.git.mail import format_mail, parse_mail
from patchq.series.patch import ID_PATTERN, TITLE_PATTERN, PatchMeta
from patchq.series.rewrite import mentions, with_values

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from patchq.engine.draft import Bench, Draft
    from patchq.series.series import Body, Series

LAST_NUMBER = 9999


@dataclass(frozen=True)
class Edited:
    """What a series becomes.

    Attributes:
        draft: the series.
        ids: new ids by old, of the patches that are called otherwise now.
        notes: what a person should know of it, or do by hand.
    """

    draft: Draft
    ids: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def move(
    series: Series, draft: Draft, bench: Bench, patch: str, *, before: str = "", after: str = ""
) -> Edited:
    """Put a patch elsewhere in the order. Directories are numbered in the new order with the numbers that are in use.

    Raises:
        RefusedError: it would come before a patch that it depends on, or behind one that depends on it; a patch does
            not apply in the new order; or the lane would end in another tree.
    """
    order = [i for i in draft.patches if i != patch]
    if patch in {before, after}:
        raise InputError(f"{patch} cannot be moved next to itself.", "Name another patch.")
    order.insert(order.index(before) if before else order.index(after) + 1, patch)
    _check_order(series, order)
    moved = draft.in_order(order)
    for base in draft.bases:
        old, new = draft.lane(base), moved.lane(base)
        if [b.id for b in old] != [b.id for b in new]:
            stack = bench.stack(base, new, f"moving {patch}")
            _same_end(draft, base, stack.tree, f"moving {patch}")
    numbers = sorted(i[:4] for i in order)
    ids = {i: n + i[4:] for i, n in zip(order, numbers, strict=True) if not i.startswith(n)}
    return renumbered(moved, bench, ids, f"moving {patch}")


def drop(series: Series, draft: Draft, bench: Bench, patch: str) -> Edited:
    """Take a patch out of the series, in every lane; the numbers of the others stay.

    Raises:
        RefusedError: another depends on it, or does not apply without it.
    """
    needing = [p.id for p in series.patches if patch in p.depends]
    if needing:
        raise RefusedError(
            f"{', '.join(needing)} depends on {patch}.",
            "Drop or fold that first, or take the dependency out of its patch.yaml.",
        )
    left = draft.in_order([i for i in draft.patches if i != patch])
    return Edited(bench.settle(left, f"dropping {patch}"), notes=_mentions(left, [patch]))


def rename(draft: Draft, bench: Bench, patch: str, name: str, title: str | None) -> Edited:
    """Call a patch otherwise: its name, its title, or both; its number stays.

    Raises:
        InputError: the name or title cannot be used.
    """
    new = name if re.fullmatch(ID_PATTERN, name) else f"{patch[:4]}-{name}"
    if not re.fullmatch(ID_PATTERN, new):
        raise InputError(f"{name!r} is not a name for a patch.", "Use lower case, digits and single dashes.")
    if new[:4] != patch[:4]:
        raise InputError(f"{new} has another number than {patch}.", "To change its place, use patchq move.")
    if title is not None:
        draft = _retitled(draft, patch, title)
    return renumbered(draft, bench, {patch: new} if new != patch else {}, f"renaming {patch}")


def fold(series: Series, draft: Draft, bench: Bench, patch: str, into: str) -> Edited:
    """Make one patch part of another, at the other's place and under its title, in every lane that has it.

    Raises:
        RefusedError: a patch between them, or one of the two, does not apply so; or the lane would end in another tree.
    """
    if patch == into:
        raise InputError(f"{patch} cannot be folded into itself.", "Name another patch.")
    doing = f"folding {patch} into {into}"
    ids = list(draft.patches)
    order = [i for i in ids if i != patch]
    at = order.index(into)
    order.insert(at + 1 if ids.index(patch) > ids.index(into) else at, patch)
    together = draft.in_order(order)
    new = together
    for base in draft.bases:
        bodies = {b.id: b for b in together.lane(base)}
        if patch not in bodies:
            continue
        stack = bench.stack(base, list(bodies.values()), doing)
        _same_end(draft, base, stack.tree, doing)
        trees = [stack.base_tree, *(s.tree for s in stack.steps)]
        places = [n for n, s in enumerate(stack.steps) if s.id in {patch, into}]
        mail = parse_mail(*_kept(draft, into, patch, base))
        ends = trees[places[0]], trees[places[-1] + 1]
        try:
            body = make_body(bench.objects, into, base, mail.author, mail.message, *ends)
        except InputError as error:
            raise RefusedError(f"{doing} leaves nothing of both on {base}.", "Drop both instead.") from error
        new = new.with_file(into, f"{base}.patch", body.data)
    metas = {p.id: p for p in series.patches}
    new = new.in_order([i for i in order if i != patch])
    new = _meta_of_both(new, metas[patch], metas[into], order)
    for other in series.patches:
        if patch in other.depends and other.id not in {patch, into}:
            depends = list(dict.fromkeys(into if d == patch else d for d in other.depends))
            because = {into if k == patch else k: v for k, v in other.because.items()}
            new = with_meta(new, other.id, {"depends": depends} | ({"because": because} if because else {}))
    notes = (
        f"{into}: its title, why, changes and limits are as they were; say there what {patch} brought",
        *_mentions(new, [patch]),
    )
    _check_depends(new, order)
    return Edited(bench.settle(new, doing), notes=notes)


def renumbered(draft: Draft, bench: Bench, ids: Mapping[str, str], doing: str) -> Edited:
    """A draft with some patches called otherwise, and its lanes settled."""
    new = draft.renamed(ids)
    ordered = new.in_order(sorted(new.patches))
    return Edited(bench.settle(ordered, doing), ids, _mentions(ordered, list(ids)))


def make_room(draft: Draft, after: str | None) -> tuple[str, dict[str, str]]:
    """The number for a patch that comes right behind another (or last), and the new ids of those that have to give way.

    Raises:
        RefusedError: there is no number left.
    """
    ids = list(draft.patches)
    at = ids.index(after) + 1 if after else len(ids)
    number = int(ids[at - 1][:4]) + 1 if at else 1
    new, giving_way = number, {}
    for patch in ids[at:]:
        if int(patch[:4]) > number:
            break
        number = int(patch[:4]) + 1
        giving_way[patch] = f"{number:04}{patch[4:]}"
    if number > LAST_NUMBER:
        raise RefusedError("there is no number left behind 9999.", "Renumber the series.")
    return f"{new:04}", giving_way


def with_meta(draft: Draft, patch: str, values: Mapping[str, object]) -> Draft:
    """A draft with some values of a patch.yaml replaced, the rest of its text as it is."""
    return draft.with_file(patch, META, with_values(draft.text(patch), values).encode())


def same_end(draft: Draft, base: str, tree: str, doing: str) -> None:
    """Refuse where a lane would end in another tree than it does.

    Raises:
        RefusedError: it would.
    """
    locked = draft.lock.lanes.get(base, ())
    if locked and locked[-1].tree != tree:
        raise RefusedError(
            f"{doing} would give another tree on {base}: a hunk would land elsewhere.",
            "Nothing was written. Do it another way.",
        )


_same_end = same_end


def _kept(draft: Draft, into: str, patch: str, base: str) -> tuple[bytes, str]:
    """The body whose author and message a fold keeps: the target's, of this lane or another, else the folded one's."""
    name = f"{base}.patch"
    files = draft.patches[into]
    others = (files[f"{b}.patch"] for b in draft.lock.bases if f"{b}.patch" in files)
    data = files.get(name) or next(others, None) or draft.patches[patch][name]
    return data, f"series/{into}/{name}"


def _meta_of_both(draft: Draft, patch: PatchMeta, into: PatchMeta, order: Sequence[str]) -> Draft:
    """The target's patch.yaml with what the folded patch needs and is tested by."""
    both = {*into.depends, *patch.depends} - {patch.id, into.id}
    values: dict[str, object] = {}
    depends = [i for i in order if i in both]
    if depends != list(into.depends):
        values["depends"] = depends
    because = {k: v for k, v in (patch.because | into.because).items() if k in both}
    if because != into.because:
        values["because"] = because
    groups = list(into.tests)
    for group in patch.tests:
        same = next(
            (g for g in groups if (g.gate, g.before, g.needs) == (group.gate, group.before, group.needs)),
            None,
        )
        if same is None:
            groups.append(group)
        else:
            run = tuple(dict.fromkeys((*same.run, *group.run)))
            groups[groups.index(same)] = same.__class__(same.gate, run, same.before, same.needs)
    if groups != list(into.tests):
        values["tests"] = [plain_group(g) for g in groups]
    neighbours = list(dict.fromkeys((*into.neighbours, *patch.neighbours)))
    if neighbours != list(into.neighbours):
        values["neighbours"] = neighbours
    return with_meta(draft, into.id, values)


def plain_group(group: object) -> dict[str, object]:
    """A test group as plain data, without what is as it would be anyway."""
    from dataclasses import asdict

    data = asdict(group)  # type: ignore[call-overload]
    plain = {"gate": data["gate"], "run": list(data["run"])}
    if data["before"] != "fails":
        plain["before"] = data["before"]
    return plain | ({"needs": list(data["needs"])} if data["needs"] else {})


def _retitled(draft: Draft, patch: str, title: str) -> Draft:
    if not re.match(TITLE_PATTERN, title) or "\n" in title:
        raise InputError(
            f"title {title!r} does not begin with upstream's tags, such as [Kernel][Quantization].",
            "Add them.",
        )
    new = with_meta(draft, patch, {"title": title})
    for base in draft.lock.bases:
        name = f"{base}.patch"
        data = draft.patches[patch].get(name)
        if data is None:
            continue
        where = f"series/{patch}/{name}"
        mail = parse_mail(data, where)
        message = title + "\n" + mail.message.partition("\n")[2]
        found = re.search(rb"^diff --git ", data, re.MULTILINE)
        diff = data[found.start() :] if found else b""
        new = new.with_file(patch, name, format_mail(mail.author, message, diff, where))
    return new


def _check_order(series: Series, order: Sequence[str]) -> None:
    """Every patch comes behind those it depends on.

    Raises:
        RefusedError: one would not.
    """
    at = {i: n for n, i in enumerate(order)}
    for patch in series.patches:
        for needed in patch.depends:
            if at[needed] > at[patch.id]:
                raise RefusedError(
                    f"{patch.id} depends on {needed}, which would come later.",
                    "Move that too, or take the dependency out of its patch.yaml if it is none.",
                )


def _check_depends(draft: Draft, order: Sequence[str]) -> None:
    """As `_check_order`, for a draft whose patch.yaml files have changed."""
    import yaml

    at = {i: n for n, i in enumerate(order)}
    for patch in draft.patches:
        for needed in yaml.safe_load(draft.text(patch))["depends"]:
            if at[needed] > at[patch]:
                raise RefusedError(
                    f"{patch} would depend on {needed}, which comes later.",
                    "Move that one first: patchq move.",
                )


def _mentions(draft: Draft, ids: Sequence[str]) -> tuple[str, ...]:
    """Where prose names patches by ids that they no longer have."""
    return tuple(
        f"series/{patch}/{META}:{line} names {old} in its text"
        for old in ids
        for patch in draft.patches
        for line in mentions(draft.text(patch), old)
    )


def unchanged(old: Body | None, new: Body) -> bool:
    """Whether a body says what it said."""
    return old is not None and same_text(old.data, new.data)
