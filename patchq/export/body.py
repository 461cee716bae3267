"""What there is to say of a patch in its pull request: in the words of its patch.yaml, and by what was run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.export.signing import split_trailers
from patchq.testing.gates import needs
from patchq.vllm.layout import is_test

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.export.branches import Branch
    from patchq.export.onto import Onto
    from patchq.export.proof import Proof, Result
    from patchq.vllm.pull_request import Part

_LIST = re.compile(r"\s*([-*]|\d+\.) |    ")


@dataclass(frozen=True)
class Ground:
    """What the results are about.

    Attributes:
        base: the lane's base.
        onto: what the branch is put on.
        ran_here: whether the tests were run on the branch's own tree.
    """

    base: str
    onto: Onto
    ran_here: bool

    @property
    def proved(self) -> bool:
        """Whether the results are about the branch's tree."""
        return self.ran_here or self.onto.match != "other"


def parts_of(branch: Branch, proof: Proof, ground: Ground, helpers: Sequence[str]) -> dict[Part, str]:
    """The parts of a description, in Markdown."""
    patch = branch.patch
    text = split_trailers(branch.lane.stack.steps[-1].message)[0].partition("\n")[2].strip()
    details = [flow(text)] if text else []
    if len(branch.ids) > 1:
        below = ", ".join(f"`{s.title}`" for s in branch.lane.stack.steps[:-1])
        details.append(
            f"This branch stands on commits that have to go in first: {below}. Review the last commit."
        )
    if patch.limits:
        details.append("Limits:\n\n" + "\n".join(f"- {flow(limit)}" for limit in patch.limits))
    if helpers:
        details.append(f"AI assistance was used: {', '.join(helpers)}.")
    purpose = [flow(patch.why)]
    if patch.upstream.related:
        purpose.append(f"Related: {', '.join(patch.upstream.related)}")
    claims = [f"- {s}" for p in flow(patch.changes).split("\n\n") for s in _sentences(p)]
    return {
        "purpose": "\n\n".join(purpose),
        "claims": "\n".join(claims),
        "plan": _plan(proof),
        "result": _result(branch, proof, ground),
        "details": "\n\n".join(details),
    }


def flow(text: str) -> str:
    """A text whose paragraphs are one line each: a page that shows line ends would break them in the middle."""
    lines: list[str] = []
    for line in text.strip().split("\n"):
        goes_on = lines and lines[-1] and line and not _LIST.match(line) and not lines[-1].startswith("    ")
        if goes_on:
            lines[-1] += " " + line.strip()
        else:
            lines.append(line.rstrip())
    return "\n".join(lines)


def _sentences(paragraph: str) -> list[str]:
    return [s for s in re.split(r"(?<=[.!?])\s+(?=[A-Z])", paragraph) if s]


def _plan(proof: Proof) -> str:
    ran = {result.gate for result in proof.results}
    lines = ["```bash"]
    for group in proof.patch.tests:
        if group.gate in ran:
            lines += [f"# needs {needs(group.gate, proof.patch.target)}", "pytest " + " ".join(group.run)]
    if any(result.neighbours is not None for result in proof.results):
        lines += ["# existing tests, which have to end as they do without the change"]
        lines += ["pytest " + " ".join(proof.patch.neighbours)]
    return "\n".join([*lines, "```"])


def _result(branch: Branch, proof: Proof, ground: Ground) -> str:
    done = [_about(branch, proof, ground), _table(proof.results), _without(branch)]
    same = next((r.neighbours for r in proof.results if r.neighbours is not None), None)
    if same is not None:
        done.append(f"{same} existing tests end alike with and without the change.")
    commands = list(dict.fromkeys(result.command for result in proof.results if result.command))
    if commands:
        done.append("Run on a clean tree without network by " + ", ".join(f"`{c}`" for c in commands) + ".")
    output = [line for result in proof.results for line in result.before_output]
    if output:
        done.append("Failing before, among others:\n\n```\n" + "\n".join(output) + "\n```")
    return "\n\n".join([*done, _not_run(proof)])


def _about(branch: Branch, proof: Proof, ground: Ground) -> str:
    if ground.ran_here:
        return f"The tests ran on this branch's tree, `{proof.tree}`."
    if ground.onto.match == "tree":
        return f"The tests ran on this branch's tree, `{branch.tree}`."
    if ground.onto.match == "files":
        return (
            f"The tests ran on the tree of the {ground.base} release with this change, `{proof.tree}`. This branch's tree, "
            f"`{branch.tree}`, has besides {_files(ground.onto.extra)} that the release archive does not have."
        )
    return (
        f"**Not run on this branch's tree.** The results are those of the change on {ground.base} "
        f"(tree `{proof.tree}`); this branch is on `{ground.onto.commit[:12]}`."
    )


def _without(branch: Branch) -> str:
    if all(is_test(path) for path in branch.lane.stack.steps[-1].changes):
        return "Without it: the same tests, without the code of the commits that this one stands on."
    return "Without it: the same tests, without the change's other files."


def _files(count: int) -> str:
    return "one file" if count == 1 else f"{count} files"


def _table(results: Sequence[Result]) -> str:
    rows = ["| tests | with the change | without it | ran on |", "| --- | --- | --- | --- |"]
    for result in results:
        tools = " ".join(f"{k} {v}" for k in ("python", "torch", "cuda") if (v := result.toolchain.get(k)))
        where = ", ".join(filter(None, [result.device, tools]))
        before = _counts(result.before) if result.before is not None else "not run"
        rows.append(f"| {result.gate} | {_counts(result.after)} | {before} | {where} |")
    return "\n".join(rows)


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{n} {name}" for name, n in counts.items() if n) or "no tests"


def _not_run(proof: Proof) -> str:
    target = proof.patch.target
    lines = [f"- {' '.join(group.run)} (needs {needs(group.gate, target)})" for group in proof.missing]
    return "Not run:\n\n" + "\n".join([*lines, "- model evaluations"])
