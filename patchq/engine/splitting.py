"""Splitting a patch in two: the files and hunks that a person chooses go into a patch of their own, right behind it."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from patchq.engine.bodies import make_body
from patchq.engine.draft import META
from patchq.engine.editing import Edited, make_room, plain_group, renumbered, same_end, with_meta
from patchq.errors import InputError, RefusedError
from patchq.git.mail import MailPatch, parse_mail
from patchq.git.pick import pick
from patchq.series.patch import TITLE_PATTERN
from patchq.series.skeleton import MARK, skeleton

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.engine.draft import Bench, Draft
    from patchq.git.diff import FileChange
    from patchq.series.patch import PatchMeta
    from patchq.series.series import Series


@dataclass(frozen=True)
class Choice:
    """What goes into the new patch.

    Attributes:
        files: patterns of paths, as the shell has them; `*` also stands for slashes.
        hunks: numbers of hunks by path, from 1 as in the patch file.
    """

    files: tuple[str, ...]
    hunks: dict[str, tuple[int, ...]]

    def of(self, change: FileChange) -> FileChange | None:
        """The part of a file's change that was chosen; None where none was."""
        if any(fnmatch.fnmatchcase(path, pattern) for path in change.paths for pattern in self.files):
            return change
        numbers = [n for path in change.paths for n in self.hunks.get(path, ())]
        chosen = tuple(h for n, h in enumerate(change.hunks, start=1) if n in numbers)
        if not chosen or len(chosen) == len(change.hunks):
            return change if chosen else None
        return _part(change, chosen)


def parse_choice(files: Sequence[str], hunks: Sequence[str]) -> Choice:
    """What a person chose with `--files PATTERN` and `--hunks PATH:1,3-5`.

    Raises:
        InputError: a choice of hunks does not read like that, or nothing is chosen.
    """
    found: dict[str, tuple[int, ...]] = {}
    for text in hunks:
        path, _, numbers = text.rpartition(":")
        if not path or not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", numbers):
            raise InputError(
                f"{text!r} does not name hunks.", "Write PATH:1,3-5, counted from 1 in the patch file."
            )
        spans = [part.partition("-") for part in numbers.split(",")]
        chosen = [n for a, _, b in spans for n in range(int(a), int(b or a) + 1)]
        found[path] = (*found.get(path, ()), *chosen)
    if not files and not found:
        raise InputError("nothing is chosen for the new patch.", "Use --files PATTERN or --hunks PATH:1,3-5.")
    return Choice(tuple(files), found)


def split(
    series: Series, draft: Draft, bench: Bench, patch: str, choice: Choice, name: str, title: str
) -> tuple[Edited, str]:
    """Make two patches of one, in every lane that has it; the tree after both is the tree after the one.

    Returns:
        The series with both, and the id of the new one.

    Raises:
        InputError: a choice meets nothing.
        RefusedError: all or nothing of the patch is chosen, or the parts do not apply one after the other.
    """
    doing = f"splitting {patch}"
    number, giving_way = make_room(draft, patch)
    new_id = f"{number}-{name}"
    metas = {p.id: p for p in series.patches}
    text = skeleton(new_id, title, depends=[*metas[patch].depends, patch], because=f"{MARK}: split from it.")
    roomy = draft.renamed(giving_way)
    patches = {**roomy.patches, new_id: {META: text.encode()}}
    made = replace(roomy, patches={i: patches[i] for i in sorted(patches)})
    paths: set[str] = set()
    met: set[str] = set()
    whole_lanes = []
    for base in draft.bases:
        body = next((b for b in draft.lane(base) if b.id == patch), None)
        if body is None:
            continue
        mail = parse_mail(body.data, body.where)
        met |= _met(mail, choice)
        taken, left = _parts(mail, choice)
        if not left:
            raise RefusedError(
                f"{doing} would leave nothing of it on {base}.", "Choose less, or use patchq rename."
            )
        if not taken:
            whole_lanes.append(base)
            continue
        earlier = bench.stack(base, [b for b in draft.lane(base) if b.id < patch], doing).tree
        middle = pick(bench.objects, earlier, MailPatch(mail.author, mail.message, left), body.where)
        after = pick(bench.objects, middle.tree, MailPatch(mail.author, mail.message, taken), body.where)
        whole = pick(bench.objects, earlier, mail, body.where)
        if after.tree != whole.tree:
            same_end(draft, base, "", doing)
        first = make_body(bench.objects, patch, base, mail.author, mail.message, earlier, middle.tree)
        message = title + "\n" + _signed(mail.message)
        second = make_body(bench.objects, new_id, base, mail.author, message, middle.tree, after.tree)
        made = made.with_file(patch, f"{base}.patch", first.data)
        made = made.with_file(new_id, f"{base}.patch", second.data)
        paths |= {p for c in taken for p in c.paths} - {p for c in left for p in c.paths}
    _refuse_unmet(patch, choice, met)
    if not made.patches[new_id].keys() - {META}:
        raise RefusedError(f"{doing} would leave all of it where it is.", "Choose something of it.")
    made = _move_tests(made, metas[patch], new_id, paths)
    made = _follow(made, series, patch, new_id, giving_way)
    edited = renumbered(made, bench, {}, doing)
    notes = [f"{new_id}: its commit message is its title; its patch.yaml says what is to be filled in"]
    notes += [f"{patch} stays whole on {base}, where nothing of it is chosen" for base in whole_lanes]
    return Edited(edited.draft, giving_way, (*notes, *edited.notes)), new_id


