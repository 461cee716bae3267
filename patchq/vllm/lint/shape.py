"""The rules that need no tool: title, sign-off, size, and no reformatting on the way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchq.vllm.layout import is_test
from patchq.vllm.rules import CONTRIBUTING, sign_offs, size_limit, title_pattern, title_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.vllm.lint.change import Change, Edit, Finding

_KERNEL = re.compile(r"csrc/.+|.+\.(?:cu|cuh|cpp|hpp|h|cc|inl)|(?:.+/)?(?:kernels|ops)/.+")
_DATA = re.compile(r".+\.(?:json|ya?ml|toml|txt|csv|md|in|jinja|png|svg)|\.buildkite/.+|\.github/.+|docs/.+")


def check_message(change: Change) -> Iterator[Finding]:
    """The title is one that upstream takes, and whoever signed off is the author."""
    if not title_pattern(change.objects, change.before).match(change.title):
        rule = title_rule(change.objects, change.before)
        where = rule.where or "upstream's rule"
        yield change.finding("title", f"{change.title!r} does not match {rule.value} ({where})")
    signed = sign_offs(change.message)
    if signed and change.author not in signed:
        yield change.finding(
            "sign-off", f"signed off by {', '.join(signed)}, and the author is {change.author}"
        )
    elif change.signed and not signed:
        yield change.finding("sign-off", f"no Signed-off-by: {change.author}")


def check_size(change: Change) -> Iterator[Finding]:
    """No more changed lines than upstream takes without an RFC; kernels, data, configuration and tests do not count."""
    count = 0
    for path in change.entries:
        if not (is_test(path) or _KERNEL.fullmatch(path) or _DATA.fullmatch(path)):
            count += sum(len(edit.old) + len(edit.new) for edit in change.text(path).edits)
    limit = size_limit(change.objects, change.before)
    if count > limit:
        yield change.finding(
            "size",
            f"{count} changed lines besides kernels, data, configuration and tests; over {limit} want an RFC ({CONTRIBUTING})",
        )


def check_reformatting(change: Change) -> Iterator[Finding]:
    """No lines that say the same in another shape."""
    for text in change.texts():
        if text.before is None or text.path.endswith((".md", ".txt", ".patch")):
            continue
        for edit in text.edits:
            if _only_shape(edit):
                yield change.finding(
                    "reformatting", "only the formatting of these lines changes", text.path, edit.start
                )


def _only_shape(edit: Edit) -> bool:
    """Whether an edit changes spaces, quotes, line breaks or trailing commas alone; a new indentation is more than shape."""
    if [line.strip() for line in edit.old] == [line.strip() for line in edit.new]:
        return [line.rstrip() for line in edit.old] == [line.rstrip() for line in edit.new]
    return _bare(edit.old) == _bare(edit.new)


def _bare(lines: tuple[str, ...]) -> str:
    text = re.sub(r"\s+", "", "".join(lines)).replace("'", '"')
    return re.sub(r",(?=[)\]}])", "", text)
