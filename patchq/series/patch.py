"""patch.yaml: what one patch is, why it is carried, and when it may go."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields, replace
from typing import Literal

from patchq.series.misplaced import MisplacedError

Gate = Literal["cpu", "compile", "gpu", "emulated", "native"]
GATES: tuple[Gate, ...] = ("cpu", "compile", "gpu", "emulated", "native")
"""The hardware levels, weakest first; `gpu` is whatever card there is."""

TARGET_PATTERN = r"sm_[0-9]{2,3}a?"
ID_PATTERN = r"[0-9]{4}-[a-z0-9]+(?:-[a-z0-9]+)*"
TITLE_PATTERN = r"^(\[[^][]+\])+ +[^\s].*$"
"""vLLM's rule for pull request titles (facts: upstream's rules)."""


@dataclass(frozen=True)
class TestGroup:
    """Tests that need one hardware level.

    Attributes:
        gate: the level.
        run: pytest files or node ids, relative to the vLLM tree.
        before: how they end without the patch's production files; a failing test unless said otherwise.
        needs: programs that they start, by name, such as nvcc; where one is not on PATH the tests are not run.
    """

    __test__ = False

    gate: Gate
    run: tuple[str, ...]
    before: Literal["fails", "collection error", "crash", "hang"] = "fails"
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.run:
            raise ValueError("a test group names at least one test file or node id")
        for test in self.run:
            if test.startswith(("-", "/")) or ".." in test.split("/"):
                raise ValueError(f"{test!r} is not a path inside the vLLM tree")


@dataclass(frozen=True)
class Kernel:
    """A kernel that a patch touches or selects, to be compiled for cards that are not at hand.

    Exactly one of `triton` and `humming` says what kind it is.

    Attributes:
        triton: the file that defines it, relative to the vLLM tree.
        function: the Triton function's name.
        types: of its run-time arguments by name, as Triton writes them (`"*bf16"`, `fp32`); `i32` where not named.
        constants: its compile-time arguments by name, and run-time ones that its caller gives None, which Triton compiles
            in; those that the tree's function does not have are left out.
        below: constants that are otherwise on targets below the named one.
        warps: of one program.
        stages: of its software pipeline; Triton's own number where None.
        spills: bytes of stack a thread that it is known to take, on any target; more is found wrong.
        humming: the kind of GEMM (`indexed`, `dense`, …); all of its kernels that a layer selects are compiled.
        layer: the layer as Humming describes it: shapes, data types, groups.
    """

    triton: str = ""
    function: str = ""
    types: dict[str, str] = field(default_factory=dict)
    constants: dict[str, bool | int | str | None] = field(default_factory=dict)
    below: dict[str, dict[str, bool | int]] = field(default_factory=dict)
    warps: int = 4
    stages: int | None = None
    spills: int = 0
    humming: str = ""
    layer: dict[str, bool | int | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.triton) == bool(self.humming):
            raise ValueError("a kernel is of triton or of humming: name one of the two")
        if self.triton and not self.function:
            raise MisplacedError("a Triton kernel needs the name of its function", "triton")
        if self.humming and not self.layer:
            raise MisplacedError("kernels of Humming need the layer that selects them", "humming")
        if self.triton.startswith(("/", "-")) or ".." in self.triton.split("/"):
            raise MisplacedError(f"{self.triton!r} is not a path inside the vLLM tree", "triton")
        for target in self.below:
            if not re.fullmatch(TARGET_PATTERN, target):
                raise MisplacedError(f"{target!r} is not a CUDA architecture such as sm_86", "below", target)

    @property
    def name(self) -> str:
        """For a person: the function, or the layer."""
        if self.triton:
            return self.function
        shape = "x".join(str(self.layer[k]) for k in ("shape_n", "shape_k") if k in self.layer)
        return f"humming {self.humming} {self.layer.get('b_dtype', '')} {shape}"


@dataclass(frozen=True)
class Upstream:
    """Where the patch stands with vLLM.

    Attributes:
        state: what upstream has of it.
        intent: whether it is meant to be sent.
        related: pull requests and issues, as `owner/repo#number`.
    """

    state: Literal["absent", "open", "merged", "rejected"]
    intent: Literal["send", "hold", "local"]
    related: tuple[str, ...] = ()


@dataclass(frozen=True)
class OnBase:
    """What is different about a patch on one base; what is not said is as it is elsewhere.

    Attributes: those of `PatchMeta` that a base can change; None where it does not.
    """

    title: str | None = None
    why: str | None = None
    changes: str | None = None
    depends: tuple[str, ...] | None = None
    because: dict[str, str] | None = None
    tests: tuple[TestGroup, ...] | None = None
    neighbours: tuple[str, ...] | None = None
    limits: tuple[str, ...] | None = None
    drop_when: str | None = None
    time_limit: int | None = None
    kernels: tuple[Kernel, ...] | None = None


@dataclass(frozen=True)
class PatchMeta:
    """One patch.yaml.

    Attributes:
        id: the directory's name, such as `0008-rope-bound`; its number is the place in the series.
        title: the commit's subject, ready for upstream.
        why: the trouble, in the words of those who have it.
        changes: what it changes.
        depends: ids of the patches it truly needs.
        tests: its own tests, by gate.
        neighbours: existing test files whose outcomes it must not change.
        because: for a dependency without which the patch would apply all the same, why it is needed, by id.
        limits: what it does not do.
        upstream: where it stands with vLLM.
        drop_when: the observable condition under which it is no longer needed.
        target: the hardware that the gates `compile`, `emulated` and `native` mean.
        time_limit: seconds its tests may take.
        bases: what is different on a base, by the base's name; see `on`.
        kernels: what is compiled for cards that are not at hand.
    """

    id: str
    title: str
    why: str
    changes: str
    depends: tuple[str, ...]
    tests: tuple[TestGroup, ...]
    upstream: Upstream
    drop_when: str
    neighbours: tuple[str, ...] = ()
    because: dict[str, str] = field(default_factory=dict)
    limits: tuple[str, ...] = ()
    target: str = "sm_86"
    time_limit: int = field(default=600)
    bases: dict[str, OnBase] = field(default_factory=dict)
    kernels: tuple[Kernel, ...] = ()

    def __post_init__(self) -> None:
        if not re.fullmatch(ID_PATTERN, self.id):
            raise MisplacedError(
                f"id {self.id!r} is not four digits and a name in lower case, such as 0008-rope-bound", "id"
            )
        if not re.fullmatch(TITLE_PATTERN, self.title):
            raise MisplacedError(
                f"title {self.title!r} does not begin with upstream's tags, such as [Kernel][Quantization]",
                "title",
            )
        for name in self.because:
            if name not in self.depends:
                raise MisplacedError(
                    f"because gives a reason for {name!r}, which depends does not list", "because", name
                )
        if self.time_limit <= 0:
            raise MisplacedError(
                f"time_limit {self.time_limit} is not a number of seconds above 0", "time_limit"
            )
        if not re.fullmatch(TARGET_PATTERN, self.target):
            raise MisplacedError(f"target {self.target!r} is not a CUDA architecture such as sm_86", "target")
        for base in self.bases:
            try:
                self.on(base)
            except MisplacedError as error:
                raise MisplacedError(f"{base}: {error}", "bases", base, *error.keys) from None

    def on(self, base: str) -> PatchMeta:
        """The patch as it is on a base: what `bases` says of it there in place of what is said for all.

        Reasons for dependencies that it does not have there are left out.
        """
        here = self.bases.get(base)
        if here is None:
            return self
        said = {f.name: value for f in fields(here) if (value := getattr(here, f.name)) is not None}
        if "depends" in said and "because" not in said:
            said["because"] = {k: v for k, v in self.because.items() if k in said["depends"]}
        return replace(self, bases={}, **said)

    @property
    def number(self) -> str:
        """The four digits."""
        return self.id[:4]

    @property
    def name(self) -> str:
        """The id without its number."""
        return self.id[5:]
