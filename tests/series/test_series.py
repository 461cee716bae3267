"""The series on disk: whole or refused, with the file that is wrong."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patchq.errors import InputError
from patchq.series.series import Series, find_root, load_series
from tests.support.world import snapshot

if TYPE_CHECKING:
    from tests.support.world import World

IDS = ("0001-first", "0002-second", "0003-third")


def refused(world: World, *words: str) -> InputError:
    """Loading the series, or its lane, fails; so does the command line, with exit code 2 and the same words."""
    with pytest.raises(InputError) as caught:
        load_series(world.project).lane("v1")
    for word in words:
        assert word in caught.value.message
    result = world.patchq("status", "--json")
    assert result.code == 2
    assert result.json["error"]["message"] == caught.value.message
    clone = world.clone("victim")
    before = snapshot(clone)
    assert world.patchq("apply", str(clone)).code == 2
    assert snapshot(clone) == before
    return caught.value


def test_it_is_read_in_order(stacked: World) -> None:
    series = load_series(stacked.project)
    assert tuple(p.id for p in series.patches) == IDS
    assert tuple(b.id for b in series.lane("v1")) == IDS
    assert [b.where for b in series.lane("v1")] == [f"series/{i}/v1.patch" for i in IDS]
    assert list(series.locked("v1")) == list(IDS)


@pytest.mark.parametrize(
    ("reference", "found"),
    [("0001-first", 0), ("1", 0), ("0002", 1), ("second", 1), ("sec", 1), ("0003-t", 2), ("thi", 2)],
)
def test_names_for_a_patch(stacked: World, reference: str, found: int) -> None:
    assert load_series(stacked.project).find(reference).id == IDS[found]


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("", "no patch is called ''"),
        ("9", "no patch is called '9'"),
        ("000", "more than one"),
        ("\u00b2", "no patch"),
    ],
)
def test_names_for_no_patch_or_several(stacked: World, reference: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        load_series(stacked.project).find(reference)
    assert words in caught.value.message
    assert "0001-first, 0002-second, 0003-third" in caught.value.remedy


def test_an_exact_name_wins_over_a_beginning(stacked: World) -> None:
    stacked.describe("0004-firstly")
    assert load_series(stacked.project).find("first").id == "0001-first"


def test_bases(stacked: World) -> None:
    series = load_series(stacked.project)
    series = replace(
        series, lock=series.lock.with_base("v2", replace(series.lock.bases["v1"], role="pinned"))
    )
    assert [series.base(n)[0] for n in (None, "v1", "1", "2")] == ["v2", "v1", "v1", "v2"]
    for name in ("", "v3"):
        with pytest.raises(InputError, match=f"no base is called '{name}'") as caught:
            series.base(name)
        assert "v1, v2" in caught.value.remedy


def test_closures_are_in_series_order(stacked: World) -> None:
    stacked.describe("0002-second", depends=["0001-first"])
    stacked.describe("0003-third", depends=["0002-second"])
    series = load_series(stacked.project)
    assert [p.id for p in series.closure(["0003-third"])] == list(IDS)
    assert [p.id for p in series.closure(["0002-second", "0001-first"])] == list(IDS[:2])
    assert series.closure([]) == ()


def test_patch_bytes_changed_under_the_lock(stacked: World) -> None:
    body = stacked.project / "series/0002-second/v1.patch"
    body.write_bytes(body.read_bytes().replace(b"+line 40, patched", b"+line 40, tampered"))
    assert (
        "Restore the file"
        in refused(stacked, "series/0002-second/v1.patch has sha256", "upstream.lock says").remedy
    )


def test_one_more_byte_is_a_change(stacked: World) -> None:
    with (stacked.project / "series/0001-first/v1.patch").open("ab") as body:
        body.write(b"\n")
    refused(stacked, "series/0001-first/v1.patch has sha256")


def test_a_hash_edited_in_the_lock(stacked: World) -> None:
    lock = stacked.project / "upstream.lock"
    sha = load_series(stacked.project).lock.lanes["v1"][0].sha256
    lock.write_text(lock.read_text().replace(sha, "f" * 64))
    refused(stacked, "series/0001-first/v1.patch has sha256", "ffffffffffff")


def test_a_missing_body(stacked: World) -> None:
    (stacked.project / "series/0002-second/v1.patch").unlink()
    refused(stacked, "series/0002-second/v1.patch is missing, and upstream.lock lists it")


def test_a_missing_directory(stacked: World) -> None:
    shutil.rmtree(stacked.project / "series/0003-third")
    refused(stacked, "upstream.lock lists 0003-third in the lane of v1, and series/ has no such patch")


def test_an_unlisted_directory(stacked: World) -> None:
    stacked.describe("0004-fourth")
    shutil.copy(
        stacked.project / "series/0001-first/v1.patch", stacked.project / "series/0004-fourth/v1.patch"
    )
    refused(stacked, "series/0004-fourth/v1.patch is not listed in upstream.lock")


def test_a_directory_without_patch_yaml(stacked: World) -> None:
    (stacked.project / "series/0002-second/patch.yaml").unlink()
    refused(stacked, "series/0002-second/patch.yaml does not exist")


def test_hidden_directories_and_files_are_no_patches(stacked: World) -> None:
    (stacked.project / "series/.cache").mkdir()
    (stacked.project / "series/README.md").write_text("x")
    assert len(load_series(stacked.project).patches) == 3


def test_a_duplicate_id(stacked: World) -> None:
    shutil.copytree(stacked.project / "series/0001-first", stacked.project / "series/0004-copy")
    refused(
        stacked,
        "series/0004-copy/patch.yaml: the id '0001-first' is also that of series/0001-first/patch.yaml",
    )


def test_an_id_that_is_not_its_directory(stacked: World) -> None:
    (stacked.project / "series/0003-third").rename(stacked.project / "series/0003-renamed")
    refused(stacked, "series/0003-renamed/patch.yaml: id is '0003-third' and the directory is '0003-renamed'")


@pytest.mark.parametrize(
    ("depends", "words"),
    [
        ({"0001-first": ["0001-first"]}, "depends makes a cycle: 0001-first \u2192 0001-first"),
        (
            {"0001-first": ["0002-second"], "0002-second": ["0001-first"]},
            "depends makes a cycle: 0001-first \u2192 0002-second \u2192 0001-first",
        ),
        (
            {"0001-first": ["0003-third"], "0002-second": ["0001-first"], "0003-third": ["0002-second"]},
            "a cycle: 0001-first \u2192 0003-third \u2192 0002-second \u2192 0001-first",
        ),
        ({"0001-first": ["0002-second"]}, "depends on 0002-second, which comes later in the series"),
        ({"0002-second": ["0009-none"]}, "depends on '0009-none', and no patch is called that"),
    ],
)
def test_depends_that_cannot_be(stacked: World, depends: dict[str, list[str]], words: str) -> None:
    for patch, needed in depends.items():
        stacked.describe(patch, depends=needed)
    refused(stacked, words, f"series/{next(iter(depends))}/patch.yaml")


def test_the_order_of_the_lock_is_checked(stacked: World) -> None:
    series = load_series(stacked.project)
    turned = series.lock.with_lane("v1", series.lock.lanes["v1"][::-1])
    with pytest.raises(InputError, match="lists the lane of v1 in another order"):
        replace(series, lock=turned).lane("v1")


def test_no_lane(stacked: World) -> None:
    with pytest.raises(InputError, match=r"the series has no lane for v9") as caught:
        load_series(stacked.project).lane("v9")
    assert "v1" in caught.value.remedy


def test_a_project_without_patches(world: World) -> None:
    assert load_series(world.project).patches == ()
    (world.project / "series").rmdir()
    series = load_series(world.project)
    assert isinstance(series, Series)
    with pytest.raises(InputError, match="no patch is called") as caught:
        series.find("x")
    assert "the series is empty" in caught.value.remedy


def test_the_root_is_as_given_then_as_named_then_above(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = world.project / "a/b"
    deep.mkdir(parents=True)
    other = world.top / "other"
    other.mkdir()
    (other / "upstream.lock").write_text("version: 1\nbases: {}\n")
    assert find_root(None, deep) == world.project.resolve()
    monkeypatch.setenv("PATCHQ_ROOT", str(other))
    assert find_root(None, deep) == other.resolve()
    assert find_root(world.project, deep) == world.project.resolve()


def test_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"there is no upstream\.lock here or above"):
        find_root(None, tmp_path)
    with pytest.raises(InputError, match=r"nowhere has no upstream\.lock"):
        find_root(Path("nowhere"), tmp_path)
    monkeypatch.setenv("PATCHQ_ROOT", "nowhere-else")
    with pytest.raises(InputError, match=r"nowhere-else has no upstream\.lock") as caught:
        find_root(None, tmp_path)
    assert "PATCHQ_ROOT" in caught.value.remedy
