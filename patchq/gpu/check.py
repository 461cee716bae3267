"""Compiling what patches declare for a card that is not here, and holding it against the card's limits."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from patchq.cache import cache_dir, write_atomically
from patchq.gpu.cubin import NotACubinError, read_cubin
from patchq.gpu.extract import extract_functions
from patchq.gpu.limits import SHARED_BYTES, capability_of, plain
from patchq.gpu.probes import humming_kernels, triton_kernels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchq.git.objects import Objects
    from patchq.progress import Progress
    from patchq.series.patch import Kernel
    from patchq.testing.environment import Environment

TIME = 600
"""Seconds that one call of a compiler may take."""
Status = Literal["ok", "does not compile", "too much shared memory", "spills", "another target", "not run"]


@dataclass(frozen=True)
class Checked:
    """One kernel, compiled for one target.

    Attributes:
        patch: the patch that it belongs to.
        name: of the kernel.
        target: what it was compiled for.
        status: `ok`, or what is wrong with it.
        detail: the compiler's words, or the figures.
        shared_bytes: a block's, static and dynamic; None where it was not compiled.
        limit_bytes: what a block may have on the target.
        registers: a thread's.
        stack_bytes: a thread's; above zero, the kernel spills registers.
        declared_bytes: of stack that the patch says the kernel takes at most.
        sha256: of the cubin.
        cached: whether it was compiled before.
    """

    patch: str
    name: str
    target: str
    status: Status
    limit_bytes: int
    detail: str = ""
    shared_bytes: int | None = None
    registers: int | None = None
    stack_bytes: int | None = None
    declared_bytes: int = 0
    sha256: str = ""
    cached: bool = False

    @property
    def ok(self) -> bool:
        """Whether it compiles and keeps within the card's limits; what was not run is not."""
        return self.status == "ok"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "ok": self.ok}


@dataclass(frozen=True)
class Wanted:
    """A kernel to compile: the patch that declares it, and the tree that defines it."""

    patch: str
    kernel: Kernel
    tree: str

    def __hash__(self) -> int:
        return id(self)


def check_kernels(
    objects: Objects,
    wanted: Sequence[Wanted],
    targets: Sequence[str],
    environment: Environment,
    progress: Progress,
) -> list[Checked]:
    """Compile kernels for targets and judge them; what was compiled before, of the same content, is taken from the cache.

    Args:
        objects: where trees are read.
        wanted: the kernels.
        targets: such as `sm_86`; each one of `SHARED_BYTES`.
        environment: an interpreter with the compilers.
        progress: told how far it is.
    """
    asked = [(w, target) for target in targets for w in wanted]
    sources = {w: _source(objects, w) for w in wanted}
    with progress.task("compiling kernels", total=len(asked), unit="steps") as step:

        def run(pair: tuple[Wanted, str]) -> list[Checked]:
            found = _check(sources[pair[0]], environment, *pair)
            step(1)
            return found

        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return [checked for found in pool.map(run, asked) for checked in found]


def _source(objects: Objects, wanted: Wanted) -> str | None:
    """The file that defines a Triton kernel, cut down to its functions; None where the tree has no such file."""
    if not wanted.kernel.triton:
        return ""
    entry = objects.lookup(wanted.tree, wanted.kernel.triton)
    if entry is None:
        return None
    return extract_functions(objects.blob(entry.oid).decode("utf-8", "replace"))


def _check(source: str | None, environment: Environment, wanted: Wanted, target: str) -> list[Checked]:
    kernel = wanted.kernel
    limit = SHARED_BYTES[plain(target)]
    nothing = Checked(wanted.patch, kernel.name, target, "not run", limit)
    if source is None:
        return [replace(nothing, status="does not compile", detail=f"the tree has no {kernel.triton}")]
    if kernel.humming and shutil.which("nvcc") is None:
        return [replace(nothing, detail="needs nvcc, which is not on PATH")]
    if kernel.humming and target not in humming_kernels.CARDS:
        return [replace(nothing, detail=f"no card of {target} is described")]
    key = _key(source, environment, kernel, target)
    folder = cache_dir() / "cubins" / key
    note = folder / "kernels.json"
    cached = note.is_file()
    if not cached:
        found = (
            _compile_triton(source, environment, kernel, target)
            if kernel.triton
            else _compile_humming(environment, kernel, target)
        )
        if found is None:
            return [replace(nothing, detail="the compiler gave no answer in its time")]
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps(found, indent=1).encode())
    known: list[dict[str, Any]] = json.loads(note.read_bytes())
    if not known:
        return [replace(nothing, status="does not compile", detail="zero kernels compiled")]
    blank = replace(nothing, cached=cached)
    return [judge_kernel(blank, answer, allowed=kernel.spills) for answer in known]


