"""What the forecast keeps under the cache: each cell by the content that it follows from, so that it never goes stale."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from patchq.cache import cache_dir, write_atomically
from patchq.engine.verdict import Text
from patchq.jsontext import parse_json


class Cells:
    """Cells on disk; a damaged one counts as absent."""

    def __init__(self) -> None:
        self._directory = cache_dir() / "forecast"
        self._directory.mkdir(exist_ok=True)

    def text(self, facts: list[Any]) -> Text | None:
        """The cell that follows from some facts, if it is kept."""
        data = self.get(facts, "text")
        if data is None:
            return None
        try:
            fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
            return Text(**fields)
        except TypeError:
            return None

    def keep_text(self, facts: list[Any], text: Text) -> None:
        """Keep a cell."""
        self.put(facts, "text", asdict(text))

    def get(self, facts: list[Any], kind: str) -> dict[str, Any] | None:
        """A document that follows from some facts, if it is kept."""
        try:
            data = parse_json(self._file(facts, kind).read_bytes())
        except (OSError, ValueError):
            return None
        return data if isinstance(data, dict) else None

    def put(self, facts: list[Any], kind: str, data: dict[str, Any]) -> None:
        """Keep a document."""
        write_atomically(self._file(facts, kind), json.dumps(data).encode(), lasting=False)

    def _file(self, facts: list[Any], kind: str) -> Path:
        key = hashlib.sha256(json.dumps([fingerprint(), *facts]).encode()).hexdigest()
        return self._directory / f"{key}.{kind}.json"


@functools.cache
def fingerprint() -> str:
    """A hash of the code that decides cells, so that no cell outlives it."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for room in ("engine", "git"):
        for file in sorted((package / room).glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()
