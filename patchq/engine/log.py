"""The log of a project: one entry for each command that changed its series or a checkout, and what stood there before.

An entry is one file under the cache, which holds all that is needed to take the command back.
"""

from __future__ import annotations

import base64
import contextlib
import datetime
import json
import os
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from patchq.cache import cache_dir, key_of, write_atomically
from patchq.errors import InputError
from patchq.git.switch import Switch
from patchq.jsontext import parse_json

if TYPE_CHECKING:
    from pathlib import Path

KEPT = 500
"""Entries of a project that are kept; older ones go, so that the log does not grow for ever."""
_RECENT = 20


class FileChange(NamedTuple):
    """A file of the project before and after, by its path relative to the project; None for no file."""

    path: str
    old: bytes | None
    new: bytes | None


class CheckoutChange(NamedTuple):
    """What was done to a checkout.

    Attributes:
        path: its top directory.
        switch: how its HEAD, index and files changed; None where the checkout was made, or taken away.
        made: HEAD's commit in a checkout that was made.
    """

    path: str
    switch: Switch | None = None
    made: str = ""


class Entry(NamedTuple):
    """One command's changes.

    Attributes:
        token: tells this entry from any other.
        what: the command, as a person would type it.
        when: the moment, in UTC.
        files: the project's files that it changed.
        checkout: the checkout that it changed.
        undoes: the number of the entry that it took back.
        number: its place in the log, from 1; 0 where it is not in it yet.
    """

    token: str
    what: str
    when: str
    files: tuple[FileChange, ...] = ()
    checkout: CheckoutChange | None = None
    undoes: int | None = None
    number: int = 0

    @property
    def damaged(self) -> bool:
        """Whether its file could not be read; it keeps its number, and nothing else is known of it."""
        return not self.token

    @property
    def paths(self) -> tuple[str, ...]:
        """The project's files that it changed."""
        return tuple(change.path for change in self.files)


def now() -> str:
    """The moment, as entries have it."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


class Log:
    """Where a project's entries are kept."""

    def __init__(self, root: Path) -> None:
        self.directory = cache_dir() / "projects" / key_of(root)
        self._entries = self.directory / "log"

    def add(self, entry: Entry) -> Entry:
        """Give an entry the next number and keep it; one that is kept already is not kept twice."""
        names = self._names()
        for name in names[-_RECENT:]:
            known = self._read(name)
            if known.token == entry.token:
                return known
        self._entries.mkdir(parents=True, exist_ok=True)
        draft = self._entries / f".{os.getpid()}.draft"
        write_atomically(draft, dump_entry(entry))
        number = int(names[-1][:-5]) + 1 if names else 1
        try:
            while True:
                try:
                    os.link(draft, self._entries / f"{number:06}.json")
                    break
                except FileExistsError:
                    number += 1
        finally:
            draft.unlink(missing_ok=True)
        for old in names[: max(0, len(names) + 1 - KEPT)]:
            (self._entries / old).unlink(missing_ok=True)
        return entry._replace(number=number)

    def entries(self) -> list[Entry]:
        """All entries, oldest first."""
        return [self._read(name) for name in self._names()]

    def _names(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return sorted(e.name for e in os.scandir(self._entries) if e.name[:-5].isdigit())
        return []

    def _read(self, name: str) -> Entry:
        try:
            return load_entry(self._entries / name)._replace(number=int(name[:-5]))
        except InputError:
            return Entry("", "damaged", "", number=int(name[:-5]))


def in_effect(entries: list[Entry]) -> dict[int, int | None]:
    """For each entry, the number of the entry that took it back; None where it stands."""
    undone: dict[int, int | None] = {}
    by_number = {e.number: e for e in entries}
    for entry in entries:
        undone[entry.number] = None
        if entry.undoes is not None:
            undone[entry.undoes] = entry.number
            target = by_number.get(entry.undoes)
            if target is not None and target.undoes is not None:
                undone[target.undoes] = None
    return undone


def dump_entry(entry: Entry) -> bytes:
    """An entry as the bytes of its file."""
    checkout = None
    if entry.checkout is not None:
        switch = entry.checkout.switch
        checkout = {
            "path": entry.checkout.path,
            "switch": switch.as_dict() if switch else None,
            "made": entry.checkout.made,
        }
    data = {
        "token": entry.token,
        "what": entry.what,
        "when": entry.when,
        "undoes": entry.undoes,
        "checkout": checkout,
        "files": [[c.path, _pack(c.old), _pack(c.new)] for c in entry.files],
    }
    return json.dumps(data).encode()


def load_entry(path: Path) -> Entry:
    """The entry in a file.

    Raises:
        InputError: it is damaged.
        FileNotFoundError: there is none.
    """
    try:
        data: dict[str, Any] = parse_json(path.read_bytes())
        found = data["checkout"]
        checkout = None
        if found is not None:
            switch = Switch.from_dict(found["switch"]) if found["switch"] else None
            checkout = CheckoutChange(found["path"], switch, found["made"])
        files = tuple(FileChange(p, _unpack(old), _unpack(new)) for p, old, new in data["files"])
        return Entry(data["token"], data["what"], data["when"], files, checkout, data["undoes"])
    except (ValueError, TypeError, KeyError, AttributeError, zlib.error):
        raise InputError(
            f"{path} is damaged.", "Delete it; what it would have undone is in version control, if anywhere."
        ) from None


def _pack(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(zlib.compress(data)).decode()


def _unpack(text: str | None) -> bytes | None:
    return None if text is None else zlib.decompress(base64.b64decode(text))
