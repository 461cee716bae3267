"""YAML as a typed noun, and every mistake in it at file:line with what is allowed.

Only plain data is read: no tags, no anchors (so no bomb), one document, each key once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from patchq.errors import InputError
from patchq.series.misplaced import MisplacedError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter

MAX_BYTES = 4 * 1024 * 1024
"""A larger file is none of ours."""
MAX_DEPTH = 32

T = TypeVar("T")
_SCALARS = {"str", "int", "bool", "null"}
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_yaml(path: Path, noun: type[T], *, where: str = "") -> T:
    """Read a YAML file as `noun`, a dataclass.

    Args:
        path: the file.
        noun: the dataclass that the document must fit; unknown keys are refused.
        where: the name to use in messages; the path where empty.

    Raises:
        InputError: the file cannot be read, is not plain YAML, or does not fit; with file, line and the allowed values.
    """
    where = where or str(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(
                f"{where} is larger than {MAX_BYTES} bytes.", "This is not a file that patchq wrote."
            )
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise InputError(f"{where} does not exist.", "Restore it, or point --root at the project.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{where} cannot be read: {error}.", "Mend the file and run this again.") from None
    lines: dict[tuple[str | int, ...], int] = {}
    try:
        data = _plain(_compose(text, where), (), lines, where)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        problem = getattr(error, "problem", None) or str(error).split("\n", 1)[0]
        raise InputError(f"{where}:{line}: this is not YAML: {problem}.", "Mend that line.") from None
    return fit(data, noun, where, lines)


def fit(data: Any, noun: type[T], where: str, lines: dict[tuple[str | int, ...], int] | None = None) -> T:
    """Make a noun of plain data, or say at which line it does not fit.

    Raises:
        InputError: with the line of the offending key, what stands there and what is allowed.
    """
    from pydantic import ValidationError

    try:
        found: T = _adapter(noun).validate_python(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = first.get("ctx", {}).get("error")
        loc = (*first["loc"], *(said.keys if isinstance(said, MisplacedError) else ()))
        line = next((lines[loc[:n]] for n in range(len(loc), -1, -1) if loc[:n] in lines), 1) if lines else 1
        name = ".".join(str(part) for part in loc) or "the document"
        if first["type"] == "unexpected_keyword_argument":
            problem, remedy = f"unknown key {name!r}", f"Allowed here: {', '.join(_allowed(noun, loc[:-1]))}."
        elif first["type"] == "missing":
            problem, remedy = f"the key {name!r} is missing", "Add it."
        else:
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] in {"tuple_type", "dict_type"}:
                message = message.replace("tuple", "list").replace("dictionary", "mapping")
            value = first["input"]
            for key in said.keys if isinstance(said, MisplacedError) else ():
                value = value.get(key) if isinstance(value, dict) else value
            where_in = "" if isinstance(said, MisplacedError) else f"{name}: "
            problem, remedy = f"{where_in}{message[:1].lower()}{message[1:]}", f"It reads {value!r} now."
        raise InputError(f"{where}:{line}: {problem}.", remedy) from None
    return found


_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(noun: type[T]) -> TypeAdapter[T]:
    """What fits data to a noun; making one takes longer than using it."""
    if noun not in _adapters:
        from pydantic import ConfigDict, TypeAdapter

        noun.__pydantic_config__ = ConfigDict(extra="forbid", strict=False)  # type: ignore[attr-defined]
        _adapters[noun] = TypeAdapter(noun)
    return _adapters[noun]


def find_line(path: Path, *keys: str) -> int:
    """The line of a key in a YAML file that was read before; 1 where it is not there."""
    lines: dict[tuple[str | int, ...], int] = {}
    _plain(_compose(path.read_text("utf-8"), str(path)), (), lines, str(path))
    return next((lines[keys[:n]] for n in range(len(keys), -1, -1) if keys[:n] in lines), 1)


def dump_yaml(data: Any, header: str) -> str:
    """Plain data as YAML, the same text every time, under a comment."""
    body = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000, default_flow_style=False
    )
    return f"# {header}\n{body}"


def _compose(text: str, where: str) -> yaml.Node | None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise InputError(f"{where}:{line}: anchors and aliases are not read.", "Write the value out.")
        if tag := getattr(event, "tag", None):
            raise InputError(f"{where}:{line}: the tag {tag} is not read.", "Write plain data.")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise InputError(f"{where}:{line}: nested deeper than {MAX_DEPTH} levels.", "Write plain data.")
    node: yaml.Node | None = yaml.compose(text, Loader=_Loader)
    return node


def _plain(
    node: yaml.Node | None,
    at: tuple[str | int, ...],
    lines: dict[tuple[str | int, ...], int],
    where: str,
) -> Any:
    """The node as plain data; the line of each value is noted in `lines`."""
    if node is None:
        return None
    lines.setdefault(at, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in mapping:
                raise InputError(
                    f"{where}:{key.start_mark.line + 1}: the key {name!r} stands twice.", "Keep one."
                )
            lines[(*at, name)] = key.start_mark.line + 1
            mapping[name] = _plain(value, (*at, name), lines, where)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*at, i), lines, where) for i, item in enumerate(node.value)]
    kind = node.tag.rpartition(":")[2]
    if kind in {"int", "bool", "null"}:
        loader = _Loader("")
        try:
            return loader.construct_object(node)
        except ValueError:
            return node.value
        finally:
            loader.dispose()
    return node.value


def _allowed(noun: Any, loc: tuple[str | int, ...]) -> list[str]:
    """The field names that the noun at `loc` has."""
    import dataclasses
    import typing

    for part in loc:
        options = [noun, *typing.get_args(noun)]
        args = [a for o in options for a in (o, *typing.get_args(o))]
        if isinstance(part, str):
            owner = next(
                (a for a in args if dataclasses.is_dataclass(a) and part in typing.get_type_hints(a)), None
            )
            if owner is not None:
                noun = typing.get_type_hints(owner)[part]
                continue
        noun = next((a for a in args if dataclasses.is_dataclass(a)), noun)
    candidates = [noun, *typing.get_args(noun)]
    found = [c for c in candidates if dataclasses.is_dataclass(c)]
    return [f.name for f in dataclasses.fields(found[0])] if found else ["plain values"]
