"""What was run already: one small file a result, named by everything that the result depends on."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir, write_atomically
from patchq.jsontext import parse_json
from patchq.testing import driver, warm
from patchq.testing.outcome import TRANSIENT, Outcome, from_dict

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchq.testing.runner import Group
    from patchq.testing.schedule import Want

FORMAT = 1
"""Raised when outcomes are read or judged in another way."""
READ = 1000
"""Entries that are read, the newest, for how long tests took."""
Past = dict[tuple[tuple[str, ...], str, str], dict[str, float]]
"""Seconds by tests, gate and target, and by tree."""


class Ledger:
    """The results of this cache.

    Args:
        toolchain: the environment's key.
        isolation: how runs are shut in.
        fresh: find nothing; what is run is still remembered.
    """

    def __init__(self, toolchain: str, isolation: str, *, fresh: bool) -> None:
        self._directory = cache_dir() / "ledger"
        self._directory.mkdir(exist_ok=True)
        scripts = [Path(driver.__file__).read_bytes(), Path(warm.__file__).read_bytes()]
        how = hashlib.sha256(b"".join(scripts)).hexdigest()
        self._common = [FORMAT, how, toolchain, isolation]
        self._fresh = fresh
        self._past: Past | None = None

    def _path(self, tree: str, group: Group, gate: str, target: str) -> Path:
        parts = [*self._common, tree, list(group.tests), group.limit, gate, target]
        return self._directory / f"{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}.json"

    def find(self, tree: str, group: Group, gate: str, target: str) -> Outcome | None:
        """The outcome of these tests on this tree, if it is known."""
        if self._fresh:
            return None
        try:
            return from_dict(parse_json(self._path(tree, group, gate, target).read_bytes())["outcome"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, tree: str, group: Group, gate: str, target: str, outcome: Outcome) -> None:
        """Remember an outcome, unless the machine's load may have had a part in it."""
        if outcome.problem in TRANSIENT:
            return
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        document = {"tree": tree, "tests": group.tests, "gate": gate, "target": target, "date": now}
        data = json.dumps({**document, "outcome": outcome.as_dict()}).encode()
        write_atomically(self._path(tree, group, gate, target), data)

    def took(self, want: Want) -> float | None:
        """Seconds that these tests took when they were run before: on that tree, else the most on any; None where never."""
        if self._past is None:
            self._past = _read_past(self._directory)
        times = self._past.get((want.group.tests, want.gate, want.target), {})
        return times.get(want.tree, max(times.values(), default=None))

    def seams(
        self, version: int, without: str, after: str, check: Callable[[], list[dict[str, Any]]]
    ) -> tuple[dict[str, Any], ...]:
        """What the seam check found between two trees, checked now if it is not known."""
        name = hashlib.sha256(json.dumps(["seam", version, without, after]).encode()).hexdigest()
        path = self._directory / f"{name}.json"
        if not self._fresh:
            try:
                return tuple(parse_json(path.read_bytes())["seams"])
            except (OSError, ValueError, KeyError, TypeError):
                pass
        found = check()
        write_atomically(path, json.dumps({"without": without, "after": after, "seams": found}).encode())
        return tuple(found)


def _read_past(directory: Path) -> Past:
    """How long tests took, by the entries of a ledger; one that is damaged says nothing."""
    past: Past = {}
    entries = sorted(directory.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    for path in entries[-READ:]:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            document = json.loads(path.read_bytes())
            key = (tuple(document["tests"]), document["gate"], document["target"])
            past.setdefault(key, {})[document["tree"]] = float(document["outcome"]["seconds"])
    return past
