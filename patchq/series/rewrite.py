"""Changing a patch.yaml in its own text: only the values that change are written anew, all else stays to the letter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class _Indented(yaml.SafeDumper):
    """Lists are indented under their key, as patch.yaml has them."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def rename_ids(text: str, ids: Mapping[str, str]) -> str:
    """A patch.yaml with some patches called otherwise: in `id`, and in `depends` and the keys of `because`, for all bases or for one.

    Args:
        text: the file's text, known to be well formed.
        ids: new ids by old.
    """
    for node in sorted(_id_nodes(text), key=lambda n: -n.start_mark.index):
        if node.value in ids:
            text = text[: node.start_mark.index] + ids[node.value] + text[node.end_mark.index :]
    return text


def mentions(text: str, patch: str) -> list[int]:
    """The lines of a patch.yaml whose prose names a patch by its id; `rename_ids` leaves these as they are."""
    known = {node.start_mark.line for node in _id_nodes(text)}
    word = re.compile(rf"(?<![\w-]){re.escape(patch)}(?![\w-])")
    return [
        number + 1
        for number, line in enumerate(text.split("\n"))
        if number not in known and word.search(line)
    ]


def with_values(text: str, values: Mapping[str, Any]) -> str:
    """A patch.yaml with the values of some top-level keys replaced; a key that is not there is added at the end."""
    for key, value in values.items():
        new = yaml.dump({key: value}, Dumper=_Indented, sort_keys=False, allow_unicode=True, width=110)
        found = _span(text, key)
        if found is None:
            text = text.rstrip("\n") + "\n" + new
        else:
            start, end = found
            text = text[:start] + new + text[end:]
    return text


def _root(text: str) -> yaml.MappingNode:
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(node, yaml.MappingNode):
        raise TypeError(text[:40])
    return node


def _id_nodes(text: str) -> Iterator[yaml.ScalarNode]:
    root = _root(text)
    yield from _ids_in(root)
    for key, value in root.value:
        if key.value == "bases" and isinstance(value, yaml.MappingNode):
            for _, here in value.value:
                if isinstance(here, yaml.MappingNode):
                    yield from _ids_in(here)


def _ids_in(node: yaml.MappingNode) -> Iterator[yaml.ScalarNode]:
    for key, value in node.value:
        if key.value == "id" and isinstance(value, yaml.ScalarNode):
            yield value
        elif key.value == "depends" and isinstance(value, yaml.SequenceNode):
            yield from (v for v in value.value if isinstance(v, yaml.ScalarNode))
        elif key.value == "because" and isinstance(value, yaml.MappingNode):
            yield from (k for k, _ in value.value if isinstance(k, yaml.ScalarNode))


def _span(text: str, key: str) -> tuple[int, int] | None:
    """Where a top-level key and its value stand; empty lines and comments behind it belong to what follows."""
    pairs = _root(text).value
    for number, (name, _) in enumerate(pairs):
        if name.value == key:
            start = name.start_mark.index
            end = pairs[number + 1][0].start_mark.index if number + 1 < len(pairs) else len(text)
            lines = text[start:end].splitlines(keepends=True)
            while len(lines) > 1 and re.match(r"\s*(#|$)", lines[-1]):
                end -= len(lines.pop())
            return start, end
    return None
