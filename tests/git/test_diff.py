"""Reading git's diffs: what git writes is read back whole, and what it would not write is refused at file:line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from patchq.errors import InputError
from patchq.git.binary import apply_delta
from patchq.git.diff import parse_diff
from patchq.git.lines import split_lines
from patchq.git.objects import EXECUTABLE, REGULAR, SYMLINK
from patchq.git.paths import check_path
from tests.support.oracle import File, Oracle, executable, link

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TEXT = b"".join(b"%d\n" % i for i in range(1, 21))
EDITED = TEXT.replace(b"10\n", b"ten\n")
NAMES = [
    "plain.py",
    "with space.py",
    "trailing space ",
    "tab\there",
    'quo"te',
    "back\\slash",
    "new\nline",
    "\u00e4\u00df/\u6f22.py",
    "latin-\udce9",
    "a/b/a/b",
    "- dash",
]


@pytest.fixture
def git(tmp_path: Path) -> Oracle:
    return Oracle(tmp_path / "repo").start()


def parsed(git: Oracle, old: Mapping[str, File | bytes], new: Mapping[str, File | bytes], *options: str):
    return parse_diff(git.diff(git.tree(old), git.tree(new), *options), "x.patch")


def refused(data: bytes, *words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_diff(data, "x.patch")
    for word in words:
        assert word in caught.value.message
    assert caught.value.remedy


@pytest.mark.parametrize("quote", ["true", "false"])
@pytest.mark.parametrize("name", NAMES)
def test_paths_are_read_as_git_writes_them(git: Oracle, name: str, quote: str) -> None:
    git.git("config", "core.quotepath", quote)
    for old, new in [
        ({name: TEXT}, {name: EDITED}),
        ({}, {name: b""}),
        ({name: b"x"}, {name: executable(b"x")}),
    ]:
        (change,) = parsed(git, old, new)
        assert change.paths == (name,)
    (change,) = parsed(git, {name: b"gone"}, {})
    assert (change.old_path, change.new_path) == (name, None)


@pytest.mark.parametrize("name", NAMES)
def test_renames_and_copies_of_other_peoples_patches(git: Oracle, name: str) -> None:
    options = ("-p", "--full-index", "--binary", "-M", "-C", "--find-copies-harder")
    (change,) = parsed(git, {"old": TEXT}, {name: TEXT}, *options)
    assert (change.old_path, change.new_path, change.copied, change.gone) == ("old", name, False, "old")
    (change,) = parsed(git, {"old": TEXT}, {"old": TEXT, name: EDITED}, *options)
    assert (change.old_path, change.new_path, change.copied, change.gone) == ("old", name, True, None)
    assert len(change.hunks) == 1


def test_modes(git: Oracle) -> None:
    old = {"a": b"same", "b": TEXT, "l": link(b"a"), "t": b"file"}
    new = {
        "a": executable(b"same"),
        "b": executable(EDITED),
        "l": link(b"b"),
        "n": executable(b"x\n"),
        "t": link(b"a"),
    }
    changes = {(c.path, c.new_path is None): c for c in parsed(git, old, new)}
    assert (changes["a", False].old_mode, changes["a", False].new_mode) == (REGULAR, EXECUTABLE)
    assert changes["a", False].hunks == ()
    assert (changes["b", False].old_mode, changes["b", False].new_mode) == (REGULAR, EXECUTABLE)
    assert changes["l", False].old_mode == SYMLINK
    assert (changes["n", False].old_path, changes["n", False].new_mode) == (None, EXECUTABLE)
    assert (changes["t", True].old_mode, changes["t", False].new_mode) == (REGULAR, SYMLINK)


def test_a_hunk_is_read_whole(git: Oracle) -> None:
    old = b"def f():\n" + b"".join(b"    %d\n" % i for i in range(9)) + b"    end"
    new = old.replace(b"    8\n", b"    8\r\n").replace(b"    end", b"    end\n")
    (change,) = parsed(git, {"f.py": old}, {"f.py": new})
    (hunk,) = change.hunks
    assert (hunk.line, hunk.old_start, hunk.new_start, hunk.heading) == (5, 7, 7, b"def f():")
    assert hunk.old == (b"    5\n", b"    6\n", b"    7\n", b"    8\n", b"    end")
    assert hunk.new == (b"    5\n", b"    6\n", b"    7\n", b"    8\r\n", b"    end\n")
    assert (hunk.leading, hunk.trailing) == (3, 0)


def test_only_a_line_feed_ends_a_line() -> None:
    data = b"a\rb\x0bc\x0c\xe2\x80\xa8d\r\n\n\xa0\x85e"
    assert split_lines(data) == [b"a\rb\x0bc\x0c\xe2\x80\xa8d\r\n", b"\n", b"\xa0\x85e"]
    assert split_lines(b"") == []


GOOD = (
    b"diff --git a/f b/f\nindex 1111111..2222222 100644\n--- a/f\n+++ b/f\n"
    b"@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n"
)


def test_the_good_one_is_read() -> None:
    (change,) = parse_diff(GOOD, "x.patch")
    assert change.hunks[0].old == (b"one\n", b"two\n", b"three\n")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (GOOD.replace(b"-1,3 +1,3", b"-1,4 +1,4"), ["x.patch:10", "ends inside the hunk of line 5"]),
        (GOOD.replace(b"-1,3 +1,3", b"-1,2 +1,2"), ["x.patch:9", "after the hunk of line 5"]),
        (GOOD.replace(b"-1,3 +1,3", b"-1,3 +1,4"), ["x.patch:10", "ends inside the hunk of line 5"]),
        (
            GOOD.replace(b"-1,3 +1,3", b"-1,3 +1,2"),
            ["x.patch:10", "promises 3 old and 2 new lines and has 3 and 3"],
        ),
        (GOOD.replace(b"-two\n+TWO\n", b" two\n"), ["changes nothing"]),
        (GOOD.replace(b"@@ -1,3 +1,3 @@", b"@@ -1,3 @@"), ["x.patch:5", "is not a hunk header"]),
        (GOOD.replace(b"@@ -1,3", b"@@ -1x,3"), ["x.patch:5", "is not a hunk header"]),
        (GOOD.replace(b"@@ -1,3", b"@@  -1,3"), ["x.patch:5", "is not a hunk header"]),
        (GOOD.replace(b" three", b"three"), ["x.patch:9", "stands inside the hunk of line 5"]),
        (GOOD[:-3], ["x.patch:9", "ends inside a line"]),
        (GOOD + b"garbage\n", ["x.patch:10", "'garbage' is neither"]),
        (GOOD.replace(b"+++ b/f", b"+++ b/g"), ["x.patch:4", "'g' stands where the header names 'f'"]),
        (GOOD.replace(b"--- a/f\n+++ b/f\n", b"--- a/f\t2026-01-01\n+++ b/f\n"), ["x.patch:3"]),
        (GOOD.replace(b"+++ b/f", b"+++ /dev/null"), ["x.patch:1", "whether the file is deleted"]),
        (GOOD.replace(b"--- a/f", b"--- /dev/null"), ["x.patch:1", "whether the file is added"]),
        (GOOD + GOOD, ["x.patch:10", "f is changed twice"]),
        (GOOD + b"-- \n2.39.5\n\n" + GOOD, ["x.patch:13", "after the end of the patch", "diff --git"]),
        (GOOD + b"-- \nFrom 0123 Mon\n", ["x.patch:11", "after the end of the patch"]),
        (GOOD + b"\nFrom 0123456789 Mon Sep 17 00:00:00 2001\n", ["x.patch:10", "neither a hunk line"]),
        (GOOD.replace(b"\n", b"\r\n"), ["x.patch:1"]),
        (GOOD.replace(b"diff --git a/f b/f\n", b""), ["x.patch:1"]),
        (b"diff --git a/f b/f\nBinary files a/f and b/f differ\n", ["x.patch:2", "content is left out"]),
        (b"diff --git a/f b/f\nold mode 100644\nnew mode 100600\n", ["x.patch:3", "100755"]),
        (
            b"diff --git a/f b/f\nGIT binary patch\nliteral 3\nzzz\n",
            ["x.patch:5", "promises 3 bytes and has 0"],
        ),
        (b"diff --git a/f b/f\nGIT binary patch\nliteral 3\nKcmZQzU|?ckU;qFB0RR9100\n\n", ["x.patch"]),
        (b"diff --git a/f b/f\nGIT binary patch\n", ["no content"]),
        (b"diff --git a/f b/f\nGIT binary patch\nliteral 999999999999\n", ["x.patch:3", "over the limit"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_git_would_not_write_is_refused_with_its_line(data: bytes, words: list[str]) -> None:
    refused(data, *words)


def test_every_truncation_is_refused_or_harmless(git: Oracle) -> None:
    """Cut off anywhere, a patch is refused, or what is left of it are whole changes of whole files."""
    old = {"a": TEXT, "b": b"\0bin", "d": TEXT, "e": b"", "m": b"same", "old": TEXT + b"x\n"}
    new = {
        "a": EDITED,
        "b": b"\0binary",
        "c": b"new\n",
        "m": executable(b"same"),
        "n": b"",
        "moved": TEXT + b"x\n",
    }
    data = git.diff(git.tree(old), git.tree(new), "-p", "--full-index", "--binary", "-M")
    whole = parse_diff(data, "x.patch")
    assert len(whole) == 7
    read = []
    for end in range(len(data)):
        try:
            changes = parse_diff(data[:end], "x.patch")
        except InputError as error:
            assert error.message.startswith("x.patch:")  # noqa: PT017
        else:
            read.append((end, changes))
    for end, changes in read:
        left = data[end:]
        whole_files = changes == whole[: len(changes)]
        assert whole_files, (end, left[:40], changes)


@pytest.mark.parametrize(
    "header",
    [
        b"rename from old\n",
        b"copy from old\n",
        b"rename to new\n",
        b"copy to new\n",
        b"old mode 100644\n",
        b"new mode 100755\n",
    ],
)
def test_half_a_header_never_deletes_a_file(header: bytes) -> None:
    refused(b"diff --git a/old b/new\nsimilarity index 100%\n" + header, "x.patch:1")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../b",
        "a//b",
        "a/./b",
        ".git/config",
        "a/.GIT/hooks/x",
        ".git. /x",
        ".g\u200cit/config",
        "a/.git\ufeff/x",
        ".git::$INDEX_ALLOCATION/x",
        ".git\\hooks\\x",
        "a\\..\\x",
        "GIT~1/x",
        "",
        "a/",
        "a\0b",
    ],
)
def test_paths_that_leave_the_tree(path: str) -> None:
    with pytest.raises(InputError, match=r"^w: the path .* is not a file inside the tree\.$"):
        check_path(path, "w")
    if "\0" not in path and path:
        refused(GOOD.replace(b"/f", b"/" + path.encode()), "is not a file inside the tree")


@pytest.mark.parametrize("path", [".github/x", ".gitattributes", "a/.gitignore", "...", "a/..b", "git/x"])
def test_paths_that_only_look_odd(path: str) -> None:
    check_path(path, "w")


def test_binary_patches_are_read_both_ways(git: Oracle) -> None:
    big = bytes(range(256)) * 64
    (literal,) = parsed(git, {}, {"b": b"\0" + big})
    assert literal.binary is not None
    assert (literal.binary.kind, literal.binary.data) == ("literal", b"\0" + big)
    (delta,) = parsed(git, {"b": b"\0" + big}, {"b": b"\0" + big + b"more"})
    assert delta.binary is not None
    assert delta.binary.kind == "delta"
    assert apply_delta(b"\0" + big, delta.binary.data) == b"\0" + big + b"more"


@pytest.mark.parametrize(
    ("delta", "why"),
    [
        (b"", "truncated"),
        (b"\x04\x02ab", "base size"),
        (b"\x03\x05\x05abc", "result size"),
        (b"\x03\x01\x00", "reserved"),
        (b"\x03\x03\x90", "truncated"),
        (b"\x03\x80", "truncated"),
    ],
)
def test_broken_deltas(delta: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        apply_delta(b"abc", delta)
