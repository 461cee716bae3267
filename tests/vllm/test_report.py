"""The page of the real series: every patch and every base, in a browser, and nothing is asked for from anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchq.series.series import load_series
from tests.support.browser import CHROMIUM, Opened, chromium
from tests.support.shipped import ROOT, shipped

pytestmark = pytest.mark.vllm


def report(cache: Path, *args: str) -> str:
    return shipped(cache, "report", *args).stdout.decode()


def test_the_page_of_the_real_series(real_cache: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    document = json.loads(report(real_cache, "--html", str(page), "--json"))
    series = load_series(ROOT)
    known = [name for name, base in series.lock.bases.items() if base.verified]
    assert document["chosen"] == known
    assert [p["id"] for p in document["patches"]] == [p.id for p in series.patches]
    for patch in document["patches"]:
        assert list(patch["cells"]) == known
        assert patch["sizes"]["v0.27.1"]["files"]
    if CHROMIUM is None:
        pytest.skip("no Chromium on PATH; ci/test installs it where it may")
    with chromium() as browser:
        opened = Opened(browser, page, 1280)
        shown = opened.page.inner_text("#matrix")
        for name in (*known, *(p.id for p in series.patches)):
            assert name in shown
        for patch in series.patches:
            opened.page.click(f"#matrix a[href='#{patch.id}']")
            assert opened.page.is_visible(f"[id='{patch.id}'] h3")
        opened.page.fill("#filter", "rope")
        rows = opened.page.locator("#matrix tbody tr").all()
        assert [r.get_attribute("data-id") for r in rows if r.is_visible()] == ["0008-rope-bound"]
        opened.check()
        phone = Opened(browser, page, 390)
        assert phone.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        phone.check()


def test_the_same_as_markdown(real_cache: Path) -> None:
    text = report(real_cache, "--markdown", "--base", "v0.27.1", "--base", "v0.33.0")
    for patch in load_series(ROOT).patches:
        assert text.count(f"### {patch.id}\n") == 1
