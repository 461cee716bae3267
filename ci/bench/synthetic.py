"""Series of any length over real vLLM files: seeded, so that a run can be repeated; each patch changes one to three files."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from patchq.engine.record import record_lane
from patchq.git.commits import Identity
from patchq.git.mail import diff_trees, format_mail
from patchq.git.objects import REGULAR, Entry
from patchq.git.run import run
from patchq.series.lock import Lock, format_lock
from patchq.series.series import LOCK_NAME, SERIES_NAME, Body, load_series

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.git.objects import Objects
    from patchq.series.lock import Base
    from patchq.upstream.store import Store

AUTHOR = Identity("patchq maintainers", "patchq@localhost", 1767225600, "+0000")
SIGNED = f"Signed-off-by: {AUTHOR.name} <{AUTHOR.email}>"
SMALLEST = 40
"""Lines that a file has at least, to be among those that are changed."""

META = """\
id: {id}
title: '{title}'
why: Made by the benchmark.
changes: Some lines.
depends: []
tests: []
upstream:
  state: absent
  intent: local
drop_when: The benchmark is over.
"""


def make_series(root: Path, store: Store, name: str, base: Base, count: int, seed: int) -> None:
    """Write a project with `count` patches on a base.

    Args:
        root: the directory to make; it must not exist.
        store: where the base is.
        name: the base's name.
        base: what the lock says of it.
        count: how many patches.
        seed: of the choice of files and lines.
    """
    chance = random.Random(seed)
    (root / SERIES_NAME).mkdir(parents=True)
    (root / LOCK_NAME).write_text(format_lock(Lock(1, {name: base})))
    made = []
    loose = root / "objects.git"
    run(["init", "--quiet", "--bare", "--template=", str(loose)])
    with store.objects() as objects:
        trees = [base.tree]
        files = _files(objects, base.tree)
        for number in range(1, count + 1):
            chosen = chance.sample(files, chance.randint(1, 3))
            trees.append(_edit(objects, trees[-1], chosen, chance, number))
        objects.flush(loose)
        for number in range(1, count + 1):
            patch = f"{number:04}-synthetic"
            title = f"[Bench] Change {number} of {count}"
            directory = root / SERIES_NAME / patch
            directory.mkdir()
            (directory / "patch.yaml").write_text(META.format(id=patch, title=title))
            diff = diff_trees(loose, trees[number - 1], trees[number], (store.git_dir / "objects",))
            where = f"{SERIES_NAME}/{patch}/{name}.patch"
            made.append(Body(patch, where, format_mail(AUTHOR, f"{title}\n\n{SIGNED}\n", diff, where)))
        done = record_lane(load_series(root), name, objects, base.tree, made, "recording")
        for where, data in done.files.items():
            (root / where).write_bytes(data)


def _files(objects: Objects, tree: str) -> list[str]:
    """The package's own Python files that are long enough, by path."""
    package = objects.lookup(tree, "vllm")
    if package is None:
        raise SystemExit("the base has no vllm/")
    return [
        f"vllm/{path}"
        for path, entry in objects.walk(package.oid)
        if path.endswith(".py")
        and entry.mode == REGULAR
        and objects.blob(entry.oid).count(b"\n") >= SMALLEST
        and b"\r" not in objects.blob(entry.oid)
    ]


def _edit(objects: Objects, tree: str, paths: list[str], chance: random.Random, number: int) -> str:
    """The tree with one to four lines put in or replaced in each of some files."""
    changes: dict[str, Entry | None] = {}
    for path in paths:
        entry = objects.lookup(tree, path)
        if entry is None:
            raise SystemExit(f"{path} is gone")
        lines = objects.blob(entry.oid).splitlines(keepends=True)
        at = chance.randrange(3, len(lines) - 3)
        new = [b"# patch %d, line %d\n" % (number, i) for i in range(chance.randint(1, 4))]
        lines[at : at + chance.randint(0, 1)] = new
        changes[path] = Entry(entry.mode, objects.put("blob", b"".join(lines)))
    return objects.edit_tree(tree, changes)
