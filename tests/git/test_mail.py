"""Patches as mails: `git am` and patchq read one file alike, and what is written reads back as it was."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from patchq.errors import InputError
from patchq.git.commits import Identity, read_commit
from patchq.git.mail import FROM_LINE, diff_trees, format_mail, parse_mail
from patchq.git.objects import EMPTY_TREE
from patchq.git.pick import pick
from tests.support.oracle import MAIL, Oracle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.git.commits import Commit

AUTHOR = Identity("A U Thor", "author@example.com", 1767319445, "+0100")
DIFF = (
    b"diff --git a/f b/f\nindex 5626abf0f72e58d7a153368ba57db4c673c0e171..f719efd430d52bcfc8566a43b2eb655688d38871 100644\n"
    b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n"
)


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Oracle:
    return Oracle(tmp_path_factory.mktemp("oracle") / "repo").start()


@pytest.fixture(scope="module")
def base(git: Oracle) -> str:
    """A commit with the file that `DIFF` changes."""
    return git.commit(git.tree({"f": b"one\n"}), b"base\n")


def commit_of(git: Oracle, name: str) -> Commit:
    with git.objects() as objects:
        return read_commit(objects, name)


def by_am(git: Oracle, base: str, mail: bytes) -> Commit:
    """What `git am` makes of a mail."""
    head = git.am(base, mail)
    assert head is not None
    return commit_of(git, head)


def refused(data: bytes, *words: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse_mail(data, "x.patch")
    for word in words:
        assert word in caught.value.message
    assert caught.value.remedy
    return caught.value


TITLES = [
    "plain",
    "[Tag][Other] two tags",
    "[Bugfix][Kernel] Fix: a thing (#123)",
    "[Tag]no space",
    "[Tag] a [b] c",
    "[Tag] Gr\u00fc\u00dfe \u6f22\u5b57",
    "[Tag] a" + " long title" * 20,
    "[Tag] " + "\u6f22" * 120,
    '[Tag] percent % and \\ and "quotes" and <angles>',
    "[Tag] ends in a colon:",
    "[Tag] recall",
    "[unclosed tag",
    "[T] =?UTF-8?B?w6Q=?= t",
    "=?",
]
BODIES = [
    "",
    "one line",
    "a paragraph\nof two lines\n\nand another",
    "- a list\n- of items\n\n  indented\n\ttabbed",
    " ---\n  diff --git a/x b/x\n From abc",
    "From abc: this is no header of a mail",
    "text\n\nFrom: A Friend <friend@example.com>\nSubject: not a header down here",
    "--\nlooks like a signature",
    "Gr\u00fc\u00dfe, \u6f22\u5b57 and \U0001f600\n\nSigned-off-by: J\u00fcrgen <j@example.com>",
    "---x is no separator\n----\n-- dashes",
    "@@ -1 +1 @@\n+++ b/f\nno diff",
    "=?UTF-8?B?w6Q=?= stays as it is",
    ">From the start",
    "#hash lines stay\n# too",
]


@pytest.mark.parametrize("title", TITLES)
def test_titles_survive(git: Oracle, base: str, title: str) -> None:
    written = format_mail(AUTHOR, title + "\n", DIFF, "x.patch")
    read = parse_mail(written, "x.patch")
    assert (read.title, read.message, read.author) == (title.strip(), title.strip() + "\n", AUTHOR)
    made = by_am(git, base, written)
    assert (made.message, made.author) == (read.message, AUTHOR)


@pytest.mark.parametrize("body", BODIES)
def test_bodies_survive(git: Oracle, base: str, body: str) -> None:
    message = f"[Test] title\n\n{body}\n" if body else "[Test] title\n"
    written = format_mail(AUTHOR, message, DIFF, "x.patch")
    read = parse_mail(written, "x.patch")
    assert (read.message, read.author, read.paths) == (message, AUTHOR, ("f",))
    made = by_am(git, base, written)
    assert (made.message, made.author) == (message, AUTHOR)


@pytest.mark.parametrize(
    "name",
    [
        "Thor, A. U. Jr",
        'A "Nick" Thor',
        "J\u00fcrgen Gro\u00df",
        "\u6f22\u5b57 \u4eba",
        "A (U) Thor",
        "O'Thor",
        "a back\\slash",
        "A: B; C",
        "Thor [work]",
        "\u00dc" * 25,
    ],
)
def test_authors_survive(git: Oracle, base: str, name: str) -> None:
    author = Identity(name, "odd+mail.x@example.com", 1767319445, "-0730")
    written = format_mail(author, "[Test] title\n", DIFF, "x.patch")
    assert parse_mail(written, "x.patch").author == author
    assert by_am(git, base, written).author == author


@pytest.mark.parametrize(
    ("seconds", "zone"),
    [
        (0, "+0000"),
        (1767319445, "+0530"),
        (1767319445, "-1200"),
        (4000000000, "+1400"),
        (1172712345, "-0330"),
    ],
)
def test_dates_survive(git: Oracle, base: str, seconds: int, zone: str) -> None:
    author = Identity("A U Thor", "a@example.com", seconds, zone)
    written = format_mail(author, "[Test] title\n", DIFF, "x.patch")
    assert parse_mail(written, "x.patch").author == author
    assert by_am(git, base, written).author == author


@pytest.mark.parametrize(
    "date",
    [
        "Fri, 2 Jan 1960 03:04:05 +0000",
        "Wed, 31 Dec 1969 23:00:00 -0200",
        "Thu, 1 Jan 1970 00:00:00 +0100",
        "Fri, 2 Jan 2100 03:04:05 +0000",
        "Fri, 2 Jan 0026 03:04:05 +0000",
        "2 Jan 26 03:04:05 +0000",
        "Fri, 2 Jan 2026 03:04:05 +2500",
        "Fri, 2 Jan 2026 03:04:05 +1460",
        "Fri, 2 Jan 2026 03:04:05 +100",
        "Fri, 2 Jan 10000 03:04:05 +0100",
    ],
)
def test_dates_that_git_am_refuses(git: Oracle, base: str, date: str) -> None:
    """Or that it takes for others: the two must never read one file as two commits."""
    mail = MAIL.replace(b"Fri, 2 Jan 2026 03:04:05 +0100", date.encode()) + DIFF
    head = git.am(base, mail)
    read = commit_of(git, head).author if head else None
    assert read is None or (read.seconds, read.zone) in {(1767323045, "+0000"), (2**64 - 3600, "+0100")}
    refused(mail, "x.patch:3: `Date:` is not a mail date")


@pytest.mark.parametrize(
    ("seconds", "zone"),
    [
        (-1, "+0000"),
        (4102444800, "+0000"),
        (4102444799, "+0100"),
        (10**11, "+0000"),
        (10**20, "+0000"),
        (1, "+2500"),
    ],
)
def test_commits_with_dates_that_git_am_refuses(seconds: int, zone: str) -> None:
    with pytest.raises(InputError, match=r"the author's date, .*, is none that `git am` reads"):
        format_mail(Identity("A U Thor", "a@example.com", seconds, zone), "[Test] title\n", DIFF, "x.patch")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("[T] t\n\n---\nrest", "line 3"),
        ("[T] t\n\ntext\n--- a/file\nrest", "line 4"),
        ("[T] t\n\ntext\n---   \nrest", "line 4"),
        ("[T] t\n\ntext\ndiff --git a/x b/x\n", "line 4"),
        ("[T] t\n\ntext\ndiff -u x y\n", "line 4"),
        ("[T] t\n\ntext\nIndex: x\n", "line 4"),
        ("[T] t\n\nFrom: Somebody Else <else@example.com>\n\ntext", "line 3"),
        ("[T] t\n\nDate: Fri, 2 Jan 2026 03:04:05 +0100\n\ntext", "line 3"),
        ("[T] t\n\nSubject: other\n\ntext", "line 3"),
        ("[T] t\n\n[PATCH] other\n\ntext", "line 3"),
        ("[T] t\n\ntext\nFrom 0123456789012345678901234567890123456789 Mon Sep 17 00:00:00 2001", "line 4"),
        ("[T] t\n\ntext\nFrom alice Mon Sep 17 10:20:30 2001", "line 4"),
        ("[PATCH] t\n", "title"),
        ("[T][PATCH 1/2] t\n", "title"),
        ("[T] Re: t\n", "title"),
        ("Re: t\n", "title"),
        ("[T]  two  spaces\n", "title"),
        ("[T] a\ttab\n", "title"),
        (": t\n", "title"),
    ],
)
def test_messages_that_git_am_would_mangle_are_refused(
    git: Oracle, base: str, message: str, words: str
) -> None:
    with pytest.raises(InputError) as caught:
        format_mail(AUTHOR, message, DIFF, "x.patch")
    assert caught.value.message.startswith("x.patch: ")
    assert words in caught.value.message
    title, _, body = message.strip("\n").partition("\n")
    plain = FROM_LINE + b"From: A U Thor <author@example.com>\nDate: Fri, 2 Jan 2026 03:04:05 +0100\n"
    mail = plain + f"Subject: {title}\n\n{body.strip()}\n---\n\n".encode() + DIFF
    head = git.am(base, mail)
    made = commit_of(git, head) if head else None
    assert made is None or (made.message.strip(), made.author) != (message.strip(), AUTHOR)


WORD = st.sampled_from(
    [
        "a",
        "Fix",
        "[T]",
        "[PATCH]",
        "Re:",
        "---",
        "From",
        "From:",
        "diff",
        "-",
        "\u00e4",
        "\u6f22",
        "\\",
        '"',
        "<x>",
        "=?",
        "?=",
        "%",
        "#",
        ":",
        "\t",
        "",
        ">From",
        "Index:",
    ]
)


@given(
    title=st.lists(WORD, min_size=1, max_size=6).map(" ".join),
    body=st.lists(st.lists(WORD, max_size=4).map(" ".join), max_size=6).map("\n".join),
    name=st.text(st.sampled_from('Aa\u00e9\u6f22.,"()\\@ '), min_size=3, max_size=12).map(
        lambda s: f"N{s.strip()}x"
    ),
)
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_what_is_written_reads_back_and_git_am_agrees(
    git: Oracle, base: str, title: str, body: str, name: str
) -> None:
    author = Identity(name.replace("@", " "), "a@example.com", 1767319445, "+0100")
    try:
        written = format_mail(author, f"{title}\n\n{body}", DIFF, "x.patch")
    except InputError:
        return
    read = parse_mail(written, "x.patch")
    assert read.author == author
    assert format_mail(read.author, read.message, DIFF, "x.patch") == written
    if git.am(base, written) is None:
        pytest.fail(f"git am refuses {written!r}")
    made = commit_of(git, "HEAD")
    assert (made.message, made.author.email, made.author.seconds) == (
        read.message,
        author.email,
        author.seconds,
    )
    assert made.author.name == re.sub(r"\s+", " ", author.name)


FOREIGN = {
    "signature": MAIL + DIFF + b"-- \n2.39.5\n\n",
    "diffstat": MAIL.replace(
        b"---\n\n", b"---\n f | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n\n"
    )
    + DIFF,
    "no separator": MAIL.replace(b"---\n\n", b"") + DIFF,
    "patch tags": MAIL.replace(b"[Test]", b"[PATCH v2 03/17] [Test]") + DIFF,
    "reply": MAIL.replace(b"[Test]", b"Re: [PATCH] [Test]") + DIFF,
    "folded subject": MAIL.replace(b"[Test] it", b"[Test]\n it is folded\n  twice") + DIFF,
    "padded subject": MAIL.replace(b"[Test] it", b"   [Test]   padded   ") + DIFF,
    "quoted printable subject": MAIL.replace(
        b"[Test] it", b"=?UTF-8?q?[Test]=20gr=C3=BCn?=\n =?UTF-8?q?_ist=20es?="
    )
    + DIFF,
    "latin-1 subject, declared": MAIL.replace(b"[Test] it", b"=?ISO-8859-1?Q?[Test]_gr=FCn?=") + DIFF,
    "latin-1 body, declared": MAIL.replace(
        b"\n\n---",
        b"\nContent-Type: text/plain; charset=ISO-8859-1\nContent-Transfer-Encoding: 8bit\n\ngr\xfcn\n---",
    )
    + DIFF,
    "from somebody else": MAIL.replace(
        b"\n\n---",
        b"\n\nFrom: Some One Else <else@example.com>\nDate: Thu, 1 Jan 2026 00:00:00 -0200\n\nThe body.\n---",
    )
    + DIFF,
    "subject within": MAIL.replace(b"\n\n---", b"\n\nSubject: [PATCH] [Test] other\n\nThe body.\n---") + DIFF,
    "trailing blanks": MAIL.replace(b"\n\n---", b"\n\nblanks   \n\n\n\nmore\t\n\n\n---") + DIFF,
    "more headers": MAIL.replace(b"\n\n---", b"\nMessage-Id: <x@y>\nX-Folded: a\n b\nTo: x@y\n\ntext\n---")
    + DIFF,
    "traditional look in the body": MAIL.replace(b"\n\n---", b"\n\ntext\n@@ -1 +1 @@\n---") + DIFF,
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_peoples_mails_are_read_as_git_am_reads_them(git: Oracle, base: str, name: str) -> None:
    read = parse_mail(FOREIGN[name], "x.patch")
    made = by_am(git, base, FOREIGN[name])
    assert (read.message, read.author) == (made.message, made.author)
    with git.objects() as objects:
        assert pick(objects, git.tree({"f": b"one\n"}), read, "x.patch").tree == made.tree


def test_raw_latin_1_becomes_text(git: Oracle, base: str) -> None:
    mail = MAIL.replace(b"A U Thor", b"J\xfcrgen").replace(b"\n\n---", b"\n\ngr\xfcn\n---") + DIFF
    read = parse_mail(mail, "x.patch")
    assert (read.author.name, read.message) == ("J\u00fcrgen", "[Test] it\n\ngr\u00fcn\n")
    assert by_am(git, base, mail).author.name == "J\u00fcrgen"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xef\xbb\xbf" + MAIL + DIFF, "x.patch:1: the file begins with a byte order mark"),
        (b"<!DOCTYPE html>\n<html>...", "x.patch:1: this is an HTML page"),
        (b"\n\n  <HTML lang=en>", "x.patch:1: this is an HTML page"),
        (b"", "does not begin with `From `"),
        (DIFF, "does not begin with `From `"),
        (MAIL.split(b"\n", 1)[1] + DIFF, "does not begin with `From `"),
        ((MAIL + DIFF).replace(b"\n", b"\r\n"), "x.patch:1: the file's lines end in CRLF"),
        (MAIL[:60], "no empty line after the mail headers"),
        (MAIL, "the patch changes no file"),
        (MAIL + b" f | 2 +-\n", "the patch changes no file"),
        (MAIL[:-5], "the patch changes no file"),
        (MAIL.replace(b"From: ", b"Fron: ") + DIFF, "no From header"),
        (MAIL.replace(b"Date: ", b"Dato: ") + DIFF, "no Date header"),
        (MAIL.replace(b"Subject: ", b"Object: ") + DIFF, "no Subject header"),
        (MAIL.replace(b"Fri, 2 Jan 2026 03:04:05 +0100", b"yesterday") + DIFF, "is not a mail date"),
        (MAIL.replace(b"2026", b"99999999999") + DIFF, "is not a mail date"),
        (MAIL.replace(b" <author@example.com>", b"") + DIFF, "does not read `Name <mail>`"),
        (MAIL.replace(b"Date: ", b"Da te ") + DIFF, "x.patch:3: this is not a mail header"),
        (
            MAIL.replace(b"\n\n---", b"\nContent-Transfer-Encoding: base64\n\n---") + DIFF,
            "a base64 mail body is not supported",
        ),
        (MAIL + DIFF.split(b"\n", 2)[2], "x.patch:9: a diff begins here without a `diff --git` line"),
        (MAIL + b"--- a/g\n+++ b/g\n@@ -1 +1 @@\n-x\n+y\n" + DIFF, "x.patch:9: a diff begins here without"),
        (MAIL + DIFF + b"-- \n2.39.5\n\n" + MAIL + DIFF, "x.patch:18: 'From 0000"),
        (MAIL + DIFF[:-4], "x.patch:14: the patch ends inside a line"),
        (MAIL + DIFF.replace(b"+two", b"two"), "x.patch:14: 'two' stands inside"),
    ],
    ids=range(24),
)
def test_what_is_no_patch_is_refused_at_its_line(data: bytes, words: str) -> None:
    refused(data, words)


def test_a_made_up_charset_is_no_reason_to_fail() -> None:
    mail = MAIL.replace(b"[Test] it", b"=?x-unknown?B?dGl0bGU=?=").replace(
        b"\n\n---", b"\nContent-Type: text/plain; charset=nonsense\n\nbody \xc3\xa4\n---"
    )
    assert parse_mail(mail + DIFF, "x.patch").message == "title\n\nbody \u00e4\n"


def test_an_empty_diff_is_not_written() -> None:
    with pytest.raises(InputError, match=r"x\.patch:\d+: the patch changes no file"):
        format_mail(AUTHOR, "[T] t\n", b"", "x.patch")


def test_writing_is_the_same_every_time() -> None:
    once = format_mail(AUTHOR, "[T] \u00e4\n\nb\n", DIFF, "x.patch")
    assert once.startswith(
        FROM_LINE + b"From: A U Thor <author@example.com>\nDate: Fri, 02 Jan 2026 03:04:05 +0100\n"
    )
    assert format_mail(AUTHOR, "[T] \u00e4\n\nb\n", DIFF, "y.patch") == once
    assert once.endswith(b"---\n\n" + DIFF)


@pytest.fixture
def tampered(git: Oracle) -> Iterator[Oracle]:
    """A repository whose own settings and attributes would change what a diff looks like."""
    info = git.path / ".git" / "info"
    info.mkdir(exist_ok=True)
    (info / "attributes").write_text("*.py -diff\n*.txt diff=odd\n")
    for name, value in {
        "diff.odd.xfuncname": "^.*$",
        "diff.noprefix": "true",
        "diff.context": "0",
        "diff.algorithm": "patience",
        "core.abbrev": "7",
        "core.quotepath": "true",
    }.items():
        git.git("config", name, value)
    yield git
    (info / "attributes").unlink()


def test_the_diff_depends_on_the_trees_alone(tampered: Oracle, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on attributes and settings of the repository, nor on those of the directory that one stands in."""
    lines = b"".join(b"  %d\n" % i for i in range(9))
    old = {"a.py": lines, "b.txt": lines, "\u00e4": lines, "c.bin": lines}
    new = {n: d.replace(b"  5\n", b"  five\n") for n, d in old.items()}
    plain = Oracle(tampered.path.parent / "plain").start()
    before, after = (plain.tree(f) for f in (old, new))
    assert (before, after) == tuple(tampered.tree(f) for f in (old, new))
    (tampered.path / ".gitattributes").write_text("*.bin binary\n")
    monkeypatch.chdir(tampered.path)
    diff = diff_trees(tampered.path / ".git", before, after)
    assert diff == diff_trees(plain.path / ".git", before, after)
    assert diff.count(b"\n+  five\n") == 4
    assert "diff --git a/\u00e4 b/\u00e4\n".encode() in diff


def test_the_diff_of_nothing_is_empty(git: Oracle) -> None:
    git.tree({})
    assert diff_trees(git.path / ".git", EMPTY_TREE, EMPTY_TREE) == b""
