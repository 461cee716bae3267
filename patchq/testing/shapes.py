"""What a bundle's plan and a result look like: checked before anything in them is believed."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from patchq.errors import InputError
from patchq.series.patch import Gate

Hex = Annotated[str, Field(pattern=r"^[0-9a-f]+$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Oid = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]
Target = Annotated[str, Field(pattern=r"^sm_[0-9]{2,4}[af]?$")]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Role = Literal["after", "before"]


class _Shape(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class _Planned(_Shape):
    name: str
    patch: str
    gate: Gate
    target: Target
    role: Role
    tests: tuple[str, ...] = Field(strict=False)


class _Plan(_Shape):
    id: Hex
    key: Sha256
    base: str
    mode: Literal["stack", "alone"]
    extensions: dict[str, str]
    runs: list[_Planned]


class _Card(_Shape):
    name: str
    driver: str
    capability: Annotated[list[int], Field(min_length=2, max_length=2)]


class _Cubin(_Shape):
    name: str
    origin: str
    target: Target
    ptx_target: str
    sha256: str
    shared_bytes: Count
    registers: Count
    stack_bytes: Count
    newer: list[str]


class _Facts(_Shape):
    code: int | None
    signal: Annotated[int, Field(ge=0, le=64)] | None
    killed: str
    peak_bytes: Count
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Run(_Planned):
    patch_sha256: Sha256
    tree: Oid
    tree_before: Oid
    tree_after: Oid
    limit: Count
    card: _Card | None
    memory: dict[str, Count]
    cubins: list[_Cubin]
    facts: _Facts | None
    events: str
    log: str
    log_sha256: Sha256


class _Toolchain(_Shape):
    python: str
    distributions: list[Annotated[str, Field(pattern=r"==")]]
    torch: str = ""
    cuda: str = ""
    nvcc: str = ""


class _Machine(_Shape):
    cards: list[_Card]


class _Result(_Shape):
    bundle: Hex
    refused: dict[str, str]
    toolchain: _Toolchain
    machine: _Machine
    runs: list[_Run]


def check_plan(plan: Any, where: str) -> None:
    """Refuse what is no bundle's plan.

    Raises:
        InputError: the first thing that is wrong is named.
    """
    _check(_Plan, plan, where, "Name the directory that patchq bundle wrote.")


def check_result(document: Any, where: str) -> None:
    """Refuse what is no result of a bundle.

    Raises:
        InputError: the first thing that is wrong is named.
    """
    _check(_Result, document, where, "Name the result.json that run wrote.")


def _check(shape: type[_Shape], found: Any, where: str, remedy: str) -> None:
    try:
        shape.model_validate(found)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValidationError, RecursionError, UnicodeEncodeError) as error:
        said = "nested too deeply" if isinstance(error, RecursionError) else "the whole: half a character"
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            said = f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
        raise InputError(f"{where} is not what patchq writes: {said}.", remedy) from None
