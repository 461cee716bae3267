"""The page and the Markdown: everything is there, and what others wrote stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from patchq.ui.graph import draw
from patchq.ui.report import markdown, plain, render_html, render_markdown
from patchq.ui.shapes import MEANINGS, SHAPES
from tests.ui.overviews import HOSTILE, overview


class Page(HTMLParser):
    """The tags, ids, links and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in {"href", "src"}:
                self.links.append(value or "")
            elif name.startswith("on"):
                self.handlers.append(name)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_every_patch_and_base_is_there_and_every_link_leads_somewhere() -> None:
    made = overview(12, 5)
    page = Page(render_html(made))
    text = " ".join(page.text)
    for shown in (*made.chosen, *(p["id"] for p in made.patches)):
        assert shown in text
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        assert link == "data:," or link.removeprefix("#") in page.ids, link


def test_each_verdict_has_a_shape_of_its_own() -> None:
    shapes = [SHAPES[verdict] for verdict in MEANINGS]
    assert len(set(shapes)) == len(shapes)


@pytest.mark.parametrize("words", HOSTILE)
def test_what_others_wrote_stays_text(words: str) -> None:
    made = overview(9, 3, (words,))
    page = Page(render_html(made))
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not page.handlers
    assert plain(words).strip() in "".join(page.text)
    assert render_html(made).encode("utf-8")


def test_markdown_says_just_the_text() -> None:
    assert markdown("a|b <b> *x* [y](z) `c`\nnew") == r"a\|b &lt;b&gt; \*x\* \[y\]\(z\) \`c\` new"
    assert [markdown(t) for t in ("- a-b", "12. x", "=== ", "12 x")] == [
        "&#45; a-b",
        "&#49;2. x",
        "&#61;==",
        "12 x",
    ]
    text = render_markdown(overview(9, 3, HOSTILE))
    table = [line for line in text.split("\n") if line.startswith("| ") and "proved at" not in line]
    assert table
    assert "<script" not in text
    rows = [line for line in table if line.startswith("| 0")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {6}


def test_two_hundred_patches_by_twenty_bases_stay_small() -> None:
    page = render_html(
        overview(200, 20, ("conflicts in vllm/model_executor/layers/fused_moe/layer.py, hunk 3",))
    )
    assert len(page.encode()) < 2_000_000


def test_the_graph_leads_from_each_patch_to_what_it_needs() -> None:
    edges = [
        {"from": "0002-b", "to": "0001-a"},
        {"from": "0003-c", "to": "0002-b"},
        {"from": "0003-c", "to": "0001-a"},
    ]
    svg = draw(["0001-a", "0002-b", "0003-c", "0004-alone"], edges)
    assert svg.count("marker-end") == 3
    assert 'href="#0003-c"' in svg
    assert "0004-alone" not in svg
    assert draw(["0004-alone"], []) == ""
