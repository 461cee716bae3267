"""Every rule on some changes, and what of it could not be asked."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.vllm.lint.checks import check_format, check_hook, check_mypy, check_ruff, check_typos
from patchq.vllm.lint.ci import check_collected
from patchq.vllm.lint.guide import check_guide
from patchq.vllm.lint.precommit import CONFIG, read_config
from patchq.vllm.lint.shape import check_message, check_reformatting, check_size
from patchq.vllm.lint.tools import Bench, ensure_tools

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.progress import Progress
    from patchq.vllm.lint.change import Change, Finding
    from patchq.vllm.lint.precommit import Config

OWN = (check_message, check_size, check_reformatting, check_guide, check_collected)
TOOLS = {"ruff": check_ruff, "ruff-format": check_format, "typos": check_typos, "mypy": check_mypy}


@dataclass(frozen=True)
class Report:
    """What the rules say.

    Attributes:
        findings: in the order of the changes, then by file and line.
        tools: with their versions, as the tree pins them.
        left_out: rules that were not asked, and why.
    """

    findings: tuple[Finding, ...]
    tools: tuple[str, ...]
    left_out: dict[str, str]


def lint(changes: Sequence[Change], progress: Progress, *, without: frozenset[str] = frozenset()) -> Report:
    """Ask every rule of the tree that each change stands on.

    Args:
        changes: of one repository, best in order, so that little is written between two.
        progress: told how far it is.
        without: tools that a person leaves out.

    Raises:
        EnvironmentLacksError: a tool cannot be installed or run.
        InputError: the tree's configuration cannot be read.
    """
    findings: list[Finding] = []
    pinned: dict[str, None] = {}
    left_out = dict.fromkeys(sorted(without), "not asked for")
    benches: dict[Path, Bench] = {}
    with contextlib.ExitStack() as stack, progress.task("linting", total=len(changes), unit="steps") as step:
        for change in changes:
            found = [finding for check in OWN for finding in check(change)]
            config = read_config(change.objects, change.before)
            pinned |= dict.fromkeys(config.requirements)
            left_out |= {t: f"the tree's {CONFIG} has none" for t in TOOLS if t not in config.tools}
            if config.requirements or config.hooks:
                programs = ensure_tools(config.requirements, progress)
                if programs not in benches:
                    benches[programs] = stack.enter_context(Bench(change.objects, programs))
                found += _ask(change, benches[programs], config, without)
            findings += sorted(set(found), key=lambda f: (f.file, f.line, f.rule, f.message))
            step(1)
    return Report(tuple(findings), tuple(pinned), left_out)


def _ask(change: Change, bench: Bench, config: Config, without: frozenset[str]) -> list[Finding]:
    """What the tools and the tree's own checks find."""
    found: list[Finding] = []
    for name, check in TOOLS.items():
        if name in config.tools and name not in without:
            found += check(change, bench, config)
    for hook in config.hooks:
        found += check_hook(change, bench, config, hook)
    return found
