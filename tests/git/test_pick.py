"""Applying a patch in memory, with git as the judge: the same tree as git's, or a refusal that names the hunk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.git.hunks import HunkRefusedError, Offset
from patchq.git.mail import parse_mail
from patchq.git.objects import EMPTY_TREE, EXECUTABLE, REGULAR, SYMLINK, Entry, Objects
from patchq.git.pick import Picked, pick
from tests.support.oracle import MAIL, File, Oracle, executable, link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TEXT = b"".join(b" %d\n" % i for i in range(1, 41))
"""Lines that are all different and start no definition."""


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(tmp_path_factory.mktemp("oracle") / "repo").start()


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    """A repository with nothing in it, so that no result can be looked up instead of made."""
    return Oracle(tmp_path_factory.mktemp("bare") / "repo").start()


@pytest.fixture
def objects(bare: Oracle) -> Iterator[Objects]:
    with bare.objects() as made:
        yield made


def plant(objects: Objects, files: Mapping[str, File | bytes]) -> str:
    """A tree of these files, in memory alone."""
    entries = {}
    for name, given_file in files.items():
        file = given_file if isinstance(given_file, File) else File(given_file)
        entries[name] = Entry(file.mode, objects.put("blob", file.data))
    return objects.edit_tree(EMPTY_TREE, entries)


def picked(objects: Objects, files: Mapping[str, File | bytes], diff: bytes) -> Picked:
    return pick(objects, plant(objects, files), parse_mail(MAIL + diff, "x.patch"), "x.patch")


def refusal(objects: Objects, files: Mapping[str, File | bytes], diff: bytes) -> HunkRefusedError:
    with pytest.raises(HunkRefusedError) as caught:
        picked(objects, files, diff)
    assert caught.value.message.startswith("x.patch:")
    assert caught.value.remedy
    return caught.value


CASES: dict[str, tuple[dict[str, File | bytes], dict[str, File | bytes]]] = {
    "edit": ({"f": TEXT}, {"f": TEXT.replace(b" 20\n", b" twenty\n")}),
    "binary added": ({"k": b""}, {"k": b"", "b": bytes(range(256))}),
    "binary changed": ({"b": bytes(range(256))}, {"b": bytes(range(255))}),
    "binary deleted": ({"b": bytes(range(256)), "k": b""}, {"k": b""}),
    "binary to text": ({"b": bytes(range(256))}, {"b": TEXT}),
    "mode alone": ({"f": TEXT}, {"f": executable(TEXT)}),
    "mode and text": ({"f": executable(TEXT)}, {"f": TEXT + b" 41\n"}),
    "symlink added": ({"k": b""}, {"k": b"", "l": link(b"k")}),
    "symlink changed": ({"l": link(b"k")}, {"l": link(b"../k")}),
    "symlink deleted": ({"l": link(b"k"), "k": b""}, {"k": b""}),
    "file becomes symlink": ({"f": TEXT}, {"f": link(b"elsewhere")}),
    "symlink becomes file": ({"f": link(b"elsewhere")}, {"f": TEXT}),
    "new executable": ({"k": b""}, {"k": b"", "run": executable(b"#!/bin/sh\n")}),
    "crlf": (
        {"f": TEXT.replace(b"\n", b"\r\n")},
        {"f": TEXT.replace(b" 9\n", b" nine\n").replace(b"\n", b"\r\n")},
    ),
    "crlf to lf": ({"f": TEXT.replace(b"\n", b"\r\n")}, {"f": TEXT}),
    "mixed endings": ({"f": b"a\r\nb\nc\rd\n\r\n"}, {"f": b"a\r\nB\nc\rd\n\n"}),
    "no final newline": ({"f": b"a\nb"}, {"f": b"a\nc"}),
    "final newline added": ({"f": b"a\nb"}, {"f": b"a\nb\n"}),
    "final newline taken": ({"f": b"a\nb\n"}, {"f": b"a\nb"}),
    "latin-1 and nbsp": ({"f": b"caf\xe9\n\xa0x\nz\n"}, {"f": b"caf\xe9s\n\xa0y\nz\n"}),
    "empty file added": ({"k": b"x"}, {"k": b"x", "e": b""}),
    "empty file deleted": ({"k": b"x", "e": b""}, {"k": b"x"}),
    "emptied": ({"f": TEXT}, {"f": b""}),
    "filled": ({"f": b""}, {"f": TEXT}),
    "everything goes": ({"f": TEXT, "d/e/f": b"x"}, {}),
    "file becomes directory": ({"f": TEXT}, {"f/inner": TEXT}),
    "directory becomes file": ({"f/inner": TEXT, "f/other": b"x"}, {"f": TEXT}),
    "paths": (
        {"a b": TEXT, 'q"q': b"1\n", "t\tt": b"1\n", "n\nn": b"1\n", "\u00e4": b"1\n", "b\\b": b"1\n"},
        {
            "a b": TEXT + b" x\n",
            'q"q': b"2\n",
            "t\tt": b"2\n",
            "n\nn": b"2\n",
            "\u00e4": b"2\n",
            "c\\c": b"1\n",
        },
    ),
    "lines that look like a patch": (
        {"f": b"-- \n--- a/f\n+++ b/f\n@@ -1 +1 @@\ndiff --git a/f b/f\n"},
        {"f": b"-- \n-- \n+++ b/f\n@@ -1 +1 @@\n"},
    ),
    "list items go": ({"f": b"x\n- a\n- \n- b\ny\n"}, {"f": b"x\ny\n"}),
}


@pytest.mark.parametrize("quote", ["true", "false"])
@pytest.mark.parametrize("name", CASES)
def test_kinds_of_content(git: Oracle, objects: Objects, name: str, quote: str) -> None:
    old, new = CASES[name]
    git.git("config", "core.quotepath", quote)
    before, after = git.tree(old), git.tree(new)
    diff = git.diff(before, after)
    assert git.applied(before, diff) == after
    done = picked(objects, old, diff)
    assert (done.tree, done.offsets) == (after, ())
    assert objects.edit_tree(before, done.changes) == after


@pytest.mark.parametrize("name", CASES)
def test_taking_a_patch_back_is_its_reverse(git: Oracle, objects: Objects, name: str) -> None:
    old, new = CASES[name]
    assert picked(objects, new, git.diff(git.tree(new), git.tree(old))).tree == git.tree(old)


LINES = st.sampled_from(
    [
        b"",
        b"x",
        b"  y",
        b"def f():",
        b"    return",
        b"}",
        b"\xe9",
        b"\xa0",
        b"\t",
        b"- ",
        b"-- ",
        b"@@",
        b"\\ no",
    ]
)
ENDS = st.sampled_from([b"\n", b"\n", b"\n", b"\r\n"])


@st.composite
def contents(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=40))
    text = b"".join(line + draw(ENDS) for line in draw(st.lists(LINES, max_size=30)))
    return text + draw(st.sampled_from([b"", b"", b"tail"]))


@st.composite
def edits(draw: st.DrawFn) -> tuple[bytes, bytes]:
    """A content and the same with some lines changed."""
    old = draw(contents())
    lines = old.splitlines(keepends=True)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines)))
        lines[at : at + draw(st.integers(0, 3))] = [
            draw(LINES) + draw(ENDS) for _ in range(draw(st.integers(0, 3)))
        ]
    return old, b"".join(lines)


MODES = st.sampled_from([REGULAR, REGULAR, EXECUTABLE, SYMLINK])
PATHS = ["plain.py", "a b", 'q"', "t\tt", "n\nn", "\u00e4/\u00df", "back\\slash", "d/x", "d/y"]


def checked(mode: int, data: bytes) -> File:
    """A link's target has no NUL and is not empty."""
    return File(data.replace(b"\0", b"0") or b"x", mode) if mode == SYMLINK else File(data, mode)


