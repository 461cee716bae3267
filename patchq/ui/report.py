"""The overview as one HTML page or as Markdown; both from templates, with everything of other people's escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from patchq import __version__
from patchq.ui.graph import draw
from patchq.ui.shapes import MEANINGS, SHAPES

if TYPE_CHECKING:
    from jinja2 import Environment

    from patchq.engine.overview import Overview

RANKS = {name: rank for rank, name in enumerate(MEANINGS)}
LONGEST = 400
"""Letters of a reason that the page shows."""


def render_html(overview: Overview) -> str:
    """The page: one file that needs nothing else."""
    facts = _facts(overview)
    graph = draw([p["id"] for p in overview.patches], overview.edges)
    from markupsafe import Markup

    # The graph escapes what it shows itself.
    page = _environment().get_template("report.html").render(facts, graph=Markup(graph))  # noqa: S704
    return re.sub(r"\n{2,}", "\n", page)


def render_markdown(overview: Overview) -> str:
    """The same for a README or a summary of a CI run."""
    text = _environment().get_template("report.md").render(_facts(overview))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("patchq.ui"),
        autoescape=select_autoescape(("html",)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["text"] = plain
    environment.filters["md"] = markdown
    return environment


def plain(value: object) -> str:
    """Text that a page can hold: no control characters, and bytes that are no text shown as escapes."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "�", text)


def markdown(value: object) -> str:
    """Text as one line of Markdown that says just that text."""
    text = " ".join(plain(value).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_{}\[\]()#+!|~-])", r"\\\1", text)


def _facts(overview: Overview) -> dict[str, Any]:
    document = overview.as_dict()
    bases = {base["name"]: base for base in document["bases"]}
    pinned = next((name for name, base in bases.items() if base["role"] == "pinned"), next(iter(bases), ""))
    patches = [_prepared(patch) for patch in document["patches"]]
    document["patches"] = patches
    lanes = {lane["name"]: lane for lane in document["lanes"]}
    seen = {cell["verdict"] for patch in patches for cell in patch["cells"].values()}
    return {
        "o": document,
        "version": __version__,
        "pinned": pinned,
        "current": next((name for name, base in bases.items() if base["role"] == "current"), ""),
        "roles": {name: base["role"] for name, base in bases.items()},
        "lanes": lanes,
        "ported": any(base != patch["home"] for patch in patches for base in patch["lanes"]),
        "legend": [name for name in MEANINGS if name in seen],
        "meanings": MEANINGS,
        "shapes": SHAPES,
        "ranks": RANKS,
        "tiles": _tiles(document),
    }


def _prepared(patch: dict[str, Any]) -> dict[str, Any]:
    """A patch with what only the page needs: words to filter by, and which verdicts are told with their reasons."""
    reasons = [
        (base, {**cell, "detail": cell["detail"][:LONGEST]})
        for base, cell in patch["cells"].items()
        if cell["verdict"] != "clean" or cell["disagreement"] or cell["ruling"]
    ]
    files = sorted({file for names in patch["files"].values() for file in names})
    proved = [g for g in patch["gates"] if g["state"] in {"proved", "passed"}]
    return {
        **patch,
        "reasons": reasons,
        "told": {base for base, _ in reasons},
        "home": next(iter(patch["lanes"]), ""),
        "words": " ".join([patch["id"], patch["title"], *files]).lower(),
        "verdicts": " ".join(sorted({cell["verdict"] for cell in patch["cells"].values()})),
        "proved_at": ", ".join(g["gate"] for g in proved),
    }


def _tiles(document: dict[str, Any]) -> list[dict[str, Any]]:
    patches = document["patches"]
    proved = sum(any(g["state"] == "proved" for g in p["gates"]) for p in patches)
    stale = sum(any(g["state"] == "stale" for g in p["gates"]) for p in patches)
    tiles = [
        {"count": len(patches), "what": "carried"},
        {"count": proved, "what": "proved as they stand"},
        {"count": stale, "what": "with stale evidence"},
    ]
    if document["next"]["base"] in document["chosen"]:
        what = f"need a person at {document['next']['base']}"
        tiles.append({"count": len(document["next"]["needs"]), "what": what})
    return tiles
