"""What a block may use of a card; standard library only, since it also goes into bundles."""

from __future__ import annotations

SHARED_BYTES = {
    "sm_80": 166_912,
    "sm_86": 101_376,
    "sm_87": 166_912,
    "sm_89": 101_376,
    "sm_90": 232_448,
    "sm_100": 232_448,
    "sm_103": 232_448,
    "sm_120": 101_376,
}
"""Shared memory in bytes that one block may opt in to (CUDA programming guide, technical specifications per compute
capability, less the KiB that the driver keeps; SM80, SM86, SM89 and SM90 are also as their drivers report them)."""


def plain(target: str) -> str:
    """A target without the `a` or `f` of code that runs on this one capability only."""
    return target.rstrip("af")


def capability_of(target: str) -> tuple[int, int]:
    """`sm_86` as (8, 6)."""
    digits = plain(target).removeprefix("sm_")
    return int(digits[:-1]), int(digits[-1])


def target_of(capability: tuple[int, int]) -> str:
    """(8, 6) as `sm_86`."""
    return f"sm_{capability[0]}{capability[1]}"