def title_for(patch: PatchMeta, name: str, title: str | None) -> str:
    """The title of a patch split from another: the one given, else the other's tags and the new name's words.

    Raises:
        InputError: it does not begin with upstream's tags.
    """
    if title is None:
        tags = re.match(r"(\[[^][]+\])+", patch.title)
        words = name.replace("-", " ")
        title = f"{tags[0] if tags else ''} {words[:1].upper()}{words[1:]}"
    if not re.match(TITLE_PATTERN, title):
        raise InputError(
            f"title {title!r} does not begin with upstream's tags, such as [Kernel][Quantization].",
            "Add them.",
        )
    return title


def _signed(message: str) -> str:
    """The sign-offs of a message, as the end of another."""
    lines = [line for line in message.split("\n") if line.startswith("Signed-off-by: ")]
    return "\n" + "".join(f"{line}\n" for line in lines) if lines else ""


def _part(change: FileChange, chosen: tuple[object, ...]) -> FileChange:
    """A text change with only some of its hunks: the ids are of neither file then, and the mode stays."""
    return replace(change, hunks=chosen, old_oid="", new_oid="", old_path=change.new_path)  # type: ignore[arg-type]


def _parts(mail: MailPatch, choice: Choice) -> tuple[tuple[FileChange, ...], tuple[FileChange, ...]]:
    """What goes, and what stays."""
    taken, left = [], []
    for change in mail.changes:
        chosen = choice.of(change)
        if (
            chosen is not None
            and chosen is not change
            and (change.old_path != change.new_path or not change.hunks)
        ):
            raise InputError(
                f"{change.path} is added, deleted or renamed, and goes as a whole.", "Choose it with --files."
            )
        if chosen is None:
            left.append(change)
        elif len(chosen.hunks) == len(change.hunks):
            taken.append(change)
        else:
            taken.append(chosen)
            left.append(_part(change, tuple(h for h in change.hunks if h not in chosen.hunks)))
    return tuple(taken), tuple(left)


def _met(mail: MailPatch, choice: Choice) -> set[str]:
    """The choices that meet something in a body."""
    met = set()
    for change in mail.changes:
        met |= {f for f in choice.files for p in change.paths if fnmatch.fnmatchcase(p, f)}
        for path in change.paths:
            met |= {f"{path}:{n}" for n in choice.hunks.get(path, ()) if 1 <= n <= len(change.hunks)}
    return met


def _refuse_unmet(patch: str, choice: Choice, met: set[str]) -> None:
    wanted = [*choice.files, *(f"{path}:{n}" for path, numbers in choice.hunks.items() for n in numbers)]
    unmet = [w for w in wanted if w not in met]
    if unmet:
        raise InputError(f"{patch} changes nothing at {', '.join(unmet)}.", "See its body in series/.")


def _move_tests(draft: Draft, old: PatchMeta, new_id: str, paths: set[str]) -> Draft:
    """The new patch is tested by the test files that went into it."""
    stay, go = [], []
    for group in old.tests:
        gone = tuple(t for t in group.run if t.partition("::")[0] in paths)
        kept = tuple(t for t in group.run if t not in gone)
        stay += [group.__class__(group.gate, kept, group.before, group.needs)] if kept else []
        go += [group.__class__(group.gate, gone, group.before, group.needs)] if gone else []
    if not go:
        return draft
    draft = with_meta(draft, old.id, {"tests": [plain_group(g) for g in stay]})
    return with_meta(draft, new_id, {"tests": [plain_group(g) for g in go]})


def _follow(draft: Draft, series: Series, patch: str, new_id: str, ids: dict[str, str]) -> Draft:
    """Whoever depends on the patch depends on both of its parts, until a person knows better."""
    for other in series.patches:
        if patch in other.depends:
            called = ids.get(other.id, other.id)
            depends = [ids.get(d, d) for d in other.depends]
            depends.insert(depends.index(patch) + 1, new_id)
            because = {ids.get(k, k): v for k, v in other.because.items()}
            because[new_id] = because.get(patch, f"It was split from {patch}.")
            draft = with_meta(draft, called, {"depends": depends, "because": because})
    return draft