@given(
    rows=st.lists(
        st.tuples(edits(), MODES, MODES, st.sampled_from("====+-")), min_size=1, max_size=len(PATHS)
    )
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_git_diffs_is_applied_as_git_applies_it(
    git: Oracle, bare: Oracle, rows: list[tuple[tuple[bytes, bytes], int, int, str]]
) -> None:
    old: dict[str, File | bytes] = {}
    new: dict[str, File | bytes] = {}
    for path, ((one, two), old_mode, new_mode, kind) in zip(PATHS, rows, strict=False):
        if kind != "+":
            old[path] = checked(old_mode, one)
        if kind != "-":
            new[path] = checked(new_mode, two)
    before, after = git.tree(old), git.tree(new)
    diff = git.diff(before, after)
    if not diff:
        assert before == after
        return
    with bare.objects() as objects:
        done = picked(objects, old, diff)
    assert (done.tree, done.offsets) == (after, ())


@given(
    at=st.integers(0, 39),
    size=st.integers(0, 3),
    into=st.integers(0, 3),
    above=st.integers(0, 12),
    below=st.integers(0, 3),
    cut=st.integers(0, 6),
)
@settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_a_file_that_drifted(
    git: Oracle, bare: Oracle, at: int, size: int, into: int, above: int, below: int, cut: int
) -> None:
    """Lines came or went elsewhere: where git applies the patch, so do we, to the same tree, and say by how much."""
    lines = TEXT.splitlines(keepends=True)
    changed = [*lines[:at], *(b" new %d\n" % i for i in range(into)), *lines[at + size :]]
    drift = [b" above %d\n" % i for i in range(above)]
    tail = [b" below %d\n" % i for i in range(below)]
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": b"".join(changed)}))
    if not diff:
        return
    drifted = {"f": b"".join([*drift, *lines[cut:], *tail])}
    judged = git.applied(git.tree(drifted), diff)
    with bare.objects() as objects:
        try:
            done = picked(objects, drifted, diff)
        except HunkRefusedError as error:
            assert judged is None, error.message  # noqa: PT017
            return
    assert done.tree == git.tree({"f": b"".join([*drift, *changed[cut:], *tail])})
    assert judged in {None, done.tree}
    assert {o.lines for o in done.offsets} == ({above - cut} - {0})


def test_an_offset_is_reported_by_hunk(git: Oracle, objects: Objects) -> None:
    new = TEXT.replace(b" 10\n", b" ten\n").replace(b" 30\n", b" thirty\n")
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": new}))
    drifted = TEXT.replace(b" 20\n", b" 20\n a\n b\n")
    done = picked(objects, {"f": drifted}, diff)
    assert done.offsets == (Offset("f", 2, 2),)
    assert (
        done.tree
        == git.tree({"f": new.replace(b" 20\n", b" 20\n a\n b\n")})
        == git.applied(git.tree({"f": drifted}), diff)
    )


def test_fuzz_is_refused_and_the_hunk_named(git: Oracle, objects: Objects) -> None:
    new = TEXT.replace(b" 10\n", b" ten\n").replace(b" 30\n", b" thirty\n")
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": new}))
    error = refusal(objects, {"f": TEXT.replace(b" 33\n", b" other\n")}, diff)
    assert "hunk 2 of f expects '33' at line 33 and finds 'other'" in error.message
    assert error.message.startswith("x.patch:21:")
    assert (error.files, error.missing) == (("f",), False)


@pytest.mark.parametrize(
    ("have", "want"),
    [
        (b" 9\r\n", r"finds ' 9\r\n'"),
        (b" 9 \n", r"finds ' 9 \n'"),
        (b"\xa09\n", "and finds"),
        (b"\t9\n", r"finds '\t9\n'"),
    ],
)
def test_blanks_and_line_ends_are_never_ignored(
    git: Oracle, objects: Objects, have: bytes, want: str
) -> None:
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": TEXT.replace(b" 10\n", b" ten\n")}))
    assert want in refusal(objects, {"f": TEXT.replace(b" 9\n", have)}, diff).message


BLOCK = b"    a = 1\n    b = 2\n    c = 3\n    d = 4\n    e = 5\n    return a\n\n\n"
TWINS = b"def one():\n" + BLOCK + b"def two():\n" + BLOCK


def test_an_identical_block_in_another_function_is_never_taken(git: Oracle, objects: Objects) -> None:
    """The target function is gone and its twin remains: git lands in the twin, patchq refuses."""
    new = b"def one():\n" + BLOCK.replace(b"d = 4", b"d = 40") + b"def two():\n" + BLOCK
    diff = git.diff(git.tree({"f.py": TWINS}), git.tree({"f.py": new}))
    left = {"f.py": b"def two():\n" + BLOCK}
    assert git.applied(git.tree(left), diff) is not None
    assert "is not in 'def one():'" in refusal(objects, left, diff).message


def test_the_next_identical_block_is_never_taken(git: Oracle, objects: Objects) -> None:
    """Upstream put a block of lines above, so that a twin stands exactly where the right one was: git lands there."""
    old = b"table:\n" + b" - x\n - y\n - z\n - w\n - v\n" * 4
    lines = old.splitlines(keepends=True)
    lines[13] = b" - Z\n"
    diff = git.diff(git.tree({"f": old}), git.tree({"f": b"".join(lines)}))
    drifted = {"f": old.replace(b"table:\n", b"table:\n" + b" - x\n - y\n - z\n - w\n - v\n")}
    assert git.applied(git.tree(drifted), diff) is not None
    assert "which one is meant cannot be told" in refusal(objects, drifted, diff).message


def test_among_identical_blocks_the_named_line_is_right_in_the_very_file(
    git: Oracle, objects: Objects
) -> None:
    old = b"table:\n" + b" - x\n - y\n - z\n - w\n - v\n" * 4
    lines = old.splitlines(keepends=True)
    lines[13] = b" - Z\n"
    new = b"".join(lines)
    diff = git.diff(git.tree({"f": old}), git.tree({"f": new}))
    assert picked(objects, {"f": old}, diff).tree == git.tree({"f": new})


def test_headings_that_a_diff_driver_wrote(git: Oracle, objects: Objects) -> None:
    """Somebody whose git has diff=python names methods behind @@; in the very file that is no reason to refuse."""
    old = b"class A:\n    def f(self):\n" + b"".join(b"        %d\n" % i for i in range(9))
    new = old.replace(b"        8\n", b"        eight\n")
    plain = git.diff(git.tree({"f.py": old}), git.tree({"f.py": new}))
    assert b"@@ class A:" in plain
    done = picked(objects, {"f.py": old}, plain.replace(b"@@ class A:", b"@@     def f(self):"))
    assert done.tree == git.tree({"f.py": new})


def test_an_insertion_without_context_is_refused_elsewhere(git: Oracle, objects: Objects) -> None:
    new = TEXT.replace(b" 20\n", b" 20\n new\n")
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": new}), "-p", "--full-index", "-U0")
    assert picked(objects, {"f": TEXT}, diff).tree == git.tree({"f": new})
    assert "has no context" in refusal(objects, {"f": b" drift\n" + TEXT}, diff).message


@pytest.mark.parametrize(
    ("old", "new", "have", "words", "missing"),
    [
        ({"f": TEXT}, {"f": b""}, {}, "f is not in the tree", True),
        ({"f": TEXT}, {"f": TEXT + b" x\n"}, {"f/inner": b""}, "f is not in the tree", True),
        ({}, {"f": b"x\n"}, {"f": b"y\n"}, "adds f, which is there already", True),
        ({}, {"f": b""}, {"f": b""}, "adds f, which is there already", True),
        ({}, {"f": b"x\n"}, {"f/inner": b""}, "a file and a directory would both be called 'f'", False),
        ({}, {"f/g": b"x\n"}, {"f": b""}, "a file and a directory would both be called 'f'", False),
        (
            {"f": TEXT},
            {"f": executable(TEXT)},
            {"f": executable(TEXT)},
            "has mode 100755, the patch expects 100644",
            False,
        ),
        ({"f": TEXT}, {"f": TEXT + b" x\n"}, {"f": link(b"x")}, "has mode 120000", False),
        ({"b": b"\0one"}, {"b": b"\0two"}, {"b": b"\0three"}, "binary file b is not the one", False),
        ({"b": b"\0one"}, {}, {"b": b"\0three"}, "b, which the patch deletes, is not the file", False),
        ({"e": b""}, {}, {"e": b"no longer empty\n"}, "e, which the patch deletes, is not the file", False),
        ({"f": TEXT}, {}, {"f": TEXT + b" more\n"}, "hunk 1 of f", False),
        ({"f": TEXT}, {}, {"f": b" more\n" + TEXT}, "hunk 1 of f", False),
        (
            {"f": b"a\n"},
            {"f": b"a\nb\n"},
            {"f": b"a\nc\n"},
            "hunk 1 of f must stand at the end of the file",
            False,
        ),
        ({"f": b""}, {"f": b"x\n"}, {"f": b"y\n"}, "adds a whole file where there is one", False),
    ],
)
def test_what_does_not_fit_is_refused(
    git: Oracle,
    objects: Objects,
    old: dict[str, bytes],
    new: dict[str, bytes],
    have: dict[str, bytes],
    words: str,
    missing: bool,
) -> None:
    diff = git.diff(git.tree(old), git.tree(new))
    error = refusal(objects, have, diff)
    assert words in error.message
    assert error.missing is missing
    assert error.files


def test_a_deletion_that_leaves_lines_is_refused(objects: Objects) -> None:
    diff = b"diff --git a/f b/f\ndeleted file mode 100644\nindex 1111111..0000000\n--- a/f\n+++ /dev/null\n@@ -2,1 +1,0 @@\n-two\n"
    assert "which the patch deletes" in refusal(objects, {"f": b"one\ntwo\n"}, diff).message


@pytest.mark.parametrize("kind", ["rename", "copy"])
def test_a_rename_never_lands_on_a_file(objects: Objects, kind: str) -> None:
    diff = f"diff --git a/f b/g\nsimilarity index 100%\n{kind} from f\n{kind} to g\n".encode()
    assert "adds g, which is there already" in refusal(objects, {"f": TEXT, "g": b"precious\n"}, diff).message
    done = picked(objects, {"f": TEXT}, diff)
    assert set(done.changes) == ({"f", "g"} if kind == "rename" else {"g"})


def test_two_files_change_names(git: Oracle, objects: Objects) -> None:
    old = {"f": TEXT, "g": b"\0" + TEXT}
    new = {"f": old["g"], "g": old["f"]}
    diff = b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\ndiff --git a/g b/f\nsimilarity index 100%\nrename from g\nrename to f\n"
    assert git.applied(git.tree(old), diff) == git.tree(new)
    assert picked(objects, old, diff).tree == git.tree(new)


def test_a_hand_edited_body_is_refused_on_the_very_file_it_names(git: Oracle, objects: Objects) -> None:
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": TEXT.replace(b" 20\n", b" twenty\n")}))
    edited = diff.replace(b"+ twenty", b"+ TWENTY")
    error = refusal(objects, {"f": TEXT}, edited)
    assert "does not give the result it names" in error.message
    assert "patchq refresh" in error.remedy


def test_a_truncated_body_is_refused_where_git_accepts_it(git: Oracle, objects: Objects) -> None:
    """Cut after a whole hunk, it is a well-formed patch; the result that its index line names is not reached."""
    new = TEXT.replace(b" 10\n", b" ten\n").replace(b" 30\n", b" thirty\n")
    diff = git.diff(git.tree({"f": TEXT}), git.tree({"f": new}))
    cut = diff[: diff.index(b"@@ -27")]
    assert git.applied(git.tree({"f": TEXT}), cut) is not None
    assert "does not give the result it names" in refusal(objects, {"f": TEXT}, cut).message


def test_a_broken_delta_is_refused(git: Oracle, objects: Objects) -> None:
    old, new = b"\0" + TEXT * 40, b"\0" + TEXT * 40 + b"x"
    diff = git.diff(git.tree({"b": old}), git.tree({"b": new}))
    assert b"\ndelta " in diff
    other = diff.replace(
        git.says("hash-object", "--stdin", stdin=old).encode(),
        git.says("hash-object", "--stdin", stdin=b"\0").encode(),
    )
    assert "binary patch of b is broken: base size differs" in refusal(objects, {"b": b"\0"}, other).message


def test_a_submodule_is_refused(objects: Objects) -> None:
    oid = "1" * 40
    diff = f"diff --git a/s b/s\nnew file mode 160000\nindex {'0' * 40}..{oid}\n--- /dev/null\n+++ b/s\n@@ -0,0 +1 @@\n+Subproject commit {oid}\n"
    assert "s is a submodule" in refusal(objects, {}, diff.encode()).message


def test_nothing_is_left_in_the_database_by_a_name_alone(objects: Objects) -> None:
    """What a patch writes is told path by path, so that a stack can be put on another tree."""
    done = picked(
        objects,
        {"f": TEXT, "k": b"k"},
        b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n",
    )
    assert done.changes["f"] is None
    entry = done.changes["g"]
    assert entry is not None
    assert objects.blob(entry.oid) == TEXT
    assert os.fsdecode(b"k") in dict(objects.walk(done.tree))
