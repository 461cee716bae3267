"""What a forecast stands on: a base as it sees it, and a patch held against a tree over one."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.git.commits import read_commit

if TYPE_CHECKING:
    from patchq.engine.home import Home
    from patchq.engine.placing import Placed
    from patchq.engine.signs import Signs
    from patchq.engine.verdict import Text
    from patchq.git.objects import Objects
    from patchq.series.lock import Base, Source


@dataclass(frozen=True)
class Ground:
    """A base as the forecast sees it.

    Attributes:
        name: its name.
        tree: its tree.
        commit: its commit in the store.
        date: when it was made, as YYYY-MM-DD; empty where nobody knows.
        source: where it came from.
    """

    name: str
    tree: str
    commit: str
    date: str
    source: Source

    @staticmethod
    def at(objects: Objects, name: str, commit: str, base: Base) -> Ground:
        """The base that a commit of the store is; a git source's commit says itself when it was made."""
        known = read_commit(objects, commit)
        date = base.date
        if not date and base.source.kind in {"git", "clone"}:
            made = datetime.datetime.fromtimestamp(known.author.seconds, datetime.timezone.utc)
            date = made.date().isoformat()
        return Ground(name, known.tree, commit, date, base.source)


@dataclass(frozen=True)
class Attempt:
    """A patch held against a tree in memory.

    Attributes:
        home: the patch where it was made.
        tree: what it was held against.
        signs: what of it is there.
        placed: how the rest goes on; None where all of it is there.
        text: what the text says, all in all.
    """

    home: Home
    tree: str
    signs: Signs
    placed: Placed | None
    text: Text

    @property
    def result(self) -> str:
        """The tree with the patch; the same tree where it is there already, or does not go on."""
        return self.text.tree or self.tree
