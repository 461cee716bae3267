"""A maintainer's day on the real tree: import a branch, reorder, split, fix by editing and refresh, undo twice, rebase, export."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from patchq.engine.stack import build_stack
from patchq.git.objects import Objects
from patchq.series.series import load_series
from tests.support.shipped import PINNED, ROOT, shipped
from tests.vllm.test_main_job import git

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.vllm
NEXT = "v0.28.0"
FILE = "vllm/utils/math_utils.py"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the shipped series, to be edited."""
    made = tmp_path / "project"
    made.mkdir()
    shutil.copytree(ROOT / "series", made / "series")
    shutil.copy(ROOT / "upstream.lock", made)
    return made


@pytest.fixture
def patchq(real_cache: Path, tmp_path: Path, project: Path) -> Callable[..., Any]:
    """The command line on that copy, with a store of its own that reads the shared one."""
    cache = tmp_path / "own-cache"
    store = cache / "store.git"
    git("init", "-q", "--bare", str(store), cwd=tmp_path)
    (store / "objects/info/alternates").write_text(f"{real_cache}/store.git/objects\n")
    refs = git(
        "for-each-ref", "--format=%(refname) %(objectname)", "refs/patchq/bases", cwd=real_cache / "store.git"
    )
    for line in refs.splitlines():
        git("update-ref", *line.split(), cwd=store)

    def call(*args: str, code: int | None = 0) -> Any:
        return json.loads(shipped(cache, *args, "--json", root=project, code=code).stdout)

    return call


def files(project: Path) -> dict[str, bytes]:
    return {str(p.relative_to(project)): p.read_bytes() for p in project.rglob("*") if p.is_file()}


def holds(project: Path, cache: Path, base: str = PINNED) -> str:
    """The lane of a base builds to its locked trees; the last of them."""
    series = load_series(project)
    with Objects(cache / "store.git") as objects:
        locked = {s.id: s.tree for s in series.lock.lanes[base]}
        return build_stack(objects, series.lock.bases[base].tree, series.lane(base), locked).tree


@pytest.mark.slow  # a whole day: some forty commands on the real tree
def test_a_maintainers_day(
    patchq: Callable[..., Any], project: Path, tmp_path: Path, real_cache: Path
) -> None:
    shipped = [p.id for p in load_series(project).patches]
    started = files(project)

    made = tmp_path / "vllm"
    top = patchq("apply", "--create", str(made))["tree"]
    git("checkout", "-q", "-b", "feature", cwd=made)
    original = (made / FILE).read_text()
    steps = [
        ("[Misc] Say what the maths is for", FILE, original + "\n# one\n"),
        ("[Misc] Add a helper", "vllm/utils/day_utils.py", "def day() -> int:\n    return 1\n"),
        ("[Misc] Test the helper", "tests/utils_/test_day_utils.py", "def test_day():\n    assert True\n"),
        ("[Misc] Say more of the maths", FILE, original + "\n# one\n# two\n"),
    ]
    for number, (title, name, text) in enumerate(steps):
        (made / name).write_text(text)
        if number == 1:
            (made / "vllm/utils/day_consts.py").write_text("DAY = 1\n")
        git("add", "-A", cwd=made)
        git("commit", "-q", "-m", title, cwd=made)

    document = patchq("import", "feature", "--repo", str(made))
    new = [p["id"] for p in document["patches"] if p["new"]]
    assert [p["id"] for p in document["patches"]] == shipped + new
    assert len(new) == 4
    imported = holds(project, real_cache)
    assert imported == git("rev-parse", "feature^{tree}", cwd=made) != top
    maths = [p for p in load_series(project).patches if p.id == new[3]]
    assert maths[0].depends == (new[0],)

    moved = patchq("move", new[3], "--before", new[1])
    assert [p["id"][5:] for p in moved["patches"]][-4:] == [new[i][5:] for i in (0, 3, 1, 2)]
    assert holds(project, real_cache) == imported
    bodies = {n.split("/")[1][5:]: d for n, d in files(project).items() if n.endswith(f"{PINNED}.patch")}
    assert all(bodies[n.split("/")[1][5:]] == d for n, d in started.items() if n.endswith(f"{PINNED}.patch"))

    split = patchq("split", new[1][5:], "--files", "*/day_consts.py", "--name", "day-consts")
    assert split["patches"][-2]["new"] is True
    assert holds(project, real_cache) == imported

    git("checkout", "-q", f"patchq/{PINNED}", cwd=made)
    applied = patchq("apply", str(made))
    assert applied["tree"] == imported
    text = (made / "vllm/utils/day_utils.py").read_text()
    (made / "vllm/utils/day_utils.py").write_text(text.replace("return 1", "return 2"))
    before_fix = files(project)
    fixed = patchq("refresh", str(made))
    assert [w[5:] for w in fixed["written"]] == [new[1][5:]]
    assert git("status", "--porcelain", cwd=made) == ""
    assert holds(project, real_cache) == fixed["tree"] == git("rev-parse", "HEAD^{tree}", cwd=made)
    assert patchq("verify", str(made))["ok"] is True

    assert patchq("undo")["undone"]["command"].startswith("refresh")
    assert files(project) == before_fix
    assert git("status", "--porcelain", cwd=made) == "M vllm/utils/day_utils.py"
    git("checkout", "-q", "--", ".", cwd=made)
    assert patchq("undo")["undone"]["command"].startswith("apply")
    assert git("rev-parse", "HEAD^{tree}", cwd=made) == top

    cells = {row["id"]: row["cells"][NEXT] for row in patchq("forecast", "--base", NEXT)["patches"]}
    stuck = [n for n in shipped if cells[n]["verdict"] in {"conflict", "missing", "partial"}]
    assert stuck
    assert all(cells[n]["verdict"] == "clean" for n in cells if n not in shipped)
    for patch in stuck[:-1]:
        patchq("verdict", "set", patch, "reworked", "--base", NEXT, "--because", "Upstream does it by now.")
    ruled = files(project)
    state = patchq("rebase", "--onto", NEXT, code=1)
    assert state["pending"]["id"] == stuck[-1]
    assert files(project) == ruled
    patchq("rebase", "--skip")
    series = load_series(project)
    assert [s.id for s in series.lock.lanes[NEXT]] == [p.id for p in series.patches if p.id not in stuck]
    assert holds(project, real_cache) == imported
    assert holds(project, real_cache, NEXT) != series.lock.bases[NEXT].tree

    mailbox = tmp_path / "day.mbox"
    exported = files(project)
    patchq("export", "mbox", "--base", PINNED, "--out", str(mailbox))
    assert files(project) == exported
    git("checkout", "-q", "--detach", PINNED, cwd=made)
    git("am", "-q", "--keep-non-patch", "--keep-cr", str(mailbox), cwd=made)
    assert git("rev-parse", "HEAD^{tree}", cwd=made) == imported

    while files(project) != started:
        patchq("undo")
    assert holds(project, real_cache) == top
