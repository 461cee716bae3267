"""patchq lint: upstream's own rules on each patch."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, Json, PatchIds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.series.series import Series
    from patchq.upstream.store import Store
    from patchq.vllm.lint.change import Change
    from patchq.vllm.lint.run import Report


def lint(
    context: typer.Context,
    ids: PatchIds = None,
    base: BaseName = None,
    repo: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="CLONE", help="Lint commits of this clone instead, as they would be sent."),
    ] = None,
    commit: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="REV", help="A commit of the clone, or a range A..B; may be repeated. HEAD by default."
        ),
    ] = None,
    no_mypy: Annotated[
        bool,
        typer.Option("--no-mypy", help="Leave mypy out: the first time it takes a minute or more a patch."),
    ] = False,
    json: Json = False,
) -> None:
    """Ask upstream's own rules, as the base's tree has them, what each patch would be stopped for."""
    from patchq.errors import InputError
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store
    from patchq.vllm.lint.run import lint as run_lint

    if repo is None and commit:
        raise InputError("--commit needs the clone that has it.", "Name it: --repo CLONE.")
    if repo is not None and (ids or base):
        raise InputError(
            "--repo lints commits, not patches of the series.", "Leave out the patches and --base."
        )
    store = Store()
    with contextlib.ExitStack() as stack:
        if repo is not None:
            changes = _of_clone(stack, repo, commit or ["HEAD"])
        else:
            objects = stack.enter_context(store.objects())
            changes = _of_series(load(context), store, objects, ids or (), base)
        report = run_lint(changes, make_progress(), without=frozenset({"mypy"} if no_mypy else ()))
    _show(report, [c.id for c in changes], json=json)
    if report.findings:
        raise typer.Exit(1)


def _of_series(
    series: Series, store: Store, objects: Objects, ids: Sequence[str], base: str | None
) -> list[Change]:
    """Each patch at its place in the lane."""
    from patchq.commands.lanes import open_lane
    from patchq.errors import InputError
    from patchq.vllm.lint.change import Change

    lane = open_lane(series, store, objects, series.base(base)[0])
    wanted = {series.find(i).id for i in ids} or set(lane.stack.ids)
    for patch in sorted(wanted - set(lane.stack.ids)):
        raise InputError(
            f"{patch} has no body for {lane.base}.", f"The lane has: {', '.join(lane.stack.ids)}."
        )
    changes = []
    tree = lane.stack.base_tree
    for step in lane.stack.steps:
        who = f"{step.author.name} <{step.author.email}>"
        if step.id in wanted:
            changes.append(Change(step.id, objects, tree, step.tree, step.message, who))
        tree = step.tree
    return changes


def _of_clone(stack: contextlib.ExitStack, repo: Path, revisions: Sequence[str]) -> list[Change]:
    """Each commit against its first parent; its author must have signed it off."""
    from patchq.errors import InputError
    from patchq.git.checkout import open_checkout
    from patchq.git.commits import read_commit
    from patchq.git.run import GitError
    from patchq.vllm.lint.change import Change

    clone = open_checkout(repo)
    objects = stack.enter_context(clone.objects())
    changes = []
    for revision in revisions:
        words = [
            "rev-list",
            "--reverse",
            *([] if ".." in revision else ["--max-count=1"]),
            "--end-of-options",
            revision,
            "--",
        ]
        try:
            found = clone.run(words).decode().split()
        except GitError:
            raise InputError(
                f"{repo} has no commit {revision!r}.", "Name a commit, a branch or a range A..B."
            ) from None
        for name in found:
            commit = read_commit(objects, name)
            if not commit.parents:
                raise InputError(
                    f"{revision} is a commit without a parent.", "Name one that changes something."
                )
            before = read_commit(objects, commit.parents[0]).tree
            who = f"{commit.author.name} <{commit.author.email}>"
            changes.append(Change(name, objects, before, commit.tree, commit.message, who, signed=True))
    return changes


def _show(report: Report, ids: Sequence[str], *, json: bool) -> None:
    from dataclasses import asdict

    from patchq.ui.output import print_json, print_line, print_table

    if json:
        print_json(
            {
                "ok": not report.findings,
                "linted": list(ids),
                "findings": [asdict(f) for f in report.findings],
                "tools": list(report.tools),
                "left_out": [{"rule": r, "why": w} for r, w in report.left_out.items()],
            }
        )
        return
    if report.findings:
        rows = [
            [f.id, f"{f.file}:{f.line}" if f.line else f.file, f.rule, f.message] for f in report.findings
        ]
        print_table(["patch", "where", "rule", "message"], rows)
    for rule, why in report.left_out.items():
        print_line(f"{rule}: left out: {why}")
    bad = {f.id for f in report.findings}
    print_line(f"{len(ids) - len(bad)} of {len(ids)} clean, {len(report.findings)} findings")
