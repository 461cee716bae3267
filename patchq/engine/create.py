"""Making a checkout of a base with patches: it appears complete, or not at all."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import key_of, locked
from patchq.engine.apply import Outcome, branch_for
from patchq.engine.journal import Note, Record, new_token
from patchq.engine.lane import Lane, commit_steps, substack
from patchq.engine.log import CheckoutChange, Entry, Log, now
from patchq.errors import EnvironmentLacksError, InputError
from patchq.git.checkout import open_checkout
from patchq.git.packs import share_pack
from patchq.git.run import GitError, reason_of, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.upstream.store import Store


def create_checkout(
    path: Path,
    store: Store,
    objects: Objects,
    lane: Lane,
    ids: Sequence[str],
    branch: str | None,
    note: Note,
) -> Outcome:
    """Make a checkout of the base with these patches; it appears at `path` complete or not at all.

    Its base is a commit on a branch named as the base, its patches are commits on `patchq/<base>`; all ids are the
    same on every machine.

    Raises:
        InputError: the branch cannot be used.
        EnvironmentLacksError: it cannot be written.
    """
    path = path.absolute()
    stack = substack(objects, lane, ids)
    top = commit_steps(objects, lane, lane.base_commit, stack.steps)
    name = branch_for(lane.base, branch)
    if name == lane.base:
        raise InputError(f"{name} is the branch of the base itself.", "Choose another with --branch.")
    with locked(f"create-{key_of(path)}", f"making {path}"):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            for left in path.parent.glob(f".{glob.escape(path.name)}.patchq-*"):
                shutil.rmtree(left)
            draft = path.parent / f".{path.name}.patchq-{os.getpid()}"
            try:
                _fill(draft, store, objects, lane, name, top)
                draft.rename(path)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        except (OSError, GitError) as error:
            reason = reason_of(error)
            raise EnvironmentLacksError(
                f"{path} cannot be made: {reason}.", "Make room, or name another place."
            ) from None
    checkout = open_checkout(path)
    change = CheckoutChange(str(checkout.top), made=top)
    Log(Path(note.root)).add(Entry(new_token(), note.what, now(), checkout=change))
    Record(checkout).remember_origin(f"refs/heads/{name}", f"refs/heads/{lane.base}")
    return Outcome(
        lane.base,
        "tree",
        stack.tree,
        top,
        name,
        stack.steps,
        changed=True,
        created=True,
        files=tuple(sorted(stack.changes)),
    )


def _fill(draft: Path, store: Store, objects: Objects, lane: Lane, branch: str, top: str) -> None:
    run(["init", "--quiet", "--template=", "--object-format=sha1", f"--initial-branch={branch}", str(draft)])
    git_dir = draft / ".git"
    store.share_objects(git_dir, lane.base_commit)
    if lane.pack:
        share_pack(lane.pack, store.git_dir / "objects", git_dir / "objects")
    objects.flush(git_dir)
    run(["update-ref", f"refs/heads/{lane.base}", lane.base_commit], cwd=draft)
    run(["update-ref", "-m", "patchq: create", f"refs/heads/{branch}", top], cwd=draft)
    run(["read-tree", "--reset", "-u", top], cwd=draft, config=["core.autocrlf=false"])
