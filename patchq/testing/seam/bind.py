"""Whether a call's arguments fit a signature, both as syntax trees; what cannot be known is taken to fit."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TypeAlias

Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"

TRANSPARENT = frozenset(
    {
        "abstractmethod", "cache", "cached", "classmethod", "compile", "contextmanager", "asynccontextmanager", "deprecated",
        "disable", "final", "inference_mode", "instrument", "jit", "lru_cache", "no_grad", "override", "staticmethod", "wraps",
    },
)  # fmt: skip
"""Decorators that leave a function's parameters as they are, by the last part of their names."""
LAUNCH_OPTIONS = frozenset(
    {
        "num_warps",
        "num_stages",
        "num_ctas",
        "maxnreg",
        "grid",
        "warmup",
        "launch_cooperative_grid",
        "launch_pdl",
        "enable_fp_fusion",
    },
)
"""Keywords that the launch of a Triton kernel takes beside the kernel's own."""


def decorators(node: Function | ast.ClassDef) -> list[str]:
    """The last parts of the names of its decorators."""
    return [last_name(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list]


def last_name(node: ast.expr) -> str:
    """`c` of `a.b.c`; empty for what is no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_known(function: Function) -> bool:
    """Whether its decorators leave its parameters as they are written."""
    return all(name in TRANSPARENT for name in decorators(function))


@dataclass(frozen=True)
class Parameters:
    """What can be passed.

    Attributes:
        positional: names that may be passed by place.
        by_name: every name that may be passed as a keyword.
        required: names that must be passed.
        any_positional: whether there is a `*args`.
        any_keyword: whether there is a `**kwargs`.
    """

    positional: tuple[str, ...]
    by_name: frozenset[str]
    required: frozenset[str]
    any_positional: bool
    any_keyword: bool


def parameters_of(function: Function, *, bound: bool) -> Parameters:
    """The parameters of a function.

    Args:
        function: its definition.
        bound: whether the first one is filled by the object that it is called on.
    """
    args = function.args
    places = [a.arg for a in (*args.posonlyargs, *args.args)]
    defaulted = places[len(places) - len(args.defaults) :] if args.defaults else []
    required = [p for p in places if p not in defaulted]
    required += [
        a.arg for a, default in zip(args.kwonlyargs, args.kw_defaults, strict=True) if default is None
    ]
    names = {a.arg for a in (*args.args, *args.kwonlyargs)}
    if bound and places:
        names.discard(places[0])
        required = [r for r in required if r != places[0]]
        places = places[1:]
    return Parameters(
        tuple(places), frozenset(names), frozenset(required), args.vararg is not None, args.kwarg is not None,
    )  # fmt: skip


def misfit(
    call: ast.Call,
    takes: Parameters,
    *,
    skip: int = 0,
    partial: bool = False,
    extra: frozenset[str] = frozenset(),
) -> str:
    """What is wrong with a call, or an empty string.

    Args:
        call: the call.
        takes: what its callee takes.
        skip: arguments at the front that are not for the callee (the function of a `partial`).
        partial: whether the rest may come later.
        extra: keywords that are taken besides.
    """
    given = call.args[skip:]
    starred = any(isinstance(a, ast.Starred) for a in given)
    names = [k.arg for k in call.keywords if k.arg is not None]
    open_ended = starred or len(names) != len(call.keywords)
    if not takes.any_keyword:
        for name in names:
            if name not in takes.by_name and name not in extra:
                return f"takes no keyword {name!r}"
    if not starred:
        if len(given) > len(takes.positional) and not takes.any_positional:
            return f"takes {len(takes.positional)} positional arguments and is given {len(given)}"
        for name in takes.positional[: len(given)]:
            if name in names and name in takes.by_name:
                return f"is given {name!r} twice"
    if not open_ended and not partial:
        passed = {*names, *takes.positional[: len(given)]}
        lacking = [
            p for p in (*takes.positional, *sorted(takes.required)) if p in takes.required and p not in passed
        ]
        if lacking:
            return f"is not given {lacking[0]!r}"
    return ""
