"""From a patched checkout to an interpreter that runs it: what must be rebuilt and why, and doing it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from patchq.cache import cache_dir, key_of, locked, scratch_dir
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.text import listed
from patchq.vllm.distribution import (
    REQUIREMENTS,
    Distribution,
    describe,
    flat_requirements,
    local_version,
    write_wheel,
)
from patchq.vllm.extensions import PROJECTS, ensure_extensions, find_release
from patchq.vllm.installing import PIP_INSTALL, run_step
from patchq.vllm.placing import place_extensions, remove_extensions
from patchq.vllm.rules import read_text
from patchq.vllm.touched import KINDS, Kind, Touched, classify, strongest, vendored_directories

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects
    from patchq.progress import Progress

Device = Literal["empty", "cpu", "cuda"]
TOOLS = {"native": ("c++", "cmake"), "rust": ("cargo",), "packaging": ("c++", "cmake")}
"""Programs that a build of that kind starts; pip brings cmake where it may install."""


@dataclass(frozen=True)
class Ground:
    """What a build stands on.

    Attributes:
        base: the base's name.
        version: of the release that the base is; empty for none.
        base_tree: its tree.
        tree: the checkout's HEAD's tree.
        patches: the patches that it has.
        paths: every file that is not as in the base: by patches, by other commits, not committed, new.
        device: what the install is for.
    """

    base: str
    version: str
    base_tree: str
    tree: str
    patches: tuple[str, ...]
    paths: tuple[str, ...]
    device: Device


@dataclass(frozen=True)
class Step:
    """One thing to do, and why."""

    name: Literal["extensions", "compile", "dependencies", "install", "nothing"]
    what: str
    why: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What a checkout obliges to rebuild.

    Attributes:
        kind: what decides.
        touched: the changed files, by what they belong to.
        steps: in order.
    """

    ground: Ground
    kind: Kind
    touched: tuple[Touched, ...]
    steps: tuple[Step, ...]

    @property
    def refused(self) -> tuple[Touched, ...]:
        """The files for which there is no build."""
        return tuple(t for t in self.touched if t.kind == "refused")

    def has(self, name: str) -> bool:
        """Whether a step is part of it."""
        return any(step.name == name for step in self.steps)


def plan_build(objects: Objects, ground: Ground, *, own_build: bool, dependencies: bool) -> Plan:
    """Decide what must be rebuilt; nothing is written or fetched.

    Args:
        objects: where the trees are read.
        ground: what the build stands on.
        own_build: compile even where the release's extensions fit.
        dependencies: whether what it needs beside it may be installed.
    """
    vendored = vendored_directories(read_text(objects, ground.base_tree, "setup.py") or "")

    def tracked(path: str) -> bool:
        return objects.lookup(ground.base_tree, path) is not None

    touched = tuple(classify(path, vendored, tracked) for path in ground.paths)
    kind = strongest(touched)
    if kind == "refused":
        return Plan(ground, kind, touched, ())
    compiled = [t for t in touched if KINDS.index(t.kind) >= KINDS.index("packaging")]
    steps = []
    if ground.device == "empty":
        why = "an install for no device has none"
        if compiled:
            why += f"; what {listed([t.path for t in compiled])} would give is left out"
        steps.append(Step("nothing", "no extensions", why))
    elif compiled or own_build:
        why = "; ".join(f"{t.path}: {t.why}" for t in compiled) or "asked for"
        what = f"the tree's own build, for {ground.device}"
        steps.append(Step("compile", what, why, tuple(t.path for t in compiled)))
    else:
        steps.append(_from_release(ground))
    if dependencies:
        changed = tuple(t.path for t in touched if t.kind == "requirements")
        why = f"{listed(changed)} changed" if changed else "as the base's release asks for"
        steps.append(Step("dependencies", "what it needs beside it, by pip", why, changed))
    if steps[0].name != "compile":
        python = tuple(t.path for t in touched if t.kind == "python")
        why = f"{len(python)} changed Python files are taken from the checkout as they are"
        steps.append(Step("install", "an editable install of the checkout", why, python))
    return Plan(ground, kind, touched, tuple(steps))


def _from_release(ground: Ground) -> Step:
    """The step that takes the extensions of exactly this release.

    Raises:
        RefusedError: there is none.
    """
    other = "Compile them: add --compile; or take --device empty."
    if not ground.version:
        raise RefusedError(
            f"{ground.base} is no release of vLLM, so that no released wheel has its extensions.", other
        )
    release = find_release(ground.device, ground.version)
    if release is None:
        project = PROJECTS[ground.device]
        raise RefusedError(
            f"the package index has no wheel of {project} {ground.version} for this machine, and another version's "
            "extensions would not be those of the base.",
            other,
        )
    size = f", {release.size / 1e6:.0f} MB" if release.size else ""
    return Step(
        "extensions",
        f"from {release.filename} (sha256 {release.sha256[:12]}…{size})",
        f"nothing that is compiled differs from {ground.base}",
    )


def own_environment(checkout: Checkout, device: str, progress: Progress) -> Path:
    """The interpreter of an environment that is kept for a checkout and a device, made where it is not there.

    Raises:
        EnvironmentLacksError: it cannot be made.
    """
    directory = cache_dir() / "builds" / f"{key_of(checkout.top)}-{device}"
    python = directory / "bin" / "python"
    with locked(f"build-{directory.name}", f"making an environment for {checkout.top}"):
        if not python.exists():
            directory.parent.mkdir(exist_ok=True)
            with progress.task("making an environment", total=None, unit="seconds") as step:
                command = [sys.executable, "-m", "venv", str(directory)]
                run_step(
                    command,
                    dict(os.environ),
                    step,
                    "the environment cannot be made",
                    "Name one: --python EXE.",
                )
    return python


