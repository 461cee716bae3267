"""Nouns that were read and found right before, kept under the cache by the bytes they came from.

Reading YAML into checked nouns takes a tenth of a second; making the same nouns again from plain data takes none. The key
holds the bytes of every file and of the modules that say what is right, so that a change of either is read anew.
"""

from __future__ import annotations

import functools
import hashlib
import json
import types
import typing
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any

from patchq.cache import cache_dir, write_atomically

_DECIDING = ("lock.py", "patch.py", "series.py", "yamlfile.py")
KEPT = 50
"""Series that are remembered."""


def key_of_bytes(contents: list[tuple[str, bytes]]) -> str:
    """The name that some files' contents are kept under."""
    digest = hashlib.sha256()
    here = Path(__file__).parent
    for name, data in [*((n, (here / n).read_bytes()) for n in _DECIDING), *contents]:
        digest.update(b"%s\0%d\0" % (name.encode("utf-8", "surrogateescape"), len(data)))
        digest.update(data)
    return digest.hexdigest()[:40]


def recall(key: str) -> Any | None:
    """What was kept under a key, or None."""
    try:
        return json.loads((cache_dir() / "parsed" / f"{key}.json").read_bytes())
    except (OSError, ValueError):
        return None


def keep(key: str, nouns: list[Any]) -> None:
    """Keep nouns as plain data; the last few are kept."""
    directory = cache_dir() / "parsed"
    directory.mkdir(exist_ok=True)
    old = sorted(directory.glob("*.json"), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in old[KEPT:]:
        file.unlink(missing_ok=True)
    write_atomically(directory / f"{key}.json", json.dumps([asdict(noun) for noun in nouns]).encode())


def make(kind: Any, data: Any) -> Any:
    """A noun from the plain data that `asdict` gave of it.

    Raises:
        TypeError, KeyError, ValueError: the data is of another noun.
    """
    if is_dataclass(kind):
        hints = _hints(typing.cast("type", kind))
        return kind(**{f.name: make(hints[f.name], data[f.name]) for f in fields(kind)})  # type: ignore[operator]
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is tuple:
        return tuple(make(arguments[0], item) for item in data)
    if origin is dict:
        return {key: make(arguments[1], value) for key, value in data.items()}
    if origin in {typing.Union, types.UnionType} and data is not None:
        return make(next(a for a in arguments if a is not type(None)), data)
    return data


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)
