"""patchq beside git am, quilt and StGit on the real tree, in one run: medians, ratios, memory, into RESULTS.md.

    python ci/bench/apply.py [--sizes 10,100,1000] [--runs 7] [--out FILE]     PATCHQ_CACHE as usual

Each tool works in a copy of the same tree, whole processes are timed, and the runs of the tools are interleaved, so that
what else the machine does falls on all of them. Peers that are not there are installed from the system's packages; one
that cannot be is named. No result decides anything but what the table says.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

from synthetic import make_series

from patchq.cache import cache_dir
from patchq.series.series import SERIES_NAME, find_root, load_series
from patchq.ui.progress import make_progress
from patchq.upstream.fetch import fetch_base
from patchq.upstream.store import Store

if TYPE_CHECKING:
    from patchq.series.lock import Base

PEERS = {"quilt": "quilt", "stg": "stgit"}
"""Program and system package."""
IDENTITY = {
    "GIT_AUTHOR_NAME": "bench",
    "GIT_AUTHOR_EMAIL": "bench@localhost",
    "GIT_COMMITTER_NAME": "bench",
    "GIT_COMMITTER_EMAIL": "bench@localhost",
    "GIT_CONFIG_GLOBAL": os.devnull,
}
SEED = 20260101
WARM_UPS = 1
ONCE = 1000
"""Patches from which on quilt is timed once: it takes minutes to take them off again."""


@dataclass
class Timed:
    """One command over its runs: seconds by the clock, and the most memory that any run took, in MB."""

    seconds: list[float]
    memory: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds) if self.seconds else float("nan")


@dataclass(frozen=True)
class Contestant:
    """A command that is timed, where it runs, and what puts all back after it, untimed."""

    command: list[str]
    where: Path
    reset: list[str] | None = None


class Bench:
    """The trees, the cache and the environment of one run."""

    def __init__(self, top: Path, runs: int) -> None:
        self.top, self.runs = top, runs
        self.cache = top / "cache"
        self.cache.mkdir()
        subprocess.run(["cp", "-al", str(cache_dir() / "store.git"), str(self.cache)], check=True)
        self.env = {**os.environ, **IDENTITY, "PATCHQ_CACHE": str(self.cache)}
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)
        self.log = (top / "log").open("ab")
        spawn = [sys.executable, "-I", "-S", str(Path(__file__).with_name("spawn.py")), self.log.name]
        self._spawn = subprocess.Popen(spawn, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, command: list[str], cwd: Path) -> tuple[float, float]:
        """Run one command to success; its seconds and its own peak memory in MB."""
        asked, said = self._spawn.stdin, self._spawn.stdout
        if asked is None or said is None:
            raise SystemExit("spawn.py does not start")
        asked.write(json.dumps([command, str(cwd), self.env]) + "\n")
        asked.flush()
        took, memory, code = json.loads(said.readline())
        if code:
            tail = Path(self.log.name).read_bytes()[-1500:].decode("utf-8", "replace")
            raise SystemExit(f"{' '.join(command[:6])} failed with {code}:\n{tail}")
        return took, memory

    def interleave(self, contestants: dict[str, Contestant]) -> dict[str, Timed]:
        """Time each contestant after a warm-up, in turns."""
        found = {name: Timed([]) for name in contestants}
        for turn in range(WARM_UPS + self.runs):
            for name, contestant in contestants.items():
                seconds, memory = self.run(contestant.command, contestant.where)
                if contestant.reset:
                    self.run(contestant.reset, contestant.where)
                if turn >= WARM_UPS:
                    found[name].seconds.append(seconds)
                    found[name].memory = max(found[name].memory, memory)
        return found

    def patchq(self, root: Path, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "patchq", "--root", str(root), *arguments]

    def copy(self, source: Path, name: str) -> Path:
        subprocess.run(["cp", "-a", str(source), str(self.top / name)], check=True)
        return self.top / name


def peers_there() -> dict[str, str]:
    """The version of each peer; those that are not there are installed where that can be done."""
    missing = [package for program, package in PEERS.items() if shutil.which(program) is None]
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *missing]):
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found = {}
    for program in ("git", *PEERS):
        if shutil.which(program):
            said = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
            found[program] = said.split("\n")[0]
    return found


def head_of(tree: Path) -> str:
    """The commit that a tree is on: branches move, this does not."""
    done = subprocess.run(["git", "rev-parse", "HEAD"], cwd=tree, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def measure_apply(
    bench: Bench, root: Path, base: str, clean: Path, count: int, have: dict[str, str]
) -> dict[str, Timed]:
    """apply, apply again, and the peers, on one series."""
    bodies = [str(p) for p in sorted((root / SERIES_NAME).glob(f"*/{base}.patch"))]
    if len(bodies) != count:
        raise SystemExit(f"{root} has {len(bodies)} bodies, not {count}")
    ours, am = bench.copy(clean, f"ours-{count}"), bench.copy(clean, f"am-{count}")
    again = bench.copy(clean, f"again-{count}")
    apply, unapply = (bench.patchq(root, what, str(ours)) for what in ("apply", "unapply"))
    bench.run(bench.patchq(root, "apply", str(again)), again)
    keep = ["--keep-non-patch", "--keep-cr"]
    once: dict[str, tuple[float, float]] = {}
    contestants: dict[str, Contestant] = {
        "git am -3": Contestant(
            ["git", "am", "-q", "-3", *keep, *bodies], am, ["git", "reset", "-q", "--hard", head_of(clean)]
        ),
        "patchq apply": Contestant(apply, ours, unapply),
        "patchq apply, applied": Contestant(bench.patchq(root, "apply", str(again)), again),
    }
    if "quilt" in have:
        tree = bench.copy(clean, f"quilt-{count}")
        (tree / "patches").mkdir()
        for number, body in enumerate(bodies, start=1):
            shutil.copy(body, tree / "patches" / f"{number:04}.patch")
        names = "".join(f"{n:04}.patch\n" for n in range(1, count + 1))
        (tree / "patches" / "series").write_text(names)
        push = ["quilt", "push", "-a", "-q"]
        if count >= ONCE:
            once["quilt push -a"] = bench.run(push, tree)
        else:
            contestants["quilt push -a"] = Contestant(push, tree, ["quilt", "pop", "-a", "-q"])
    if "stg" in have:
        stack = bench.copy(clean, f"stg-{count}")
        bench.run(["stg", "init"], stack)
        mbox = bench.top / f"{count}.mbox"
        mbox.write_bytes(b"".join(Path(b).read_bytes() for b in bodies))
        once["stg import"] = bench.run(["stg", "import", "-M", str(mbox)], stack)
        bench.run(["stg", "pop", "--all"], stack)
        contestants["stg push -a"] = Contestant(["stg", "push", "--all"], stack, ["stg", "pop", "--all"])
    found = bench.interleave(contestants)
    return found | {name: Timed([seconds], memory) for name, (seconds, memory) in once.items()}


def measure_cold(bench: Bench, store: Store, base: str, known: Base, clean: Path) -> dict[str, Timed]:
    """Ten patches that neither the checkout nor the cache has seen, each run others."""
    found = {"patchq apply, bodies changed": Timed([]), "git am -3, the same": Timed([])}
    ours, am = bench.copy(clean, "ours-cold"), bench.copy(clean, "am-cold")
    for turn in range(WARM_UPS + bench.runs):
        root = bench.top / f"cold-{turn}"
        make_series(root, store, base, known, 10, SEED + 1 + turn)
        bodies = [str(p) for p in sorted((root / SERIES_NAME).glob(f"*/{base}.patch"))]
        one = bench.run(["git", "am", "-q", "-3", *bodies], am)
        two = bench.run(bench.patchq(root, "apply", str(ours)), ours)
        bench.run(["git", "reset", "-q", "--hard", head_of(clean)], am)
        bench.run(bench.patchq(root, "unapply", str(ours)), ours)
        if turn >= WARM_UPS:
            for name, (seconds, memory) in zip(found, (two, one), strict=True):
                found[name].seconds.append(seconds)
                found[name].memory = max(found[name].memory, memory)
    return found


def measure_looking(bench: Bench, root: Path, applied: Path) -> dict[str, Timed]:
    """What only looks."""
    return bench.interleave(
        {
            "git status": Contestant(["git", "status", "--short"], applied),
            "patchq status CHECKOUT": Contestant(bench.patchq(root, "status", str(applied)), applied),
            "patchq status": Contestant(bench.patchq(root, "status"), applied),
            "patchq --help": Contestant(bench.patchq(root, "--help"), applied),
            "python -c pass": Contestant([sys.executable, "-c", "pass"], applied),
        }
    )


def measure_forecast(bench: Bench, root: Path, bases: dict[str, str], clean: Path) -> dict[str, Timed]:
    """The matrix, cold and warm, beside worktrees and git am -3, patch by patch."""
    cold, warm = Timed([]), Timed([])
    for turn in range(WARM_UPS + bench.runs):
        for left in ("forecast", "lanes", "parsed"):
            shutil.rmtree(bench.cache / left, ignore_errors=True)
        for timed in (cold, warm):
            seconds, memory = bench.run(bench.patchq(root, "forecast", "--all"), bench.top)
            if turn >= WARM_UPS:
                timed.seconds.append(seconds)
                timed.memory = max(timed.memory, memory)
    clone = bench.top / "forecast-clone"
    bench.run(["git", "clone", "-q", "--shared", str(clean), str(clone)], bench.top)
    bodies = [str(p) for p in sorted((root / SERIES_NAME).glob(f"*/{next(iter(bases))}.patch"))]
    began = time.perf_counter()
    for base, commit in bases.items():
        tree = bench.top / f"worktree-{base}"
        fetch = ["git", "fetch", "-q", str(bench.cache / "store.git"), commit]
        for command in (fetch, ["git", "worktree", "add", "-q", "--detach", str(tree), commit]):
            subprocess.run(command, cwd=clone, env=bench.env, check=True, stdout=bench.log, stderr=bench.log)
        for body in bodies:
            am = ["git", "am", "-q", "-3", "--keep-non-patch", "--keep-cr", body]
            done = subprocess.run(
                am, cwd=tree, env=bench.env, check=False, stdout=bench.log, stderr=bench.log
            )
            if done.returncode:
                abort = ["git", "am", "--abort"]
                subprocess.run(abort, cwd=tree, env=bench.env, check=True, stdout=bench.log, stderr=bench.log)
    plain = Timed([time.perf_counter() - began])
    return {
        "patchq forecast --all, cold": cold,
        "patchq forecast --all, warm": warm,
        "worktrees and git am -3": plain,
    }


@dataclass(frozen=True)
class Goal:
    """A goal: what is held against what, and how much it may be. `unit` is `times`, or `s` and `MB` for plain figures."""

    what: str
    value: float
    most: float
    unit: str = "times"

    @property
    def row(self) -> str:
        """Its line of the table."""
        shown = f"{self.value:.2f} ×" if self.unit == "times" else f"{self.value:.3g} {self.unit}"
        limit = f"≤ {self.most:g} ×" if self.unit == "times" else f"≤ {self.most:g} {self.unit}"
        return f"| {self.what} | {limit} | {shown} | {'met' if self.value <= self.most else 'missed'} |"


def goals(
    found: dict[int, dict[str, Timed]],
    looking: dict[str, Timed],
    cold: dict[str, Timed],
    forecast: dict[str, Timed],
) -> list[Goal]:
    """The goals that can be judged by what was measured."""
    rows = []
    for count, most in ((10, 1.0), (100, 0.25), (1000, 0.10)):
        if count in found:
            ratio = found[count]["patchq apply"].median / found[count]["git am -3"].median
            rows.append(Goal(f"`apply`, {count} patches, of `git am -3`", ratio, most))
    if {100, 1000} <= set(found):
        per = found[1000]["patchq apply"].median / 10 / found[100]["patchq apply"].median
        rows.append(Goal("`apply`, time per patch at 1,000, of that at 100", per, 1.0))
    if 10 in found:
        again = found[10]["patchq apply, applied"].median / found[10]["git am -3"].median
        rows.append(Goal("`apply` when already applied, of `git am -3` of ten", again, 0.5))
    status = looking["patchq status CHECKOUT"].median / looking["git status"].median
    rows.append(Goal("`status CHECKOUT`, of `git status` (150 ms where that takes 24)", status, 150 / 24))
    rows.append(Goal("`--help`", looking["patchq --help"].median, 0.120, "s"))
    fresh = [t.median for t in cold.values()]
    rows.append(Goal("ten patches from cold (bodies changed), of `git am -3`", fresh[0] / fresh[1], 1.5))
    first, warm, plain = (t.median for t in forecast.values())
    rows.append(Goal("`forecast`, 10 × 7, cold", first, 2.0, "s"))
    rows.append(Goal("`forecast`, 10 × 7, warm", warm, 0.3, "s"))
    rows.append(Goal("`forecast` cold, of worktrees and `git am -3`", first / plain, 0.1))
    if 1000 in found:
        rows.append(Goal("memory of `apply` at 1,000 patches", found[1000]["patchq apply"].memory, 150, "MB"))
    return rows


def floors(sections: dict[str, dict[str, Timed]]) -> list[str]:
    """What the missed goals cannot go below, and what is above that, by the figures of this run."""
    looking = {name: t.median * 1000 for name, t in sections["Looking"].items()}
    line, status = looking["patchq --help"], looking["git status"]
    text = [
        f"What holds the missed ones up: Python ({looking['python -c pass']:.0f} ms) and Typer make `--help` take {line:.0f} ms, which is the floor",
        f"of every command; `git status` ({status:.0f} ms) runs beside the imports. `status` is {looking['patchq status CHECKOUT'] - line:.0f} ms above that floor: importing the",
        "engine, the lock's library, reading the series from the cache, and five git processes.",
    ]
    ten = sections.get("10 patches")
    if ten:
        apply, applied, am = (
            ten[name].median * 1000 for name in ("patchq apply", "patchq apply, applied", "git am -3")
        )
        text += [
            f"`apply` of ten ({apply:.0f} ms) is `apply` of what is applied ({applied:.0f} ms) and {apply - applied:.0f} ms for the switch: files are written beside the work tree,",
            "brought to the disk, and renamed; the journal and the log are brought to the disk too, which `git am` does not do. With no switch",
            f"at all the floor would be {line / am:.2f} × of `git am -3`. From cold, parsing and placing the bodies and writing a pack come on top.",
        ]
    return text


def write_results(
    out: Path, have: dict[str, str], sections: dict[str, dict[str, Timed]], rows: list[Goal]
) -> None:
    """The Markdown of one run."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    ).stdout
    machine = f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end"
    text = [
        "# patchq beside git am, quilt and StGit",
        "",
        f"Written by `ci/bench/apply.py` at commit {commit.strip()} on {platform.system()} {machine}; {', '.join(have.values())}.",
        "Whole processes on the real vLLM tree; medians, in milliseconds; runs of the tools in turns. `stg import`, quilt at 1,000 and",
        "the worktrees were run once. 100 and 1,000 patches are synthetic, over real files.",
        "",
        "| goal | limit | measured | |",
        "| --- | --- | --- | --- |",
        *(r.row for r in rows),
        "",
        *floors(sections),
    ]
    for title, timings in sections.items():
        text += [
            "",
            f"## {title}",
            "",
            "| | median | least | most | memory |",
            "| --- | --- | --- | --- | --- |",
        ]
        text += [
            f"| {name} | {t.median * 1000:,.0f} | {min(t.seconds) * 1000:,.0f} | {max(t.seconds) * 1000:,.0f} | "
            f"{t.memory:.0f} MB |"
            if t.memory
            else f"| {name} | {t.median * 1000:,.0f} | | | |"
            for name, t in timings.items()
        ]
    out.write_text("\n".join(text) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10,100,1000")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("RESULTS.md"))
    chosen = parser.parse_args()
    root = find_root(None, Path.cwd())
    series = load_series(root)
    base, known = series.base(None)
    store = Store()
    bases = {n: fetch_base(n, b, make_progress()) for n, b in series.lock.bases.items() if b.verified}
    have = peers_there()
    with tempfile.TemporaryDirectory(prefix="patchq-bench-", dir=cache_dir()) as made:
        bench = Bench(Path(made), chosen.runs)
        clean = bench.top / "clean"
        bench.run(bench.patchq(root, "apply", "--create", str(clean)), bench.top)
        bench.run(["git", "checkout", "-q", base], clean)
        bench.run(["git", "branch", "-q", "-D", f"patchq/{base}"], clean)
        bench.run(["git", "gc", "-q", "--prune=now"], clean)
        sections: dict[str, dict[str, Timed]] = {}
        applied = bench.copy(clean, "applied")
        bench.run(bench.patchq(root, "apply", str(applied)), applied)
        looking = sections["Looking"] = measure_looking(bench, root, applied)
        forecast = sections["Forecast, ten patches, seven bases"] = measure_forecast(
            bench, root, bases, clean
        )
        cold = sections["Ten patches never seen before"] = measure_cold(bench, store, base, known, clean)
        found: dict[int, dict[str, Timed]] = {}
        for count in (int(n) for n in chosen.sizes.split(",")):
            project = root
            if count != len(series.lock.lanes[base]):
                project = bench.top / f"project-{count}"
                make_series(project, store, base, known, count, SEED)
            found[count] = sections[f"{count:,} patches"] = measure_apply(
                bench, project, base, clean, count, have
            )
        write_results(chosen.out, have, sections, goals(found, looking, cold, forecast))
    print(chosen.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
