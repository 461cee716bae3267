"""vLLM's rules for pull requests, read from the tree that a patch is for; where an old tree does not state one yet, as it was first stated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from patchq.git.objects import Objects

TITLE_CHECK = ".github/workflows/pr-title.yml"
TEMPLATE = ".github/PULL_REQUEST_TEMPLATE.md"
CONTRIBUTING = "docs/contributing/README.md"
TESTS_GUIDE = "tests/AGENTS.md"

FIRST_TITLE = r"^(\[[^][]+\])+ +[^[:space:]].*$"
"""As 0.33.0 states it; before, the contributing guide asked for the same in words."""
FIRST_OPEN_LIMIT = 6
FIRST_SIZE_LIMIT = 500
_CLASSES = {"space": r"\s", "alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9"}


@dataclass(frozen=True)
class Rule:
    """A rule's value and the file of the tree that states it; `where` is empty where the tree does not."""

    value: str
    where: str


def read_text(objects: Objects, tree: str, path: str) -> str | None:
    """A text file of a tree; None where there is none."""
    entry = objects.lookup(tree, path)
    return objects.blob(entry.oid).decode("utf-8", "replace") if entry is not None else None


def title_rule(objects: Objects, tree: str) -> Rule:
    """The extended regular expression that a pull request's title must match, as bash reads it."""
    found = re.search(
        r"^\s*pattern='([^'\n]+)'\s*$", read_text(objects, tree, TITLE_CHECK) or "", re.MULTILINE
    )
    return Rule(found[1], TITLE_CHECK) if found else Rule(FIRST_TITLE, "")


def title_pattern(objects: Objects, tree: str) -> re.Pattern[str]:
    """The same for Python: named classes (`[:space:]`) are spelt out."""
    text = re.sub(r"\[:(\w+):\]", lambda m: _CLASSES.get(m[1], m[0]), title_rule(objects, tree).value)
    return re.compile(text.replace("[^][]", r"[^\]\[]"))


def pr_template(objects: Objects, tree: str) -> str | None:
    """The text of the tree's pull request template; None where it has none."""
    return read_text(objects, tree, TEMPLATE)


def open_pr_limit(objects: Objects, tree: str) -> int:
    """How many pull requests somebody without write access may have open at once."""
    return _number(objects, tree, r"cap is (\d+) open PRs", FIRST_OPEN_LIMIT)


def size_limit(objects: Objects, tree: str) -> int:
    """How many changed lines, kernels, data, configuration and tests not counted, a change may have without an RFC."""
    return _number(objects, tree, r">\s*(\d+) LOC excluding", FIRST_SIZE_LIMIT)


def _number(objects: Objects, tree: str, pattern: str, otherwise: int) -> int:
    text = " ".join((read_text(objects, tree, CONTRIBUTING) or "").split())
    found = re.search(pattern, text)
    return int(found[1]) if found else otherwise


def sign_off(name: str, email: str) -> str:
    """The trailer by which an author certifies the origin (DCO)."""
    return f"Signed-off-by: {name} <{email}>"


def sign_offs(message: str) -> tuple[str, ...]:
    """The sign-offs of a commit's message, each as `Name <mail>`."""
    return tuple(m.strip() for m in re.findall(r"^Signed-off-by:[ \t]*(.+)$", message, re.MULTILINE))
