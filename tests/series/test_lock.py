"""upstream.lock: written one way, read back the same, and refused at its line when a hand was at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchq.errors import InputError
from patchq.series.lock import Base, Lock, LockedPatch, Source, format_lock, read_lock

TREE, SHA = "1" * 40, "2" * 64
GOOD = format_lock(
    Lock(
        1,
        {
            "v1": Base(Source("sdist", version="1.0", sha256=SHA), TREE, "2026-08-11", "pinned"),
            "fork": Base(Source("git", url="u", revision="r")),
        },
        {"v1": (LockedPatch("0001-first", SHA, TREE),)},
    )
)


def read(tmp_path: Path, text: str) -> Lock:
    path = tmp_path / "upstream.lock"
    path.write_text(text)
    return read_lock(path)


def test_the_lock_of_this_project_is_as_patchq_writes_it() -> None:
    path = Path(__file__).parents[2] / "upstream.lock"
    assert format_lock(read_lock(path)) == path.read_text()


HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
SOURCES = st.one_of(
    st.builds(
        lambda v, s: Source("sdist", version=v, sha256=s), st.sampled_from(["0.27.1", "1.10", "2"]), HEX
    ),
    st.builds(
        lambda r: Source("git", url="https://example.com/x", revision=r),
        st.sampled_from(["main", "0e10", "123", "true", "\u00e4"]),
    ),
    st.builds(lambda p: Source("directory", path=p), st.sampled_from(["/a b", "/\u00e4: c", "# x", "null"])),
)
BASES = st.builds(
    Base, SOURCES, st.sampled_from(["", TREE, "0" * 40, "1e10" * 10]), st.sampled_from(["", "2026-08-11"])
)


@given(bases=st.dictionaries(st.sampled_from(["v1", "1.0", "null", "0x1", "yes"]), BASES), sha=HEX)
@settings(deadline=None)
def test_writing_and_reading_are_each_others_reverse(
    tmp_path_factory: pytest.TempPathFactory, bases: dict[str, Base], sha: str
) -> None:
    lock = Lock(1, bases, {name: (LockedPatch("0001-first", sha, TREE),) for name in bases})
    path = tmp_path_factory.mktemp("lock") / "upstream.lock"
    path.write_text(format_lock(lock))
    assert read_lock(path) == lock
    assert format_lock(read_lock(path)) == path.read_text()


def line_of(text: str) -> int:
    return GOOD.splitlines().index(next(line for line in GOOD.splitlines() if text in line)) + 1


@pytest.mark.parametrize(
    ("old", "new", "at", "words"),
    [
        ("version: 1\n", "version: 2\n", "version: 1", "input should be 1"),
        (f"tree: '{TREE}'", "tree: abc", "v1:", "is not 40 hexadecimal digits"),
        (f"sha256: '{SHA}'", "sha256: abc", "source:", "is not 64 hexadecimal digits"),
        ("kind: sdist", "kind: wheel", "kind: sdist", "'sdist', 'git', 'clone' or 'directory'"),
        ("      version: '1.0'\n", "", "source:", "version is missing"),
        ("role: pinned", "role: frozen", "role: pinned", "'pinned', 'current' or ''"),
        ("date: '2026-08-11'", "date: yesterday", "v1:", "is not YYYY-MM-DD"),
        ("  fork:", "  ../x:", "version: 1", "is not a name for a base"),
        ("lanes:\n  v1:", "lanes:\n  v2:", "version: 1", "lane 'v2' has no base of that name"),
        (
            "  - id: 0001-first",
            "  - extra: 1\n    id: 0001-first",
            "- id: 0001",
            "unknown key 'lanes.v1.0.extra'",
        ),
        ("url: u", "url: --upload-pack=x", "kind: git", "does not begin with a dash"),
    ],
)
def test_a_hand_at_the_lock_is_told_its_line(tmp_path: Path, old: str, new: str, at: str, words: str) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(InputError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert words in caught.value.message
    assert caught.value.message.startswith("upstream.lock:")
    named = int(caught.value.message.split(":")[1])
    assert abs(named - line_of(at)) <= 1, caught.value.message


def test_two_pinned_bases(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than one base has the role pinned"):
        read(tmp_path, GOOD.replace("  fork:\n", "  fork:\n    role: pinned\n"))


def test_replacing_keeps_the_rest(tmp_path: Path) -> None:
    lock = read(tmp_path, GOOD)
    base = Base(Source("directory", path="/x"))
    assert list(lock.with_base("new", base).bases) == ["v1", "fork", "new"]
    assert lock.with_base("v1", base).lanes == lock.lanes
    assert lock.with_lane("v1", ()).lanes == {"v1": ()}
    assert (lock.with_role("pinned"), lock.with_role("current")) == ("v1", None)