def carry_out(
    objects: Objects, checkout: Checkout, plan: Plan, python: Path, progress: Progress
) -> dict[str, Any]:
    """Do what a plan says, in an interpreter's environment.

    Args:
        objects: where the trees are read.
        checkout: the checkout, locked.
        plan: of this checkout.
        python: the interpreter.
        progress: told how far it is.

    Returns:
        What it was built from: base, tree, patches, device, the wheel and its hash.

    Raises:
        EnvironmentLacksError: a program or the network is missing, or what is started fails; its words are quoted.
        RefusedError: extensions of somebody else's making are in the checkout.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    ground = plan.ground
    record: dict[str, Any] = {
        "base": ground.base,
        "base_tree": ground.base_tree,
        "tree": ground.tree,
        "patches": list(ground.patches),
        "device": ground.device,
        "class": plan.kind,
        "wheel": "",
        "wheel_sha256": "",
    }
    _require_pip(python, env)
    if plan.has("compile"):
        _require_tools(plan)
        remove_extensions(checkout)
        _compile(checkout, plan, python, env, progress)
        return record
    metadata = points = ""
    if plan.has("extensions"):
        found = ensure_extensions(
            ground.device, ground.version, lambda p: objects.lookup(ground.base_tree, p) is not None, progress
        )
        place_extensions(checkout, found, progress)
        metadata, points = found.text("METADATA"), found.text("entry_points.txt")
        record |= {"wheel": found.wheel, "wheel_version": ground.version, "wheel_sha256": found.sha256}
    else:
        remove_extensions(checkout)
    name = REQUIREMENTS[ground.device]
    before = flat_requirements(lambda path: read_text(objects, ground.base_tree, path) or "", name)
    after = flat_requirements(lambda path: _text_of(checkout.top / path), name)
    version = local_version(ground.version, ground.device, ground.tree)
    described = describe(version, metadata, points, before, after)
    _install(checkout, Distribution(version, *described, record), plan, python, env, progress)
    return record


def _text_of(path: Path) -> str:
    return path.read_text("utf-8", "replace") if path.is_file() else ""


def _install(
    checkout: Checkout,
    distribution: Distribution,
    plan: Plan,
    python: Path,
    env: dict[str, str],
    progress: Progress,
) -> None:
    """Install the editable wheel: with what it needs where that is planned, then itself in any case."""
    remedy = "Check the network and pip's settings; --no-deps leaves what it needs beside it to you."
    directory = Path(tempfile.mkdtemp(dir=scratch_dir()))
    try:
        wheel = str(write_wheel(directory, distribution, checkout.top))
        with progress.task(f"installing {distribution.filename}", total=None, unit="seconds") as step:
            if plan.has("dependencies"):
                run_step([str(python), *PIP_INSTALL, wheel], env, step, "pip cannot install it", remedy)
            alone = [str(python), *PIP_INSTALL, "--no-deps", "--force-reinstall", "--no-index", wheel]
            run_step(alone, env, step, "pip cannot install it", remedy)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _compile(checkout: Checkout, plan: Plan, python: Path, env: dict[str, str], progress: Progress) -> None:
    """The tree's own editable build; vLLM's way with precompiled extensions would not look at what was changed."""
    ground = plan.ground
    env = {k: v for k, v in env.items() if not k.startswith("VLLM_USE_PRECOMPILED")}
    env |= {
        "VLLM_TARGET_DEVICE": ground.device,
        "SETUPTOOLS_SCM_PRETEND_VERSION": ground.version or "0.0.0",
    }
    alone = [] if plan.has("dependencies") else ["--no-deps", "--no-build-isolation", "--no-index"]
    command = [str(python), *PIP_INSTALL, *alone, "--editable", str(checkout.top)]
    with progress.task(f"compiling for {ground.device}", total=None, unit="seconds") as step:
        run_step(
            command,
            env,
            step,
            "the tree's own build fails",
            f"See all of it: VLLM_TARGET_DEVICE={ground.device} {' '.join(command)}",
        )


def _require_pip(python: Path, env: dict[str, str]) -> None:
    remedy = f"Give it pip: {python} -m ensurepip; or name another with --python."
    try:
        run_step([str(python), "-m", "pip", "--version"], env, lambda _: None, f"{python} has no pip", remedy)
    except OSError as error:
        raise EnvironmentLacksError(f"{python} cannot be run: {error.strerror}.", remedy) from None


def _require_tools(plan: Plan) -> None:
    """Refuse to begin a build that would end in the middle for want of a compiler.

    Raises:
        EnvironmentLacksError: naming what is missing.
    """
    kinds = {t.kind for t in plan.touched}
    wanted: Iterable[str] = {tool for kind in kinds for tool in TOOLS.get(kind, ())} or {"c++", "cmake"}
    home = os.environ.get("CUDA_HOME", "")
    cuda = ["nvcc"] if plan.ground.device == "cuda" and not Path(home, "bin", "nvcc").is_file() else []
    missing = sorted(tool for tool in {*wanted, *cuda} if shutil.which(tool) is None)
    if plan.has("dependencies"):
        missing = [tool for tool in missing if tool != "cmake"]
    if missing:
        why = listed([t.path for t in plan.touched if KINDS.index(t.kind) >= KINDS.index("packaging")])
        raise EnvironmentLacksError(
            f"{', '.join(missing)} is not on PATH, and {why or 'what was asked for'} must be compiled.",
            "Install it and run this again.",
        )


def changed_paths(lists: Sequence[Iterable[str]]) -> tuple[str, ...]:
    """The union of some lists of paths, in order."""
    return tuple(sorted({path for paths in lists for path in paths}))
