"""patchq test: each patch proven on its own, before and after."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from patchq.commands.context import load
from patchq.commands.options import BaseName, Json, PatchIds, Stack, Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.series import Series
    from patchq.testing.environment import Environment
    from patchq.testing.prove import Verdict
    from patchq.testing.session import Answer, Asked
    from patchq.upstream.store import Store

GATE_NAMES = "cpu, compile, gpu, emulated, native"


def run(
    context: typer.Context,
    ids: PatchIds = None,
    base: BaseName = None,
    stack: Stack = False,
    stock: Annotated[
        bool,
        typer.Option(
            "--stock",
            help="The tests alone on the stock base, which needs no lane: what do they say of the feature there?",
        ),
    ] = False,
    prove: Annotated[
        bool, typer.Option("--prove", help="Also without the production files, and its neighbours.")
    ] = False,
    gate: Annotated[Optional[str], typer.Option(metavar="G", help=f"This level only: {GATE_NAMES}.")] = None,  # noqa: UP045
    target: Target = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", metavar="N", min=1, help="Runs at one time.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run everything again, whatever is known.")] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write what was proved to each patch's evidence.jsonl.")
    ] = False,
    torch: Annotated[
        str | None, typer.Option(metavar="VERSION", help="Another torch than the base pins.")
    ] = None,
    extensions: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="The compiled CPU extensions of another release than the base's own."
        ),
    ] = None,
    python: Annotated[
        Path | None,
        typer.Option(metavar="EXE", help="An interpreter of yours that has what the base needs."),
    ] = None,
    json: Json = False,
) -> None:
    """Run patches' own tests on clean trees; with --prove, show that they fail without the patch and change nothing else.

    With --stock: the tests are put on the stock base without the patch's production files. They fail where the feature
    is absent, and pass where upstream has it; exit code 1 where tests cannot run there. Forecast takes what is recorded.
    """
    from patchq.errors import InputError
    from patchq.series.patch import GATES
    from patchq.testing.session import Asked
    from patchq.ui.output import print_json
    from patchq.ui.progress import make_progress
    from patchq.upstream.store import Store

    if gate is not None and gate not in GATES:
        raise InputError(f"there is no gate {gate!r}.", f"Use one of: {GATE_NAMES}.")
    wanted = Wanted(torch, python, extensions)
    wanted.check()
    if stock and (stack or prove):
        raise InputError(
            f"--stock and {'--stack' if stack else '--prove'} do not go together: there is no patch on a stock base.",
            "Use one of them.",
        )
    series = load(context)
    asked = Asked(
        tuple(ids or ()),
        "stock" if stock else "stack" if stack else "alone",
        prove,
        gate,
        target,
        fresh,
        jobs or default_jobs(),
    )
    store = Store()
    name = series.base(base)[0]
    ask = _ask_stock if stock else _ask_lane
    with store.objects_of(series.lock.bases.values()) if stock else store.objects() as objects:
        answer, evidence = ask(series, store, objects, name, asked, wanted, make_progress())
        recorded = _record(series, evidence, stock=stock) if record else []
    if json:
        results = [describe(v, name) for v in answer.verdicts]
        print_json({"base": name, "results": results, "recorded": recorded})
    else:
        print_verdicts(answer.verdicts, recorded, prove=prove)
    if any(not v.ok for v in answer.verdicts):
        raise typer.Exit(1)
    if answer.verdicts and all(v.status == "not run" for v in answer.verdicts):
        raise typer.Exit(3)


@dataclass(frozen=True)
class Wanted:
    """What a person wants of the environment: another torch, an interpreter, extensions of another release."""

    torch: str | None = None
    python: Path | None = None
    extensions: str | None = None

    def check(self) -> None:
        """See whether that goes together.

        Raises:
            InputError: it does not, or the release is none.
        """
        from patchq.errors import InputError

        if self.python and (self.torch or self.extensions):
            raise InputError(
                f"{'--torch' if self.torch else '--extensions'} and --python do not go together.",
                "Use one of them.",
            )
        if self.torch and not re.match(r"\d+\.", self.torch):
            raise InputError(f"{self.torch!r} is not a version such as 2.13.0.", "Name a release of torch.")
        if self.extensions and not re.fullmatch(r"\d+(\.\d+)+", self.extensions):
            raise InputError(f"{self.extensions!r} is not a version such as 0.32.0.", "Name a release.")


def _ask_lane(
    series: Series,
    store: Store,
    objects: Objects,
    base: str,
    asked: Asked,
    wanted: Wanted,
    progress: Progress,
) -> tuple[Answer, Callable[[], dict[str, bytes]]]:
    """The answer of a lane's patches, and what records it."""
    from patchq.commands.lanes import open_lane
    from patchq.testing.evidence import with_evidence
    from patchq.testing.session import prove_patches

    lane = open_lane(series, store, objects, base)
    series = series.on(base)
    make = environment_maker(series, objects, base, lane.stack.base_tree, wanted, progress)
    answer = prove_patches(series, objects, lane, asked, make, progress)
    return answer, lambda: with_evidence(series, lane, answer, _command(asked, base, wanted))