def _key(source: str, environment: Environment, kernel: Kernel, target: str) -> str:
    probe = triton_kernels if kernel.triton else humming_kernels
    parts = [
        Path(str(probe.__file__)).read_bytes(),
        source.encode(),
        environment.key.encode(),
        target.encode(),
    ]
    parts.append(json.dumps({**asdict(kernel), "spills": 0}, sort_keys=True).encode())
    if kernel.humming:
        parts.append(subprocess.run(["nvcc", "--version"], capture_output=True, check=False).stdout)
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def judge_kernel(blank: Checked, answer: dict[str, Any], *, allowed: int = 0) -> Checked:
    """What a compiled kernel comes to.

    Args:
        blank: patch, name, target and limit.
        answer: `error`, or the kernel as `Cubin.as_dict` gives it, and `label` where one layer has several.
        allowed: bytes of stack that the patch says the kernel takes.
    """
    name = f"{blank.name} {answer['label']}" if answer.get("label") else blank.name
    if "error" in answer:
        return replace(blank, name=name, status="does not compile", detail=answer["error"])
    found = replace(
        blank,
        name=name,
        declared_bytes=allowed,
        shared_bytes=answer["shared_bytes"],
        registers=answer["registers"],
        stack_bytes=answer["stack_bytes"],
        sha256=answer["sha256"],
    )
    if plain(answer["target"]) != plain(blank.target):
        return replace(found, status="another target", detail=f"the cubin is for {answer['target']}")
    if answer["shared_bytes"] > blank.limit_bytes:
        over = answer["shared_bytes"] - blank.limit_bytes
        return replace(found, status="too much shared memory", detail=f"{over:,} bytes above the limit")
    stack = answer["stack_bytes"]
    if stack > allowed:
        told = f"declared are {allowed:,}" if allowed else "none are declared"
        return replace(found, status="spills", detail=f"spills {stack:,} bytes, {told}")
    detail = f"spills {stack:,} bytes, declared" if stack else ""
    return replace(found, status="ok", detail=detail)


def _constants(kernel: Kernel, target: str) -> dict[str, bool | int | str | None]:
    found = dict(kernel.constants)
    for bound, values in kernel.below.items():
        if capability_of(target) < capability_of(bound):
            found.update(values)
    return found


def _compile_triton(
    source: str, environment: Environment, kernel: Kernel, target: str
) -> list[dict[str, Any]] | None:
    major, minor = capability_of(target)
    with tempfile.TemporaryDirectory(prefix="patchq-") as name:
        top = Path(name)
        (top / "kernels.py").write_text(source, encoding="utf-8")
        job = {
            "module": str(top / "kernels.py"),
            "function": kernel.function,
            "types": kernel.types,
            "constants": _constants(kernel, target),
            "warps": kernel.warps,
            "stages": kernel.stages,
            "capability": 10 * major + minor,
            "out": str(top / "kernel.cubin"),
        }
        answers = _run(environment, triton_kernels.__file__, [job], top)
        if not answers:
            return answers
        if "error" in answers[0]:
            return answers
        data = (top / "kernel.cubin").read_bytes()
        return [read_cubin(data, dynamic=answers[0]["shared"], origin="triton").as_dict()]


def _compile_humming(environment: Environment, kernel: Kernel, target: str) -> list[dict[str, Any]] | None:
    with tempfile.TemporaryDirectory(prefix="patchq-") as name:
        top = Path(name)
        job = {"layer": kernel.layer, "gemm": kernel.humming, "target": target}
        answers = _run(environment, humming_kernels.__file__, job, top)
        if answers is None:
            return None
        found = []
        for answer in answers:
            if "error" in answer:
                return [answer]
            try:
                cubin = read_cubin(Path(answer["path"]).read_bytes(), origin="humming")
            except (OSError, NotACubinError) as error:
                return [{"error": str(error)}]
            if not cubin.shared_bytes:
                return [
                    {"error": f"{answer['name']} does not say in its cubin how much shared memory it takes"}
                ]
            found.append({**cubin.as_dict(), "label": answer["name"]})
        return found


def _run(environment: Environment, script: str, job: Any, top: Path) -> list[dict[str, Any]] | None:
    """What a probe says, line by line; None where it did not end in its time."""
    file = top / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    env = {
        "PATH": f"{environment.python.parent}:{os.environ.get('PATH', os.defpath)}",
        "HOME": str(top),
        "TMPDIR": str(top),
        "TRITON_CACHE_DIR": str(top / "triton"),
        "HUMMING_CACHE_DIR": str(top / "humming"),
        "HUMMING_COMPILER": "nvcc",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONWARNINGS": "ignore",
        "LANG": "C.UTF-8",
    }
    try:
        done = subprocess.run(
            [environment.python, script, str(file)],
            env=env,
            cwd=top,
            capture_output=True,
            check=False,
            timeout=TIME,
        )
    except subprocess.TimeoutExpired:
        return None
    lines = [line for line in done.stdout.decode("utf-8", "replace").splitlines() if line.startswith("{")]
    if not lines and done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return [
            {"error": f"the compiler ended with status {done.returncode}: {said[-1] if said else ''}"[:300]}
        ]
    return [json.loads(line) for line in lines]
