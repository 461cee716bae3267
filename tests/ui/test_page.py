"""The page in a real browser: nothing leaves it, filter, sorting and links work, and it is fit for everybody."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from patchq.ui.report import render_html
from tests.support.browser import CHROMIUM, Opened, axe_script, chromium
from tests.ui.overviews import HOSTILE, overview

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

CACHE = Path(os.environ.get("PATCHQ_CACHE") or Path.home() / ".cache" / "patchq")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium on PATH; ci/test installs it where it may"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


def written(tmp_path: Path, count: int, columns: int, words: tuple[str, ...] = ("words",)) -> Path:
    file = tmp_path / "report.html"
    file.write_text(render_html(overview(count, columns, words)), encoding="utf-8")
    return file


def test_filter_sort_and_links(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, 12, 5), 1280)
    page = opened.page
    rows = page.locator("#matrix tbody tr")
    assert rows.count() == 12
    page.fill("#filter", "0007")
    assert [r.get_attribute("data-id") for r in rows.all() if r.is_visible()] == ["0007-patch"]
    assert page.inner_text("#count") == "1 of 12 shown"
    page.fill("#filter", "nothing like it")
    assert page.is_visible("#none")
    page.fill("#filter", "")
    page.select_option("#verdict", "missing")
    assert 0 < sum(r.is_visible() for r in rows.all()) < 12
    page.select_option("#verdict", "")
    page.click("#matrix thead th:nth-child(2) button")
    ranks = [int(r.locator("td").first.get_attribute("data-rank") or "") for r in rows.all()]
    assert ranks == sorted(ranks)
    page.click("#matrix thead th:nth-child(1) button")
    page.click("#matrix thead th:nth-child(1) button")
    assert rows.first.get_attribute("data-id") == "0012-patch"
    page.click("#matrix tbody tr:first-child th a")
    assert page.url.endswith("#0012-patch")
    page.fill("#filter", "0001")
    assert not page.is_visible("[id='0011-patch']")
    page.evaluate("location.hash = '#0011-patch'")
    page.locator("[id='0011-patch']").wait_for(state="visible")
    assert page.input_value("#filter") == ""
    opened.check()


def test_filter_and_sort_by_keyboard(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, 12, 3), 1280)
    page = opened.page
    keyboard = page.keyboard

    def tab_to(what: str) -> None:
        for _ in range(12):
            keyboard.press("Tab")
            if page.evaluate(f"document.activeElement.matches({what!r})"):
                return
        raise AssertionError(what)

    tab_to("#filter")
    keyboard.type("0003")
    assert page.inner_text("#count") == "1 of 12 shown"
    keyboard.press("Control+A")
    keyboard.press("Delete")
    assert page.inner_text("#count") == "12 of 12 shown"
    tab_to("#matrix thead th:first-child button")
    keyboard.press("Enter")
    keyboard.press("Space")
    assert page.get_attribute("#matrix thead th", "aria-sort") == "descending"
    assert page.locator("#matrix tbody tr").first.get_attribute("data-id") == "0012-patch"
    opened.check()


def test_headings_and_ids_stay_in_sight(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, 60, 20), 1280)
    box = opened.page.locator(".scroll")
    box.evaluate("box => box.scrollTo(400, 600)")
    corner, frame = opened.page.locator("#matrix thead th").first.bounding_box(), box.bounding_box()
    assert corner is not None
    assert frame is not None
    assert abs(corner["x"] - frame["x"]) < 2
    assert abs(corner["y"] - frame["y"]) < 2
    opened.check()


def test_hostile_text_does_nothing(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, written(tmp_path, 14, 3, HOSTILE), 390)
    assert opened.page.title() == "patchq: what we carry"
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_is_accessible(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    opened = Opened(browser, written(tmp_path, 12, 5), width, scheme)
    opened.page.evaluate(axe_script(CACHE))
    found = opened.page.evaluate("axe.run()")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found["violations"]] == []
    opened.check()


def test_a_large_page_opens_within_a_second(browser: Browser, tmp_path: Path) -> None:
    file = written(tmp_path, 200, 20, ("conflicts in vllm/model_executor/layers/fused_moe/layer.py, hunk 3",))
    opened = Opened(browser, file, 1280)
    timing = opened.page.evaluate("performance.getEntriesByType('navigation')[0].toJSON()")
    print(f"load event after {timing['loadEventEnd']:.0f} ms")
    assert opened.page.locator("#matrix tbody tr").count() == 200
    opened.check()
