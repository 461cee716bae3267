"""A rebase from its start to the new lane, written down so that a kill at any step loses nothing that was decided."""

from __future__ import annotations

import contextlib
import json
import shutil
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, key_of, locked, write_atomically
from patchq.engine.rebase import Decision, Pass, run_pass
from patchq.engine.record import record_lane
from patchq.engine.worktree import make_worktree, read_worktree
from patchq.errors import InputError, RefusedError
from patchq.git.bare import init_bare
from patchq.git.objects import Objects
from patchq.jsontext import parse_json
from patchq.series.moves import with_move
from patchq.series.resolutions import with_resolutions
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from patchq.engine.forecast import Forecast
    from patchq.engine.project import Project
    from patchq.series.resolutions import Resolution
    from patchq.series.series import Series


@dataclass
class State:
    """What is known of a rebase between two calls.

    Attributes:
        onto: the base.
        decisions: what a person decided, by patch.
        stopped: the patch that waits and the tree it is to go on; empty where none waits.
        writing: whether all is decided and the lane is being written.
        again: patches that were skipped before and are asked about again.
    """

    onto: str
    decisions: dict[str, Decision] = field(default_factory=dict)
    stopped: tuple[str, ...] = ()
    writing: bool = False
    again: tuple[str, ...] = ()


