"""The overview as one HTML page or as Markdown; both from templates, with everything of other people's escaped."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, Any

from patchq import __version__
from patchq.ui.graph import draw
from patchq.ui.shapes import MEANINGS, SHAPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from jinja2 import Environment
    from markupsafe import Markup

    from patchq.engine.overview import Overview

Told = tuple[list[str], dict[str, Any]]
"""Bases, and the cell that all of them have."""
RANKS = {name: rank for rank, name in enumerate(MEANINGS)}
SHORTEST, LONGEST, ALL = 100, 700, 600_000
"""Letters of a reason that the page shows, at least and at most, and of all reasons, so that a page of many stays small."""


REPORT_MARK = b"<title>patchq: what we carry</title>"
"""What tells a page of ours."""


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
    environment.filters["path"] = breakable
    return environment


def plain(value: object) -> str:
    """Text that a page can hold: no control characters, and bytes that are no text shown as escapes."""
    text = str(value).encode("utf-8", "backslashreplace").decode()
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", "�", text)


def breakable(value: object) -> Markup:
    """Text as `plain` gives it, which may be broken after a slash; it is escaped here."""
    from markupsafe import Markup, escape

    return Markup("/<wbr>").join(escape(part) for part in plain(value).split("/"))


def markdown(value: object) -> str:
    """Text as one line of Markdown (GitHub's) that says just that text."""
    text = " ".join(plain(value).split())
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*_{}\[\]()#|~])", r"\\\1", text)
    return re.sub(r"^([-+!=]|\d+(?=[.)]))", lambda found: f"&#{ord(found[1][0])};{found[1][1:]}", text)


def _facts(overview: Overview) -> dict[str, Any]:
    document = overview.as_dict()
    bases = {base["name"]: base for base in document["bases"]}
    pinned = next((name for name, base in bases.items() if base["role"] == "pinned"), next(iter(bases), ""))
    told = {patch["id"]: list(_folded(patch["cells"])) for patch in document["patches"]}
    room = max(SHORTEST, min(LONGEST, ALL // max(1, sum(map(len, told.values())))))
    patches = [_prepared(patch, told[patch["id"]], room) for patch in document["patches"]]
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


def _prepared(patch: dict[str, Any], told: Sequence[Told], room: int) -> dict[str, Any]:
    """A patch with what only the page needs: words to filter by, and which verdicts are told with their reasons."""
    files = sorted({file for names in patch["files"].values() for file in names})
    return {
        **patch,
        "reasons": [(bases, {**cell, "parts": _parts(cell, room)}) for bases, cell in told],
        "told": {base for bases, _ in told for base in bases},
        "home": next(iter(patch["lanes"]), ""),
        "words": " ".join([patch["id"], patch["title"], *files]).lower(),
        "verdicts": " ".join(sorted({cell["verdict"] for cell in patch["cells"].values()})),
        "proved_on": {
            base: _proof([g for g in patch["gates"] if g["base"] == base]) for base in patch["lanes"]
        },
        "there": {base: _there(said) for base, said in patch["bases"].items() if base in patch["lanes"]},
    }


def _folded(cells: Mapping[str, dict[str, Any]]) -> Iterator[Told]:
    """The verdicts of which there is something to say, with all bases in a row of which the same is said."""
    told = [(b, c) for b, c in cells.items() if c["verdict"] != "clean" or c["disagreement"] or c["ruling"]]
    for _, run in groupby(
        told, key=lambda one: (one[1]["verdict"], one[1]["detail"], one[1]["disagreement"])
    ):
        same = list(run)
        yield [base for base, _ in same], same[0][1]


def _parts(cell: dict[str, Any], room: int) -> list[str]:
    """A reason by its parts; a person's own words are one, whatever is in them."""
    detail = cell["detail"] if len(cell["detail"]) <= room else f"{cell['detail'][: room - 1]}…"
    return [detail] if cell["ruling"] else detail.split("; ")


def _proof(gates: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What is proved on one base: the one word, and the gates."""
    states = [gate["state"] for gate in gates]
    best = next((state for state in ("proved", "passed", "stale") if state in states), "not run")
    return {"state": best, "gates": [g["gate"] for g in gates if g["state"] in {"proved", "passed"}]}


def _there(said: dict[str, Any]) -> dict[str, str]:
    """What a patch is on one base in other words, by what the page calls it."""
    names = {"why": "Why,", "changes": "What it changes", "drop_when": "Drop when,"}
    return {name: said[key] for key, name in names.items() if said.get(key)}


def _tiles(document: dict[str, Any]) -> list[dict[str, Any]]:
    patches = document["patches"]
    proved = sum(any(g["state"] == "proved" for g in p["gates"]) for p in patches)
    stale = sum(any(g["state"] == "stale" for g in p["gates"]) for p in patches)
    tiles = [
        {"count": len(patches), "what": "carried", "tone": ""},
        {
            "count": proved,
            "what": "proved as they stand",
            "tone": "good" if proved == len(patches) else "move",
        },
        {"count": stale, "what": "with stale evidence", "tone": "move" if stale else ""},
    ]
    if document["next"]["base"] in document["chosen"]:
        needs = len(document["next"]["needs"])
        what = f"{'needs' if needs == 1 else 'need'} a person at {document['next']['base']}"
        tiles.append({"count": needs, "what": what, "tone": "bad" if needs else "good"})
    return tiles
