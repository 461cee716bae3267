"""Changing a project as a whole: its lock, its journal, and the entry of its log that each change becomes.

The journal is the entry itself, written down before the first file is touched and moved into the log after the last:
a command that is killed in between is finished by the next one.
"""

from __future__ import annotations

import contextlib
import glob
import os
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import key_of, locked, write_atomically
from patchq.engine.journal import switch_checkout, working_on
from patchq.engine.log import CheckoutChange, Entry, FileChange, Log, dump_entry, load_entry, now
from patchq.errors import EnvironmentLacksError, InputError, PatchqError, RefusedError
from patchq.git.checkout import read_head
from patchq.interrupt import uninterrupted
from patchq.series.series import SERIES_NAME
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from patchq.git.checkout import Checkout
    from patchq.git.switch import Switch


class Project:
    """A project that this process alone may change."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = Log(root)
        self._pending = self.log.directory / "pending.json"

    @property
    def interrupted(self) -> bool:
        """Whether a change was begun and not finished."""
        return self._pending.exists()

    def commit(
        self,
        what: str,
        files: Mapping[str, bytes | None],
        *,
        moved: tuple[Checkout, Switch] | None = None,
        undoes: int | None = None,
    ) -> Entry | None:
        """Change files of the project, and a checkout with them: all or nothing, and one entry of the log.

        Args:
            what: the command, as a person would type it.
            files: what shall stand at each path, relative to the project; None for no file.
            moved: a checkout, locked by the caller, and what to do to it.
            undoes: the entry that this takes back.

        Returns:
            The entry; None where everything stands there already.

        Raises:
            EnvironmentLacksError: a file cannot be written; all is as it was.
            PatchqError: the checkout cannot be switched; all is as it was.
        """
        changes = [FileChange(path, self.read(path), data) for path, data in files.items()]
        changes = [c for c in changes if c.old != c.new]
        if not changes and moved is None and undoes is None:
            return None
        checkout = CheckoutChange(str(moved[0].top), moved[1]) if moved else None
        entry = Entry(os.urandom(16).hex(), what, now(), tuple(changes), checkout, undoes)
        self.log.directory.mkdir(parents=True, exist_ok=True)
        with uninterrupted():
            try:
                write_atomically(self._pending, dump_entry(entry))
                self._write(entry.files)
                if moved is not None:
                    switch_checkout(*moved)
            except (OSError, PatchqError) as error:
                self._take_back(entry, error)
                raise
            return self._close(entry)

    def read(self, path: str) -> bytes | None:
        """A file of the project now; None where there is none."""
        try:
            return (self.root / path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def recover(self) -> None:
        """Finish the change that a killed patchq left half done, if there is one.

        Raises:
            RefusedError: a file that it changes has been changed by hand since.
        """
        try:
            entry = load_entry(self._pending)
        except FileNotFoundError:
            return
        strange = [c.path for c in entry.files if self.read(c.path) not in (c.old, c.new)]
        if strange:
            raise RefusedError(
                f"{listed(strange)} was changed by hand after `{entry.what}` was cut off half way.",
                f"Put back what stood there before or after it (git checkout), or delete {self._pending}.",
                files=tuple(strange),
            )
        self._write(entry.files)
        if entry.checkout is not None and entry.checkout.switch is not None:
            _finish_checkout(entry.checkout.path, entry.checkout.switch)
        self._close(entry)

    def _write(self, changes: Iterable[FileChange]) -> None:
        for change in changes:
            path = self.root / change.path
            if path.parent.is_dir():
                _sweep(path)
            if change.new is None:
                path.unlink(missing_ok=True)
                _drop_empty(path.parent, self.root / SERIES_NAME)
            elif self.read(change.path) != change.new:
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, change.new)

    def _close(self, entry: Entry) -> Entry:
        """Move the journal into the log: the change is done."""
        kept = self.log.add(entry)
        self._pending.unlink(missing_ok=True)
        return kept

    def _take_back(self, entry: Entry, error: Exception) -> None:
        """Put back what was written; the journal stays only where that fails too."""
        try:
            self._write(FileChange(c.path, c.new, c.old) for c in entry.files)
            self._pending.unlink(missing_ok=True)
        except OSError:
            raise EnvironmentLacksError(
                f"{self.root} cannot be written: {error}.",
                "Make room or make it writable; the next patchq command finishes what was begun.",
            ) from None
        if isinstance(error, OSError):
            raise EnvironmentLacksError(
                f"{error.filename or self.root} cannot be written: {error.strerror or error}.",
                "Make room or make it writable, then run this again; nothing was changed.",
            ) from None


@contextlib.contextmanager
def changing(root: Path, what: str) -> Iterator[Project]:
    """Hold a project's lock while changing it, and first finish what a killed patchq left half done.

    Raises:
        EnvironmentLacksError: another patchq is changing it.
    """
    with locked(f"project-{key_of(root)}", f"{what} in {root}"):
        project = Project(root)
        project.recover()
        yield project


def recover_project(root: Path) -> None:
    """Finish what a killed patchq left half done in a project, if anything.

    Raises:
        EnvironmentLacksError: it was not killed, and is at work.
        RefusedError: it cannot be finished, as a file was changed by hand since.
    """
    if Project(root).interrupted:
        with changing(root, "finishing a change"):
            pass


def _finish_checkout(path: str, switch: Switch) -> None:
    """Switch a checkout if it still stands where it stood; where the user has moved on, git has the last word."""
    with contextlib.suppress(InputError), working_on(Path(path), "switching") as checkout:
        if read_head(checkout).commit == switch.old_commit:
            switch_checkout(checkout, switch)


def _sweep(path: Path) -> None:
    """Take away what a killed `write_atomically` of this file left."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        left.unlink(missing_ok=True)


def _drop_empty(directory: Path, top: Path) -> None:
    while directory != top and top in directory.parents:
        try:
            directory.rmdir()
        except OSError:
            return
        directory = directory.parent