class Journal:
    """Where a project's rebase is written down, under the cache."""

    def __init__(self, root: Path) -> None:
        self.directory = cache_dir() / "rebases" / key_of(root)
        self.work = self.directory / "work"
        self._file = self.directory / "state.json"

    def objects(self, others: Objects) -> Objects:
        """A repository of the rebase's own over the store's objects (and what that reads), for what is made on the way.

        Nothing is written to the store: there a base's objects lie in packs, which checkouts share.
        """
        git_dir = self.directory / "objects.git"
        self.directory.mkdir(parents=True, exist_ok=True)
        init_bare(git_dir)
        return Objects(git_dir, others.directories)

    def read(self) -> State | None:
        """The rebase that is under way, if one is.

        Raises:
            InputError: the file is damaged.
        """
        try:
            data = parse_json(self._file.read_bytes())
            decisions = {patch: Decision(**value) for patch, value in data["decisions"].items()}
            stopped, again = tuple(data["stopped"]), tuple(data.get("again", ()))
            return State(str(data["onto"]), decisions, stopped, bool(data["writing"]), again)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, AttributeError):
            raise InputError(
                f"{self._file} is damaged.", "Delete it and begin again: patchq rebase --onto BASE."
            ) from None

    def write(self, state: State) -> None:
        """Write it down."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self._file, json.dumps(asdict(state)).encode())

    def forget(self) -> None:
        """It is done, or given up; the state goes first, so that what is left is nobody's."""
        self._file.unlink(missing_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def rebasing(root: Path) -> Iterator[Journal]:
    """Hold a project's rebase.

    Raises:
        EnvironmentLacksError: another patchq is at it.
    """
    with locked(f"rebase-{key_of(root)}", f"rebasing {root}"):
        yield Journal(root)


def begun(journal: Journal, onto: str | None, again: tuple[str, ...] = ()) -> State:
    """The rebase that is under way; a new one where a base is named and none is.

    Args:
        journal: where it is written down.
        onto: the base that is named.
        again: patches that are to be asked about again though a person skipped them before.

    Raises:
        InputError: none is under way and no base is named.
        RefusedError: one onto another base is under way.
    """
    state = journal.read()
    if state is None:
        if onto is None:
            raise InputError("no rebase is under way.", "Begin one: patchq rebase --onto BASE.")
        return State(onto, again=again)
    if onto is not None and onto != state.onto:
        raise RefusedError(
            f"a rebase onto {state.onto} is under way.", "Finish it with --continue, or drop it with --abort."
        )
    state.again = tuple(dict.fromkeys((*state.again, *again)))
    return state


def look(series: Series, forecast: Forecast, objects: Objects, state: State) -> Pass:
    """How far a rebase is; nothing of the project is written."""
    return run_pass(series, forecast, objects, state.onto, state.decisions, state.again)


def advance(
    project: Project, series: Series, forecast: Forecast, objects: Objects, journal: Journal, state: State
) -> Pass:
    """Go on until a patch waits for a person, or the new lane is written.

    Raises:
        PatchqError: a lane does not build, or something cannot be written.
    """
    journal.write(state)
    found = look(series, forecast, objects, state)
    if found.pending is not None:
        stop = (found.pending.id, found.pending.onto)
        if state.stopped != stop or not journal.work.is_dir():
            make_worktree(journal.work, objects, found.head, found.pending)
            state.stopped = stop
            journal.write(state)
        return found
    state.stopped, state.writing = (), True
    journal.write(state)
    _write_lane(project, series, objects, state.onto, found, forecast.ground(state.onto).tree)
    journal.forget()
    return found


def settle(
    project: Project,
    series: Series,
    forecast: Forecast,
    objects: Objects,
    journal: Journal,
    state: State,
    *,
    skip: bool,
) -> None:
    """Take down what a person decided about the patch that waits.

    Raises:
        RefusedError: it is not resolved, or (to skip) no patch waits.
    """
    found = look(series, forecast, objects, state)
    pending = found.pending
    waits = pending is not None and state.stopped == (pending.id, pending.onto)
    if pending is None or not waits or not (skip or journal.work.is_dir()):
        if skip:
            raise RefusedError(
                "no patch waits for a decision.", "Go on with what was decided: patchq rebase --continue."
            )
        return
    learnt: list[Resolution] = []
    decision = Decision("skipped", pending.onto, pending.source.sha256)
    if not skip:
        tree, learnt = read_worktree(journal.work, objects, pending)
        decision = Decision("resolved", pending.onto, pending.source.sha256, tree)
    state.decisions[pending.id] = decision
    state.stopped = ()
    journal.write(state)
    project.commit(
        f"rebase --continue ({pending.id} resolved)", with_resolutions(series.root, pending.id, learnt)
    )
    shutil.rmtree(journal.work, ignore_errors=True)


def abort(journal: Journal, state: State) -> None:
    """Give a rebase up: the project stays as it was before it.

    Raises:
        RefusedError: the lane is being written already.
    """
    if state.writing:
        raise RefusedError(
            f"the lane of {state.onto} is half written.", "Finish it: patchq rebase --continue."
        )
    journal.forget()


def _write_lane(
    project: Project, series: Series, objects: Objects, base: str, done: Pass, base_tree: str
) -> None:
    """Write what a finished pass found, records and lane, all at once."""
    files: dict[str, bytes | None] = {}
    for outcome in done.outcomes:
        files |= with_move(series.root, outcome.id, outcome.move)
        if outcome.body is None:
            files[f"{SERIES_NAME}/{outcome.id}/{base}.patch"] = None
    files |= record_lane(series, base, objects, base_tree, done.bodies, "rebasing").files
    project.commit(f"rebase --onto {base}", files)


def describe(done: Pass, journal: Journal) -> dict[str, Any]:
    """A pass as plain data."""
    pending = None
    if done.pending is not None:
        pending = {
            "id": done.pending.id,
            "verdict": done.pending.verdict,
            "reason": done.pending.reason,
            "work": str(journal.work),
            "files": [
                {
                    "file": t.file,
                    "reason": t.reason,
                    "hunks": list(t.hunks),
                    "sides": {
                        "base": t.base.oid if t.base else None,
                        "upstream": t.ours.oid if t.ours else None,
                        "patch": t.theirs.oid if t.theirs else None,
                    },
                }
                for t in done.pending.placed.troubles
            ],
        }
    return {
        "tree": None if pending else done.tree,
        "patches": [
            {
                "id": o.id,
                "verdict": o.move.verdict,
                "reason": o.move.reason,
                "carried": o.move.carried,
                "from": o.move.lane,
                "tree": o.tree,
                "difference": asdict(o.difference) if o.difference else None,
            }
            for o in done.outcomes
        ],
        "pending": pending,
        "waiting": list(done.waiting),
    }
