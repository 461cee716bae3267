"""Environments for vLLM's tests: the tree's own requirements, and the released CPU extensions, so that its CPU platform is real.

With the extensions in an unbuilt tree and a `vllm-X+cpu.dist-info` on the path, vLLM takes itself for an installed CPU
build: the engine and the server run, and nothing is compiled (facts: running vLLM's tests with no GPU).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from patchq.cache import cache_dir, locked, write_atomically
from patchq.errors import EnvironmentLacksError, InputError
from patchq.testing.environment import Environment, key_of_facts, probe
from patchq.vllm import PROJECT
from patchq.vllm.extensions import PROJECTS, Extensions, ensure_extensions
from patchq.vllm.installing import PIP_INSTALL, run_step
from patchq.vllm.layout import release_of
from patchq.vllm.requirements import Requirements, read_requirements

if TYPE_CHECKING:
    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.lock import Base

FIRST_ESTIMATE = 100
"""Seconds that an environment takes on two cores with a near index; later ones say what the last one took."""
SIZE = "3 GB"
FAILED = "the test environment cannot be made"
REMEDY = "Check the network and pip's settings; --torch VERSION takes another torch, --python EXE an interpreter of yours."
VARIABLES = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "HF_HOME": "{sandbox}/cache/huggingface",
    "HUMMING_CACHE_DIR": "{sandbox}/cache/humming",
    "TORCHINDUCTOR_CACHE_DIR": "{sandbox}/cache/inductor",
    "TRITON_CACHE_DIR": "{sandbox}/cache/triton",
    "VLLM_CACHE_ROOT": "{sandbox}/cache/vllm",
    "VLLM_CONFIG_ROOT": "{sandbox}/home/vllm",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_TARGET_DEVICE": "cpu",
}
GIVEN_VARIABLES = {
    k: v for k, v in VARIABLES.items() if k not in {"CUDA_VISIBLE_DEVICES", "VLLM_TARGET_DEVICE"}
}
"""For an interpreter that somebody made for a device of theirs."""
PRELOAD = ("torch", "transformers", "vllm", "vllm.entrypoints.llm")
"""What vLLM's own conftest imports, and so every test."""


def ensure_environment(
    name: str,
    base: Base,
    objects: Objects,
    tree: str,
    torch: str | None,
    progress: Progress,
    extensions: str | None = None,
) -> Environment:
    """The environment of a base, made where it is not there.

    Args:
        name: the base's name.
        base: what the lock says of it.
        objects: where its tree is read.
        tree: its tree.
        torch: a version of torch instead of the pinned one.
        progress: told how far it is.
        extensions: the release whose compiled CPU extensions to take instead of the base's own.

    Raises:
        EnvironmentLacksError: it cannot be made (what pip said is quoted), or there are no such extensions.
        InputError: extensions are named for a tree that has none.
    """
    wanted = read_requirements(objects, tree, torch)
    if extensions is not None and not wanted.compiled:
        raise InputError(
            f"{name} has nothing compiled to take from another release.", "Leave out --extensions."
        )
    directory = _ensure_venv(wanted, progress)
    known = json.loads((directory / "environment.json").read_bytes())
    version = release_of(name, base)
    released: Extensions | None = None
    if extensions is not None:
        released = ensure_extensions("cpu", extensions, None, progress)
        if not released.wheel:
            raise EnvironmentLacksError(
                f"the package index has no compiled CPU extensions of {PROJECT} {extensions} for this machine.",
                f"Name a release that has a {PROJECTS['cpu']} wheel, such as the one before {name}.",
            )
    elif wanted.compiled and version:
        released = ensure_extensions(
            "cpu", version, lambda path: objects.lookup(tree, path) is not None, progress
        )
    overlay = {n: f for n, f in released.files.items() if n.endswith(".so")} if released else {}
    extension = released.sha256 if released else "none"
    path = (_distribution(version or extensions or "", released, chosen=extensions),) if released else ()
    facts = {
        "kind": "made",
        "python": known["python"],
        "torch": known["torch"],
        "torch_chosen": "yes" if wanted.chosen else "no",
        "cuda": known["cuda"] or "",
        "extensions_sha256": extension,
        "distributions_sha256": key_of_facts(known["distributions"]),
    }
    if extensions is not None:
        facts["extensions_of"] = extensions
    return Environment(
        directory / "bin" / "python",
        key_of_facts(facts, VARIABLES),
        facts,
        overlay,
        path,
        VARIABLES,
        PRELOAD if wanted.compiled else (),
        known["cuda"] or "",
    )


