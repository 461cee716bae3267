"""The work tree in which a person resolves a conflict: a repository of its own under the cache, never the user's."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from patchq.engine.conflicts import learn, marker_line
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.git.lines import split_lines
from patchq.git.objects import ZERO_OID, Objects
from patchq.git.run import GitError, reason_of, run
from patchq.git.trees import diff_trees
from patchq.text import listed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.engine.placing import Trouble
    from patchq.engine.rebase import Pending
    from patchq.series.resolutions import Resolution

EXACT = "* -text -eol -filter -ident -working-tree-encoding\n"
"""Attributes under which git writes and reads every file to the letter."""
BRANCH = "patchq-rebase"


def make_worktree(work: Path, objects: Objects, head: str, pending: Pending) -> None:
    """Write a repository in which a patch waits to be resolved: the base and the patches before it, as commits.

    What went on is staged; each file that did not is unmerged, its three sides being the index's stages: 1 what the
    patch was made on, 2 upstream, 3 the patch. It appears at `work` complete or not at all.

    Raises:
        EnvironmentLacksError: it cannot be written.
    """
    draft = work.with_name(f"{work.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    shutil.rmtree(work, ignore_errors=True)
    objects.flush(objects.git_dir)
    try:
        run(
            [
                "init",
                "--quiet",
                "--template=",
                "--object-format=sha1",
                f"--initial-branch={BRANCH}",
                str(draft),
            ]
        )
        info = draft / ".git" / "objects" / "info"
        info.mkdir(parents=True, exist_ok=True)
        stores = objects.directories
        (info / "alternates").write_text("".join(f"{store}\n" for store in stores))
        (draft / ".git" / "info").mkdir(exist_ok=True)
        (draft / ".git" / "info" / "attributes").write_text(EXACT)
        run(["update-ref", f"refs/heads/{BRANCH}", head], cwd=draft)
        run(["read-tree", "--reset", "-u", pending.placed.tree], cwd=draft)
        _stage_sides(draft, pending.placed.troubles)
        draft.rename(work)
    except (OSError, GitError) as error:
        reason = reason_of(error)
        raise EnvironmentLacksError(
            f"the work tree {work} cannot be written: {reason}.", "Make room, then run this again."
        ) from None


def _stage_sides(work: Path, troubles: Sequence[Trouble]) -> None:
    rows = []
    for trouble in troubles:
        rows.append(f"0 {ZERO_OID}\t{trouble.file}\0")
        sides = (trouble.base, trouble.ours, trouble.theirs)
        rows += [f"{e.mode:o} {e.oid} {n}\t{trouble.file}\0" for n, e in enumerate(sides, start=1) if e]
        if trouble.marked is not None:
            path = work / trouble.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(trouble.marked)
    run(["update-index", "-z", "--index-info"], cwd=work, stdin=os.fsencode("".join(rows)))


def read_worktree(work: Path, objects: Objects, pending: Pending) -> tuple[str, list[Resolution]]:
    """What a person made of a conflict: the tree, written to the repository of `objects`, and the conflicts that can be learnt.

    A file counts as resolved when it was added or removed with git, or has no markers any more.

    Raises:
        RefusedError: a file is not resolved; file and line are named.
    """
    unmerged = set(os.fsdecode(run(["ls-files", "-z", "--unmerged"], cwd=work)).split("\0"))
    unmerged = {row.partition("\t")[2] for row in unmerged if row}
    open_files = []
    for trouble in pending.placed.troubles:
        path = work / trouble.file
        data = path.read_bytes() if path.is_file() else b""
        line = marker_line(data) if trouble.marked is not None else 0
        if line:
            raise RefusedError(
                f"{path}:{line}: a conflict marker is left.",
                "Resolve it and run patchq rebase --continue, or --skip or --abort.",
                files=(trouble.file,),
            )
        if trouble.file in unmerged and (trouble.marked is None or not path.is_file()):
            open_files.append(trouble.file)
    open_files += sorted(unmerged - {t.file for t in pending.placed.troubles})
    if open_files:
        raise RefusedError(
            f"{listed(open_files)} in {work} is not resolved.",
            "Put what it should be there and `git add` it, or `git rm` it; then patchq rebase --continue.",
            files=tuple(open_files),
        )
    named = [t.file for t in pending.placed.troubles if (work / t.file).is_file()]
    run(["add", "--all", "--", "."], cwd=work)
    if named:
        fed = os.fsencode("".join(f"{name}\0" for name in named))
        run(
            ["add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"],
            cwd=work,
            stdin=fed,
            env=_LITERAL,
        )
    tree = run(["write-tree"], cwd=work).decode().strip()
    return _adopt(work, objects, pending, tree), _learn(work, pending)


_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}


def _adopt(work: Path, objects: Objects, pending: Pending, tree: str) -> str:
    """Bring a tree of the work tree's repository into that of `objects`."""
    with Objects(work / ".git") as theirs:
        changes = {c.path: c.new for c in diff_trees(theirs, pending.onto, tree)}
        for entry in changes.values():
            if entry is not None:
                objects.put("blob", theirs.blob(entry.oid))
    adopted = objects.edit_tree(pending.onto, changes)
    objects.flush(objects.git_dir)
    return adopted


def _learn(work: Path, pending: Pending) -> list[Resolution]:
    found: list[Resolution] = []
    for trouble in pending.placed.troubles:
        path = work / trouble.file
        if trouble.marked is not None and path.is_file() and split_lines(trouble.marked):
            found += learn(trouble.file, trouble.marked, path.read_bytes())
    return found