def _ask_stock(
    series: Series,
    store: Store,
    objects: Objects,
    base: str,
    asked: Asked,
    wanted: Wanted,
    progress: Progress,
) -> tuple[Answer, Callable[[], dict[str, bytes]]]:
    """The answer of a stock base, and what records it."""
    from patchq.commands.grounds import open_forecast
    from patchq.testing.evidence import with_stock
    from patchq.testing.session import ask_stock

    opened = open_forecast(series, store, objects, [base])
    tree = opened.ground(base).tree
    make = environment_maker(series, objects, base, tree, wanted, progress)
    answer = ask_stock(series, objects, opened, base, asked, make, progress)
    return answer, lambda: with_stock(series, base, tree, answer, _command(asked, base, wanted))


def _record(series: Series, evidence: Callable[[], dict[str, bytes]], *, stock: bool) -> list[str]:
    """Write evidence under the project's lock, which it is read again under; the files that were written."""
    from patchq.engine.project import changing

    with changing(series.root, "recording evidence") as project:
        files = evidence()
        project.commit("test --stock --record" if stock else "test --record", files)
    return list(files)


def default_jobs() -> int:
    """As many as there are processors, and no more than the memory holds engines of 6 GB."""
    import os

    from patchq.testing.schedule import total_memory

    return max(1, min(os.cpu_count() or 1, total_memory() // (6 * 10**9)))


def environment_maker(
    series: Series, objects: Objects, base: str, tree: str, wanted: Wanted, progress: Progress
) -> Callable[[], Environment]:
    """How to come by the environment of a base."""

    def make() -> Environment:
        from patchq.testing.environment import given_environment
        from patchq.vllm.environment import GIVEN_VARIABLES, ensure_environment

        if wanted.python is not None:
            return given_environment(wanted.python, GIVEN_VARIABLES)
        return ensure_environment(
            base, series.lock.bases[base], objects, tree, wanted.torch, progress, wanted.extensions
        )

    return make


def describe(verdict: Verdict, base: str) -> dict[str, Any]:
    """A verdict as `--json` gives it."""
    from dataclasses import asdict

    task = verdict.task
    return {
        "id": task.patch.id,
        "base": base,
        "tree": task.trees.after,
        "mode": verdict.mode,
        "gate": task.gate,
        "target": task.target,
        "status": verdict.status if verdict.status != "not run" else verdict.notes[0],
        "proved": verdict.proved,
        "before": asdict(verdict.before.counts) if verdict.before else None,
        "after": asdict(verdict.after.counts) if verdict.after else None,
        "before_tree": task.trees.before,
        "kind": task.trees.kind,
        "against": list(verdict.against),
        "notes": list(verdict.notes),
        "neighbours": None if verdict.same is None else {"same": verdict.same},
        "seam": list(verdict.seam),
        "failures": {
            name: {t: outcome.reasons.get(t, "") for t, got in outcome.tests.items() if got != "passed"}
            for name, outcome in (("before", verdict.before), ("after", verdict.after))
            if outcome is not None
        },
        "logs": {
            name: outcome.log_sha256
            for name, outcome in (("before", verdict.before), ("after", verdict.after))
            if outcome is not None
        },
        "cached": verdict.cached,
        "seconds": verdict.seconds,
        "on": verdict.after.on if verdict.after else None,
    }


def _command(asked: Asked, base: str, wanted: Wanted) -> str:
    words = ["patchq", "test", "--base", base, f"--{asked.mode}", *(["--prove"] if asked.prove else [])]
    words += [
        *(["--gate", asked.gate] if asked.gate else []),
        *(["--target", asked.target] if asked.target else []),
        *(["--torch", wanted.torch] if wanted.torch else []),
        *(["--extensions", wanted.extensions] if wanted.extensions else []),
    ]
    return " ".join(words)


def print_verdicts(verdicts: tuple[Verdict, ...], recorded: list[str], *, prove: bool) -> None:
    """Verdicts for a person: a line each, then what speaks against them, and how many there are of each kind."""
    from typing import get_args

    from patchq.testing.prove import Status
    from patchq.ui.output import print_line, print_table

    rows = []
    for v in verdicts:
        how = "cached" if v.cached else f"{v.seconds:.0f} s" if v.after else ""
        neighbours = "" if v.same is None else str(v.same)
        before = [str(v.before.counts) if v.before else "", neighbours] if prove else []
        rows.append(
            [v.task.patch.id, v.task.gate, v.status, str(v.after.counts) if v.after else "", *before, how]
        )
    print_table(
        ["patch", "gate", "result", "with it", *(["before", "neighbours"] if prove else []), "took"],
        rows,
    )
    for v in verdicts:
        for line in (*v.against, *v.notes):
            print_line(f"{v.task.patch.id} ({v.task.gate}): {line}")
    count = {s: sum(v.status == s for v in verdicts) for s in get_args(Status)}
    cached = sum(v.cached for v in verdicts)
    summary = ", ".join(f"{n} {s}" for s, n in count.items() if n) or "no patch has tests"
    print_line(f"{summary}; {cached} of {len(verdicts)} from the ledger")
    if recorded:
        print_line(f"recorded in {', '.join(recorded)}")