def ensure_interpreter(objects: Objects, tree: str, progress: Progress) -> Environment:
    """The interpreter of a tree's environment alone: its compilers, and no extensions; made where it is not there.

    Raises:
        EnvironmentLacksError: it cannot be made.
    """
    directory = _ensure_venv(read_requirements(objects, tree, None), progress)
    known = json.loads((directory / "environment.json").read_bytes())
    facts = {
        "kind": "made",
        "python": known["python"],
        "distributions_sha256": key_of_facts(known["distributions"]),
    }
    return Environment(directory / "bin" / "python", key_of_facts(facts), facts)


def distributions(wanted: Requirements, progress: Progress) -> list[str]:
    """What the environment of these requirements has installed, as `name==version`; it is made where it is not there.

    Raises:
        EnvironmentLacksError: it cannot be made.
    """
    found: list[str] = json.loads((_ensure_venv(wanted, progress) / "environment.json").read_bytes())[
        "distributions"
    ]
    return found


def environment_state(objects: Objects, tree: str, torch: str | None = None) -> str:
    """For the doctor: `ready`, or what making it will take."""
    directory = _directory(read_requirements(objects, tree, torch))
    return (
        "ready"
        if (directory / "environment.json").is_file()
        else f"to be made on first use: about {_estimate()} s, {SIZE}"
    )


def _directory(wanted: Requirements) -> Path:
    import platform

    key = key_of_facts(wanted.text, platform.python_version(), platform.machine(), platform.system())
    return cache_dir() / "environments" / key


def _estimate() -> int:
    took = [
        json.loads(f.read_bytes())["seconds"]
        for f in (cache_dir() / "environments").glob("*/environment.json")
    ]
    return round(max(took)) if took else FIRST_ESTIMATE


def _ensure_venv(wanted: Requirements, progress: Progress) -> Path:
    directory = _directory(wanted)
    note = directory / "environment.json"
    if note.is_file():
        return directory
    with locked(f"environment-{directory.name}", "making a test environment"):
        if note.is_file():
            return directory
        directory.parent.mkdir(exist_ok=True)
        draft = directory.with_name(f".{directory.name}.new")
        shutil.rmtree(draft, ignore_errors=True)
        began = time.monotonic()
        try:
            _fill(draft, wanted, progress)
            found = probe(draft / "bin" / "python")
            torch = next(
                (d.partition("==")[2] for d in found["distributions"] if d.startswith("torch==")), ""
            )
            document = {
                **found,
                "torch": torch,
                "seconds": round(time.monotonic() - began, 1),
                "requirements": wanted.text,
            }
            write_atomically(draft / "environment.json", json.dumps(document, indent=1).encode())
            _rewrite_scripts(draft, directory)
            shutil.rmtree(directory, ignore_errors=True)
            draft.rename(directory)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return directory


def _fill(draft: Path, wanted: Requirements, progress: Progress) -> None:
    estimate = _estimate()
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    free = shutil.disk_usage(draft.parent).free
    if wanted.torch and free < 6 * 1024**3:
        raise EnvironmentLacksError(
            f"a test environment needs 6 GB in {draft.parent}, and {free / 1e9:.1f} GB are free.",
            "Make room, or set PATCHQ_CACHE.",
        )
    what = (
        f"making the test environment with torch {wanted.torch}"
        if wanted.torch
        else "making the test environment"
    )
    with progress.task(what, total=estimate if wanted.torch else None, unit="seconds") as step:
        run_step([sys.executable, "-m", "venv", str(draft)], env, step, FAILED, REMEDY)
        requirements = draft / "requirements.txt"
        requirements.write_text(wanted.text, encoding="utf-8")
        python = str(draft / "bin" / "python")
        run_step([python, *PIP_INSTALL, "-r", str(requirements)], env, step, FAILED, REMEDY)


def _rewrite_scripts(draft: Path, final: Path) -> None:
    """Point the scripts of a virtual environment at where it is going to be."""
    old, new = os.fsencode(draft), os.fsencode(final)
    for script in (draft / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            data = script.read_bytes()
            if old in data:
                script.write_bytes(data.replace(old, new))


def _distribution(version: str, released: Extensions, *, chosen: str | None = None) -> Path:
    """A directory with the metadata that vLLM reads its version and its platform from; `+cpu` is what it looks for."""
    local = "+cpu" if released.wheel else ""
    of = f"-with-{chosen}" if chosen else ""
    top = cache_dir() / "distributions" / f"{PROJECT}-{version}{local}{of}"
    info = top / f"{PROJECT}-{version}{local}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    write_atomically(
        info / "METADATA", f"Metadata-Version: 2.1\nName: {PROJECT}\nVersion: {version}{local}\n".encode()
    )
    if points := released.text("entry_points.txt"):
        write_atomically(info / "entry_points.txt", points.encode())
    return top
