"""The dependency graph as SVG: columns by depth, what is needed on the left, an arrow from each patch to what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COLUMN, ROW, BOX, HEIGHT, MARGIN = 300, 46, 232, 30, 12
"""Pixels: of a column, of a row, a node's width and height, and around all."""
LETTERS = 27
"""Of an id that a node has room for."""


def draw(ids: Sequence[str], edges: Sequence[Mapping[str, str]]) -> str:
    """SVG of the patches that need another or are needed, each linked to its place on the page; empty where none is.

    Args:
        ids: the patches, in series order, so that each stands after what it needs.
        edges: `from` needs `to`.
    """
    needs: dict[str, list[str]] = {i: [e["to"] for e in edges if e["from"] == i] for i in ids}
    shown = [i for i in ids if needs[i] or any(i in n for n in needs.values())]
    if not shown:
        return ""
    depth: dict[str, int] = {}
    for patch in shown:
        depth[patch] = max((depth.get(n, -1) + 1 for n in needs[patch]), default=0)
    columns: dict[int, list[str]] = {}
    for patch in shown:
        columns.setdefault(depth[patch], []).append(patch)
    place = {
        patch: (MARGIN + column * COLUMN, MARGIN + row * ROW)
        for column, patches in columns.items()
        for row, patch in enumerate(patches)
    }
    width = 2 * MARGIN + max(columns) * COLUMN + BOX
    height = 2 * MARGIN + max(len(c) for c in columns.values()) * ROW - (ROW - HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        "<title>Arrows lead from each patch to those that it needs; the list below says the same</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
    ]
    for patch in shown:
        x, y = place[patch]
        for needed in needs[patch]:
            to_x, to_y = place[needed]
            one, two = (x, y + HEIGHT // 2), (to_x + BOX, to_y + HEIGHT // 2)
            bend = (one[0] + two[0]) // 2
            parts.append(
                f'<path d="M{one[0]} {one[1]} C{bend} {one[1]} {bend} {two[1]} {two[0]} {two[1]}" marker-end="url(#tip)"/>'
            )
    for patch in shown:
        x, y = place[patch]
        name = patch if len(patch) <= LETTERS else patch[: LETTERS - 1] + "…"
        parts.append(
            f"<a href={quoteattr('#' + patch)}><title>{escape(patch)}</title>"
            f'<rect x="{x}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x + 10}" y="{y + 20}">{escape(name)}</text></a>'
        )
    return "".join([*parts, "</svg>"])
