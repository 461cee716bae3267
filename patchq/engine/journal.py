"""The journal of a checkout: what patchq is about to do to it, kept outside it until it is done."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from patchq.cache import cache_dir, key_of, locked, write_atomically
from patchq.engine.log import CheckoutChange, Entry, Log, now
from patchq.errors import InputError
from patchq.git.checkout import open_checkout, read_head
from patchq.git.switch import STAGE, Switch, SwitchFailedError, carry_out
from patchq.interrupt import uninterrupted
from patchq.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.git.checkout import Checkout


def new_token() -> str:
    """A mark that tells one switch from any other."""
    return f"patchq {os.urandom(16).hex()}"


class Note(NamedTuple):
    """What a project's log is to say of a switch: the project's directory, and the command."""

    root: str
    what: str


class Record:
    """What patchq remembers of one checkout, under the cache."""

    def __init__(self, checkout: Checkout) -> None:
        self.directory = cache_dir() / "checkouts" / key_of(checkout.git_dir)
        self._journal = self.directory / "journal.json"
        self._origin = self.directory / "origin.json"

    def pending(self) -> tuple[Switch, Note | None] | None:
        """The switch that was begun and not finished, if there is one, and what the log is to say of it.

        Raises:
            InputError: the journal cannot be read.
        """
        if not self._journal.exists():
            return None
        try:
            data = parse_json(self._journal.read_bytes())
            return Switch.from_dict(data["switch"]), Note(**data["note"]) if data["note"] else None
        except (ValueError, TypeError, KeyError):
            raise InputError(
                f"{self._journal} is damaged.", "Look at git status in the checkout, then delete that file."
            ) from None

    def begin(self, switch: Switch, note: Note | None) -> None:
        """Write down a switch before the first file is touched."""
        self.directory.mkdir(parents=True, exist_ok=True)
        try:
            data = {"switch": switch.as_dict(), "note": note._asdict() if note else None}
            write_atomically(self._journal, json.dumps(data).encode())
        except OSError:
            self.end()
            raise

    def end(self) -> None:
        """Forget the switch."""
        self._journal.unlink(missing_ok=True)

    def remember_origin(self, branch: str, came_from: str) -> None:
        """Remember where HEAD was (a branch in full, or a commit) before patchq made `branch`."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_atomically(self._origin, json.dumps(self._origins() | {branch: came_from}).encode())

    def origin(self, branch: str | None) -> str | None:
        """Where HEAD was before patchq made `branch`."""
        return self._origins().get(branch) if branch else None

    def _origins(self) -> dict[str, Any]:
        try:
            known = parse_json(self._origin.read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return known if isinstance(known, dict) else {}


def switch_checkout(checkout: Checkout, switch: Switch, note: Note | None = None) -> None:
    """Switch a checkout under the journal.

    Args:
        checkout: the checkout, under its lock.
        switch: what to do.
        note: what the project's log is to say of it; None where the switch is part of something larger that is logged.

    Raises:
        RefusedError, EnvironmentLacksError: as `patchq.git.switch.carry_out`; the checkout is as it was.
    """
    with uninterrupted():
        Record(checkout).begin(switch, note)
        _finish(checkout, switch, note, resumed=False)


def _finish(checkout: Checkout, switch: Switch, note: Note | None, *, resumed: bool) -> None:
    """Carry a switch out, and log it; its journal stays only where it is left half done."""
    try:
        carry_out(checkout, switch, resumed=resumed)
    except SwitchFailedError as error:
        if error.restored:
            Record(checkout).end()
        raise
    if note is not None:
        change = CheckoutChange(str(checkout.top), switch)
        Log(Path(note.root)).add(Entry(switch.token, note.what, now(), checkout=change))
    Record(checkout).end()


@contextlib.contextmanager
def working_on(path: Path, what: str) -> Iterator[Checkout]:
    """Open a checkout under its lock, and first finish what a killed patchq left half done.

    Raises:
        InputError: it is not a checkout.
        EnvironmentLacksError: another patchq is at work on it.
    """
    checkout = open_checkout(path)
    with locked(f"checkout-{key_of(checkout.git_dir)}", f"{what} {checkout.top}"):
        recover(checkout)
        yield checkout


def recover(checkout: Checkout) -> bool:
    """Finish the switch that was begun and not finished, if there is one; give whether there was.

    Where the user has moved HEAD elsewhere since, the journal is dropped: git has the last word.
    """
    record = Record(checkout)
    pending = record.pending()
    if pending is None:
        return False
    switch, note = pending
    head = read_head(checkout)
    if head.commit in {switch.old_commit, switch.new_commit}:
        with uninterrupted():
            _finish(checkout, switch, note, resumed=True)
        return True
    shutil.rmtree(checkout.git_dir / STAGE, ignore_errors=True)
    lock = checkout.git_dir / "index.lock"
    if lock.exists() and lock.read_bytes() == switch.token.encode():
        lock.unlink()
    record.end()
    return True
