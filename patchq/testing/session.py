"""One call of `patchq test`: from ids to verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from patchq.errors import InputError
from patchq.testing.follow import Follow, final_line
from patchq.testing.gates import find_cards, lacking
from patchq.testing.isolate import find_isolation
from patchq.testing.ledger import Ledger
from patchq.testing.plan import Mode, Task, plan_tasks
from patchq.testing.prove import Verdict, judge, wants_of
from patchq.testing.runner import Workshop
from patchq.testing.schedule import Known, find_known, limits_for, run_sessions
from patchq.testing.seam.check import VERSION, check_seams
from patchq.testing.stock import StockTests, judge_stock, plan_stock
from patchq.testing.trees import Trees

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchq.engine.forecast import Forecast
    from patchq.engine.lane import Lane
    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.patch import Gate
    from patchq.series.series import Series
    from patchq.testing.environment import Environment
    from patchq.testing.schedule import Want


@dataclass(frozen=True)
class Asked:
    """What a person asks of `patchq test`.

    Attributes:
        ids: the patches; all where empty.
        mode: alone, at their places in the stack, or their tests on the stock base.
        prove: run before and neighbours as well.
        gate: one level only.
        target: another architecture.
        fresh: take nothing from the ledger.
        jobs: sessions at one time.
    """

    ids: tuple[str, ...] = ()
    mode: Mode = "alone"
    prove: bool = False
    gate: Gate | None = None
    target: str | None = None
    fresh: bool = False
    jobs: int = 2


@dataclass(frozen=True)
class Answer:
    """The verdicts, and the environment that they were made in; None where nothing could be run.

    `stock` is what was put on the stock base, by patch, where that was asked for.
    """

    verdicts: tuple[Verdict, ...]
    environment: Environment | None
    stock: dict[str, StockTests] = field(default_factory=dict)


def prove_patches(
    series: Series,
    objects: Objects,
    lane: Lane,
    asked: Asked,
    make_environment: Callable[[], Environment],
    progress: Progress,
) -> Answer:
    """Run patches' tests and judge them.

    Args:
        series: the series.
        objects: where trees are read and made.
        lane: the lane.
        asked: what to do.
        make_environment: gives the base's environment; called once, and only if something can be run here.
        progress: told how far it is.

    Raises:
        InputError: a patch is not in the lane, or none has tests at that gate.
        EnvironmentLacksError: the environment cannot be made.
    """
    tasks = plan_tasks(
        series, objects, lane, asked.ids, mode=asked.mode, gate=asked.gate, target=asked.target
    )

    def decide(task: Task, known: Known, ledger: Ledger) -> Verdict:
        seam = ledger.seams(VERSION, task.trees.without, task.trees.after, partial(_seams, objects, task))
        return judge(task, asked.mode, known, seam, prove=asked.prove)

    return _run(objects, lane.stack.base_tree, tasks, asked, make_environment, progress, decide)


def ask_stock(
    series: Series,
    objects: Objects,
    forecast: Forecast,
    base: str,
    asked: Asked,
    make_environment: Callable[[], Environment],
    progress: Progress,
) -> Answer:
    """Run patches' tests on a stock base and say what they tell of it.

    Args:
        series: the series.
        objects: where trees are read and made.
        forecast: knows where each patch was made.
        base: the base, which needs no lane.
        asked: what to do.
        make_environment: gives the base's environment; called once, and only if something can be run here.
        progress: told how far it is.

    Raises:
        InputError: a patch is in no lane, or none has tests at that gate.
        EnvironmentLacksError: the environment cannot be made.
    """
    chosen = [series.find(name) for name in asked.ids] or [p for p in series.patches if forecast.knows(p.id)]
    ids = [p.id for p in series.patches if p in chosen]
    stock = {t.patch: t for t in plan_stock(forecast, objects, base, ids, asked.gate, asked.target)}

    def decide(task: Task, known: Known, _: Ledger) -> Verdict:
        wanted = wants_of(task, prove=False)
        outcome = known.outcomes[wanted[0]] if wanted else None
        return judge_stock(series, stock[task.patch.id], task, outcome, cached=set(wanted) <= known.cached)

    tasks = [task for tests in stock.values() for task in tests.tasks]
    answer = _run(objects, forecast.ground(base).tree, tasks, asked, make_environment, progress, decide)
    return replace(answer, stock=stock)


def _run(
    objects: Objects,
    base_tree: str,
    tasks: list[Task],
    asked: Asked,
    make_environment: Callable[[], Environment],
    progress: Progress,
    decide: Callable[[Task, Known, Ledger], Verdict],
) -> Answer:
    """Run tasks as far as this machine can, and decide each."""
    if not tasks:
        raise InputError(
            f"no patch that was asked for has tests at the gate {asked.gate}.",
            "Leave out --gate to see which gates there are.",
        )
    cards = find_cards()

    def lack(task: Task, cuda: str) -> str:
        return lacking(task.gate, task.target, cards, cuda, task.programs)

    possible = [t for t in tasks if not lack(t, "any")]
    if not possible:
        return Answer(tuple(_not_run(t, asked.mode, lack(t, "any")) for t in tasks), None)
    environment = make_environment()
    isolation = find_isolation()
    ledger = Ledger(environment.key, isolation.name, fresh=asked.fresh)
    trees = Trees(objects, environment.overlay, linked=isolation.tree)
    shop = Workshop(trees, environment, isolation, limits_for(asked.jobs))
    wanted: list[list[Want]] = []
    verdicts: list[Verdict | None] = []
    for task in tasks:
        why = lack(task, environment.cuda)
        verdicts.append(_not_run(task, asked.mode, why) if why else None)
        wanted.append([] if why else wants_of(task, prove=asked.prove))
    known, sessions = find_known(chain.from_iterable(wanted), ledger)
    follow = Follow(list(zip(tasks, wanted, strict=True)), sessions, asked.jobs, ledger.took)

    def settle() -> None:
        for number, task in enumerate(tasks):
            if verdicts[number] is None and known.has(wanted[number]):
                verdicts[number] = verdict = decide(task, known, ledger)
                follow.decided(number, verdict)

    settle()
    if sessions:
        what = f"running tests on {len(sessions)} trees, {asked.jobs} at a time"
        lines = [final_line(v) if v else follow.line(n) for n, v in enumerate(verdicts)]
        with progress.lines(what, lines, follow.left) as show:
            follow.show = show
            run_sessions(sessions, known, base_tree, shop, ledger, asked.jobs, follow, settle)
    return Answer(tuple(v for v in verdicts if v is not None), environment)


def _seams(objects: Objects, task: Task) -> list[dict[str, Any]]:
    trees = task.trees
    return [s.as_dict() for s in check_seams(objects, trees.without, trees.after, trees.production)]


def _not_run(task: Task, mode: Mode, why: str) -> Verdict:
    return Verdict(task, mode, "not run", notes=(f"not run: needs {why}",))
