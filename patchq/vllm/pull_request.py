"""A pull request's description in the form of vLLM's own template, whichever release it is from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = Literal["purpose", "claims", "plan", "result", "details"]

PLACES: dict[str, tuple[Part, ...]] = {
    "purpose": ("purpose", "claims", "details"),
    "test plan": ("plan",),
    "test result": ("result",),
    "overview": ("purpose",),
    "claims": ("claims",),
    "validation": ("plan", "result"),
    "details": ("details",),
}
"""What goes under which heading: the first three as in 0.27, the others as in 0.33."""
NAMES: dict[Part, str] = {
    "purpose": "Purpose",
    "claims": "Changes",
    "plan": "Test Plan",
    "result": "Test Result",
    "details": "Details",
}
"""Headings for what a template has no place for."""
_AI_BOX = re.compile(r"^(\s*- )\[ \]( AI assistance was used\b)", re.MULTILINE)
_HEADING = re.compile(r"^## +(.+?) *$")


def fill_template(
    template: str | None, parts: Mapping[Part, str], *, assisted: bool
) -> tuple[str, tuple[str, ...]]:
    """A description: the template with its sections filled, its checklist left for a person.

    Args:
        template: the tree's; None where it has none.
        parts: what there is to say, in Markdown.
        assisted: tick the template's box for the help of an AI.

    Returns:
        The description, and the headings that nothing is known for.
    """
    head, rule, tail = _cut(template or "")
    out: list[str] = []
    open_: list[str] = []
    said: set[Part] = set()
    comments = True
    for line in head:
        heading = _HEADING.match(line)
        if heading is None:
            if comments and line.startswith("<!--"):
                out.append(line)
            continue
        places = PLACES.get(heading[1].lower(), ())
        known = [part for part in places if parts.get(part) and part not in said]
        said.update(known)
        out += ["", line, ""]
        if known:
            out.append("\n\n".join(parts[part] for part in known))
        else:
            open_.append(heading[1])
        comments = not known
    for part, name in NAMES.items():
        if parts.get(part) and part not in said:
            out += ["", f"## {name}", "", parts[part]]
    text = "\n".join(out).strip("\n") + "\n"
    if rule:
        text += "\n" + "\n".join(rule + tail).rstrip("\n") + "\n"
    return (_AI_BOX.sub(r"\1[x]\2", text) if assisted else text), tuple(open_)


def _cut(template: str) -> tuple[list[str], list[str], list[str]]:
    """The sections of a template, the line that ends them, and the checklist below it."""
    lines = template.splitlines()
    at = next((i for i, line in enumerate(lines) if re.fullmatch(r"-{3,}\s*", line)), len(lines))
    return lines[:at], lines[at : at + 1], lines[at + 1 :]


def assistance(helper: str) -> str:
    """The trailer that says who, other than a person, had a part in a commit (the contributing guide, 0.27 to 0.33)."""
    return f"Co-authored-by: {helper}"
