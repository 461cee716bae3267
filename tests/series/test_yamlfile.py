"""YAML as typed nouns: plain data alone, and every mistake at file:line with what is allowed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.errors import InputError
from patchq.series.yamlfile import MAX_BYTES, dump_yaml, read_yaml

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Inner:
    kind: Literal["one", "two"]
    count: int = 0


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner
    many: tuple[Inner, ...] = ()
    named: dict[str, Inner] = field(default_factory=dict)
    flag: bool = False


GOOD = "name: x\ninner:\n  kind: one\n"


def read(tmp_path: Path, text: str | bytes) -> Outer:
    path = tmp_path / "x.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_yaml(path, Outer, where="x.yaml")


def test_a_good_document(tmp_path: Path) -> None:
    text = GOOD + "# a comment\nmany:\n- kind: two\n  count: 3\nnamed: {a b: {kind: one}}\nflag: true\n"
    assert read(tmp_path, text) == Outer(
        "x", Inner("one"), (Inner("two", 3),), {"a b": Inner("one")}, flag=True
    )


def test_what_yaml_would_guess_stays_text(tmp_path: Path) -> None:
    for text in ("2026-08-11", "1.10", "1e3", "0.27.1", "12:30:45.5", ".inf"):
        assert read(tmp_path, GOOD.replace("name: x", f"name: {text}")).name == text


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (GOOD + "nmae: y\n", 4, ["unknown key 'nmae'", "Allowed here: name, inner, many, named, flag"]),
        (GOOD + "  coutn: 1\n", 4, ["unknown key 'inner.coutn'", "Allowed here: kind, count"]),
        (
            GOOD + "many:\n- kind: one\n- kind: two\n  x: 1\n",
            7,
            ["unknown key 'many.1.x'", "Allowed here: kind, count"],
        ),
        (
            GOOD + "named:\n  a:\n    kind: one\n    x: 1\n",
            7,
            ["unknown key 'named.a.x'", "Allowed here: kind, count"],
        ),
        (GOOD.replace("one", "three"), 3, ["inner.kind", "'one' or 'two'", "'three'"]),
        (GOOD + "  count: many\n", 4, ["inner.count", "valid integer", "'many'"]),
        (GOOD + "  count: 1.5\n", 4, ["inner.count", "valid integer"]),
        (GOOD + f"  count: {'9' * 5000}\n", 4, ["inner.count"]),
        (GOOD + "flag: perhaps\n", 4, ["flag", "boolean", "'perhaps'"]),
        (GOOD.replace("name: x", "name: 5"), 1, ["name", "valid string", "5"]),
        (GOOD.replace("name: x", "name:"), 1, ["name", "valid string", "None"]),
        (GOOD.replace("name: x", "name: [x]"), 1, ["name", "valid string"]),
        (GOOD + "many: text\n", 4, ["many", "valid list"]),
        (GOOD + "named: []\n", 4, ["named", "valid mapping"]),
        ("name: x\ninner: one\n", 2, ["inner"]),
        ("name: x\n", 1, ["the key 'inner' is missing", "Add it."]),
        ("name: x\ninner:\n  count: 1\n", 2, ["the key 'inner.kind' is missing"]),
        ("", 1, ["the document"]),
        ("- a\n- b\n", 1, ["the document"]),
        ("name: x\nname: y\n", 2, ["the key 'name' stands twice", "Keep one."]),
        (GOOD + "  kind: two\n", 4, ["the key 'kind' stands twice"]),
        ("a: &x [1]\nb: *x\n", 1, ["anchors and aliases are not read"]),
        ("a: 1\nb: *x\n", 2, ["anchors and aliases are not read"]),
        ("name: !!python/object/apply:os.system [id]\n", 1, ["the tag", "os.system", "is not read"]),
        ("name: !local x\n", 1, ["the tag !local is not read"]),
        (GOOD + "---\n" + GOOD, 4, ["this is not YAML", "another document"]),
        ("name: [x\n", 2, ["this is not YAML"]),
        ("name: x\n\tinner: y\n", 2, ["this is not YAML"]),
        ("name: 'x\n", 2, ["this is not YAML"]),
        ("a: b: c\n", 1, ["this is not YAML"]),
        ("name: " + "[" * 100 + "]" * 100, 1, ["nested deeper than 32"]),
        (GOOD + "<<: {name: y}\n", 4, ["unknown key '<<'"]),
        (GOOD + "? [a]\n: b\n", 4, ["unknown key"]),
        ("name: \x00\n", 1, ["this is not YAML"]),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path: Path, text: str, line: int, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert caught.value.message.startswith(f"x.yaml:{line}: ")
    for word in words:
        assert word in f"{caught.value.message} {caught.value.remedy}"
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("data", "words"),
    [(b"name: \xff\n", "x.yaml cannot be read"), (b"#" * (MAX_BYTES + 1), "x.yaml is larger than")],
)
def test_files_that_are_none_of_ours(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        read(tmp_path, data)


def test_a_bomb_is_refused_before_it_grows(tmp_path: Path) -> None:
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"] + [
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 20)
    ]
    with pytest.raises(InputError, match=r"^x\.yaml:1: anchors and aliases are not read"):
        read(tmp_path, "\n".join(rows))


def test_no_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        read_yaml(tmp_path / "none.yaml", Outer)
    with pytest.raises(InputError, match="cannot be read"):
        read_yaml(tmp_path, Outer)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


@given(data=PLAIN)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_what_is_dumped_loads_and_is_dumped_the_same(data: object) -> None:
    text = dump_yaml(data, "A header.")
    assert text.startswith("# A header.\n")
    again = yaml.safe_load(text)
    assert again == data
    assert dump_yaml(again, "A header.") == text


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused_at_a_line(tmp_path: Path, text: str) -> None:
    try:
        read(tmp_path, text)
    except InputError as error:
        assert re.match(r"x\.yaml:\d+: ", error.message)  # noqa: PT017
