"""The patch.yaml of a patch that is new: what is known is filled in, and the rest says what must be."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from patchq.series.patch import TITLE_PATTERN, PatchMeta

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "FILL IN"
"""What stands where a person has to write."""

_TEST = re.compile(r"tests/(.*/)?test_[^/]+\.py")


def skeleton(
    patch: str, title: str, *, depends: Sequence[str] = (), tests: Sequence[str] = (), because: str = ""
) -> str:
    """The text of a new patch.yaml.

    Args:
        patch: its id.
        title: its title.
        depends: ids of the patches that it needs, as far as is known.
        tests: its test files.
        because: why it needs the last of `depends`, where it would apply without.
    """
    lines = [
        f"id: {patch}",
        f"title: {json.dumps(title, ensure_ascii=False)}",
        "why: |",
        f"  {MARK}: the trouble, in the words of those who have it.",
        "changes: |",
        f"  {MARK}: what it changes, and what it leaves as it is.",
        "depends: []" if not depends else "depends:",
        *(f"  - {needed}" for needed in depends),
    ]
    if because:
        lines += ["because:", f"  {depends[-1]}: {json.dumps(because, ensure_ascii=False)}"]
    if tests:
        lines += ["tests:", "  - gate: cpu", "    run:", *(f"      - {json.dumps(t)}" for t in tests)]
    else:
        lines += ["tests: []"]
    lines += [
        "upstream:",
        "  state: absent",
        "  intent: local",
        "  related: []",
        "drop_when: |",
        f"  {MARK}: the observable condition under which it is no longer needed.",
    ]
    return "\n".join(lines) + "\n"


def unfilled(meta: PatchMeta) -> tuple[str, ...]:
    """The keys of a patch.yaml that a person still has to write."""
    texts = {"title": meta.title, "why": meta.why, "changes": meta.changes, "drop_when": meta.drop_when}
    found = [key for key, text in texts.items() if MARK in text]
    found += ["because"] if any(MARK in text for text in meta.because.values()) else []
    return (*found, *(() if meta.tests else ("tests",)))


def titled(subject: str) -> str:
    """A commit's subject as a title: as it is where it has upstream's tags, else with a mark that asks for them."""
    return subject if re.match(TITLE_PATTERN, subject) else f"[{MARK}] {subject}"


def named(title: str) -> str:
    """A patch's name made of its title: its words without the tags, in lower case."""
    plain = re.sub(r"^(\[[^][]*\]\s*)+", "", title).lower()
    words = re.findall(r"[a-z0-9]+", plain)
    name = ""
    for word in words[:6]:
        if len(name) + len(word) > 32:  # noqa: PLR2004
            break
        name += f"-{word}" if name else word
    return name or "patch"


def tests_among(paths: Sequence[str]) -> list[str]:
    """Those of a patch's files that pytest would collect."""
    return [path for path in paths if _TEST.fullmatch(path)]
