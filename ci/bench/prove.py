"""How much faster `patchq test --prove` is than the plain loop, cold: wall time, processor time, and the ratio.

The plain loop: for each patch a worktree, `git am` of it and what it depends on, and pytest, for its own tests and for
its neighbours, with the patch and without its production files. Both use the same interpreter, extensions and variables;
making the environment and fetching the base are outside both.

    python ci/bench/prove.py [ID...]      from the project's directory; PATCHQ_CACHE as usual
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.cache import cache_dir
from patchq.commands.lanes import open_lane
from patchq.git.commits import read_commit
from patchq.series.series import find_root, load_series
from patchq.testing.isolate import Isolation
from patchq.testing.runner import Workshop
from patchq.testing.schedule import limits_for
from patchq.testing.trees import Trees
from patchq.ui.progress import make_progress
from patchq.upstream.store import Store
from patchq.vllm.environment import ensure_environment
from patchq.vllm.layout import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator

IDENTITY = {"GIT_COMMITTER_NAME": "bench", "GIT_COMMITTER_EMAIL": "bench@localhost"}
KEPT = ("environments", "extensions", "distributions", "store.git")
"""What stands outside both: everything else is made anew."""
WANTED = 3
"""Times faster, by the clock."""


def git(*args: str, cwd: Path) -> None:
    subprocess.run(["git", *args], cwd=cwd, env={**os.environ, **IDENTITY}, check=True, capture_output=True)


def spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def plain_loop(series: Any, lane: Any, environment: Any, ids: list[str], top: Path) -> Iterator[str]:
    """One patch and mode after the other, as a person would; yields what it has done."""
    store = Store()
    clone = top / "clone"
    git("clone", "-q", "--no-checkout", str(store.git_dir), str(clone), cwd=top)
    git("fetch", "-q", "origin", lane.base_commit, cwd=clone)
    sandbox = top / "sandbox"
    for name in ("home", "tmp", "cache"):
        (sandbox / name).mkdir(parents=True)
    with store.objects() as objects:
        shop = Workshop(Trees(objects, {}, linked=False), environment, Isolation(), limits_for(1))
        variables = {k: v.replace("{sandbox}", str(sandbox)) for k, v in shop.variables(card=False).items()}
    for patch in ids:
        meta = series.find(patch)
        own = [t for group in meta.tests if group.gate == "cpu" for t in group.run]
        if not own:
            continue
        tree = top / meta.id
        git("worktree", "add", "-q", "--detach", str(tree), lane.base_commit, cwd=clone)
        for name, file in environment.overlay.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            os.link(file, tree / name)
        for needed in series.closure([meta.id]):
            body = series.body_path(needed.id, lane.base)
            git("am", "--keep-non-patch", "--keep-cr", str(body), cwd=tree)
        env = {**variables, "PYTHONPATH": ":".join([str(tree), variables["PYTHONPATH"]])}
        step = next(s for s in lane.stack.steps if s.id == meta.id)
        for mode in ("after", "before"):
            if mode == "before":
                for path in step.changes:
                    if not is_test(path):
                        existed = subprocess.run(
                            ["git", "cat-file", "-e", f"HEAD~1:{path}"],
                            cwd=tree,
                            check=False,
                            capture_output=True,
                        )
                        git(
                            *(
                                ["checkout", "HEAD~1", "--", path]
                                if existed.returncode == 0
                                else ["rm", "-q", path]
                            ),
                            cwd=tree,
                        )
            for tests in (own, list(meta.neighbours)):
                if tests:
                    command = [environment.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
                    done = subprocess.run(command, cwd=tree, env=env, check=False, capture_output=True)
                    last = done.stdout.decode("utf-8", "replace").strip().rsplit("\n", 1)[-1]
                    yield f"{meta.id} {mode}: {last}"


def patchq_test(root: Path, ids: list[str], top: Path) -> Iterator[str]:
    """`patchq test --prove` with nothing known and no tree made."""
    cold = top / "cache"
    cold.mkdir()
    for name in KEPT:
        if (cache_dir() / name).exists():
            (cold / name).symlink_to(cache_dir() / name)
    command = [
        sys.executable,
        "-m",
        "patchq",
        "--root",
        str(root),
        "test",
        "--prove",
        "--gate",
        "cpu",
        "--json",
        *ids,
    ]
    done = subprocess.run(
        command, env={**os.environ, "PATCHQ_CACHE": str(cold)}, check=False, capture_output=True
    )
    for result in json.loads(done.stdout)["results"]:
        yield f"{result['id']} {result['status']}: before {result['before']}, after {result['after']}"


def measure(name: str, work: Iterator[str]) -> dict[str, Any]:
    began, used = time.monotonic(), spent()
    for line in work:
        print(f"  {name}: {line}", file=sys.stderr, flush=True)
    taken = {
        "wall_seconds": round(time.monotonic() - began, 1),
        "processor_seconds": round(spent() - used, 1),
    }
    print(f"  {name}: {taken}", file=sys.stderr, flush=True)
    return taken


def main() -> int:
    root = find_root(None, Path.cwd())
    series = load_series(root)
    store = Store()
    base, source = series.base()
    with store.objects() as objects:
        lane = open_lane(series, store, objects, base)
        tree = read_commit(objects, lane.base_commit).tree
        environment = ensure_environment(base, source, objects, tree, None, make_progress())
    ids = [series.find(i).id for i in sys.argv[1:]] or list(lane.stack.ids)
    ids = [i for i in ids if any(group.gate == "cpu" for group in series.find(i).tests)]
    top = Path(tempfile.mkdtemp(prefix="patchq-bench-", dir=cache_dir()))
    try:
        ours = measure("patchq", patchq_test(root, ids, top))
        plain = measure("plain loop", plain_loop(series, lane, environment, ids, top))
    finally:
        shutil.rmtree(top, ignore_errors=True)
    ratio = {k: round(plain[k] / ours[k], 2) for k in ours}
    print(
        json.dumps(
            {
                "patches": ids,
                "processors": os.cpu_count(),
                "patchq": ours,
                "plain_loop": plain,
                "ratio": ratio,
            },
            indent=1,
        )
    )
    return 0 if ratio["wall_seconds"] >= WANTED else 1


if __name__ == "__main__":
    sys.exit(main())
