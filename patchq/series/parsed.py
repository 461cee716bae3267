"""Nouns that were read and found right before, kept under the cache by the bytes they came from.

Reading YAML into checked nouns takes a tenth of a second; making the same nouns again from plain data takes none. The key
holds the bytes of every file and of the modules that say what is right, so that a change of either is read anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import types
import typing
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from patchq.cache import cache_dir, write_atomically
from patchq.jsontext import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_DECIDING = ("lock.py", "moves.py", "patch.py", "resolutions.py", "rulings.py", "series.py", "yamlfile.py")
KEPT = 500
"""Readings that are remembered."""

T = TypeVar("T")


def key_of_bytes(contents: list[tuple[str, bytes]]) -> str:
    """The name that some files' contents are kept under."""
    digest = hashlib.sha256(_rules())
    for name, data in contents:
        digest.update(b"%s\0%d\0" % (name.encode("utf-8", "surrogateescape"), len(data)))
        digest.update(data)
    return digest.hexdigest()[:40]


@functools.cache
def _rules() -> bytes:
    """A hash of the modules that say what is right."""
    here = Path(__file__).parent
    return hashlib.sha256(b"\0".join((here / name).read_bytes() for name in _DECIDING)).digest()


def recall(key: str, kinds: Iterable[Any]) -> list[Any] | None:
    """The nouns that were kept under a key, the first of the first kind and so on; None where there are none, or damaged ones."""
    try:
        kept = parse_json((cache_dir() / "parsed" / f"{key}.json").read_bytes())
        return [make(kind, data) for kind, data in zip(kinds, kept)]  # noqa: B905
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def keep(key: str, nouns: list[Any]) -> None:
    """Keep nouns as plain data, the last few, where there is room: nothing is lost without."""
    with contextlib.suppress(OSError):
        _keep(key, nouns)


def _keep(key: str, nouns: list[Any]) -> None:
    directory = cache_dir() / "parsed"
    directory.mkdir(exist_ok=True)
    old = sorted(directory.glob("*.json"), key=lambda f: f.stat().st_mtime, reverse=True)
    for file in old[KEPT:]:
        file.unlink(missing_ok=True)
    data = json.dumps([asdict(noun) for noun in nouns]).encode()
    write_atomically(directory / f"{key}.json", data, lasting=False)


def read_known(path: Path, noun: type[T], *, where: str) -> T:
    """As `patchq.series.yamlfile.read_yaml`; a file of the same bytes that was read before is not checked again."""
    try:
        key = key_of_bytes([(noun.__name__, path.read_bytes())])
    except OSError:
        key = ""
    known = recall(key, [noun]) if key else None
    if known:
        return cast("T", known[0])
    from patchq.series.yamlfile import read_yaml

    found = read_yaml(path, noun, where=where)
    if key:
        keep(key, [found])
    return found


def make(kind: Any, data: Any) -> Any:
    """A noun from the plain data that `asdict` gave of it.

    Raises:
        TypeError, KeyError, ValueError: the data is of another noun.
    """
    if is_dataclass(kind):
        if not any(isinstance(value, (list, dict)) for value in data.values()):
            return cast("type", kind)(**data)
        hints = _hints(cast("type", kind))
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
