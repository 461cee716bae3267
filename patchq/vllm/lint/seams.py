"""Which stand-ins of a test are what another package is made to answer, and never reach code as an object of vLLM's.

tests/AGENTS.md asks for vLLM's own objects as they are constructed, and lets external services be mocked. A card that is
not there is one: what `torch.cuda.get_device_properties` answers can be had from no constructor.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = frozenset({"vllm", "tests"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def answers_of_others(module: ast.Module) -> set[ast.AST]:
    """The calls whose value goes nowhere but into replacements of what other packages have.

    That is: a call within `monkeypatch.setattr(TARGET, ...)`, TARGET being of an imported package other than vLLM, or one
    that a function gives a name which it uses only there. Whatever is not seen to be so is left out.
    """
    functions = list(_outermost(module))
    foreign, _ = _names(set(_walk_without(module, functions)))
    found: set[ast.AST] = set()
    for function in functions:
        nodes = set(ast.walk(function))
        here, ours = _names(nodes)
        known = (foreign | here) - ours
        inside = {
            node
            for call in nodes
            if isinstance(call, ast.Call) and _replaces(call, known)
            for value in (*call.args[1:], *(k.value for k in call.keywords))
            for node in ast.walk(value)
        }
        found |= {node for node in inside if isinstance(node, ast.Call)}
        for inner in nodes:
            if isinstance(inner, _FUNCTIONS):
                found |= _named_for(inner, inside)
    return found


def _outermost(node: ast.AST) -> Iterator[ast.AST]:
    """The functions of a module and of its classes, without those inside of functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, _FUNCTIONS):
            yield child
        else:
            yield from _outermost(child)


def _walk_without(module: ast.Module, functions: list[ast.AST]) -> Iterator[ast.AST]:
    """All of a module but what is inside of functions."""
    inside = {node for function in functions for node in ast.walk(function) if node is not function}
    return (node for node in ast.walk(module) if node not in inside)


def _named_for(function: ast.FunctionDef | ast.AsyncFunctionDef, inside: set[ast.AST]) -> set[ast.AST]:
    """The calls that a function gives a name, once, and whose name it uses only inside of replacements."""
    uses: dict[str, list[ast.Name]] = {}
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            uses.setdefault(node.id, []).append(node)
    found: set[ast.AST] = set()
    for statement in ast.walk(function):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Name) and isinstance(statement.value, ast.Call):
            others = [n for n in uses[target.id] if n is not target]
            if others and all(n in inside and isinstance(n.ctx, ast.Load) for n in others):
                found.add(statement.value)
    return found


def _replaces(call: ast.Call, foreign: set[str]) -> bool:
    """Whether it is a `setattr` of pytest's on what another package has."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "setattr" or not call.args:
        return False
    target = call.args[0]
    if isinstance(target, ast.Constant):
        return isinstance(target.value, str) and "." in target.value and _top(target.value) not in OURS
    while isinstance(target, ast.Attribute):
        target = target.value
    return isinstance(target, ast.Name) and target.id in foreign


def _names(nodes: set[ast.AST]) -> tuple[set[str], set[str]]:
    """Names that mean another package or what is in one, and those that mean anything else."""
    foreign: set[str] = set()
    ours: set[str] = set()
    imported: set[ast.AST] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                (ours if _top(alias.name) in OURS else foreign).add(alias.asname or _top(alias.name))
        elif isinstance(node, ast.ImportFrom):
            where = ours if node.level or _top(node.module or "") in OURS else foreign
            where |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign) and (package := _import_or_skip(node.value)):
            imported |= set(node.targets)
            names = {t.id for t in node.targets if isinstance(t, ast.Name)}
            (ours if _top(package) in OURS else foreign).update(names)
    for node in nodes - imported:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            ours.add(node.id)
        elif isinstance(node, ast.arg):
            ours.add(node.arg)
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            ours.add(node.name)
    return foreign - ours, ours


def _import_or_skip(node: ast.expr) -> str:
    """The module of `pytest.importorskip(MODULE)`; empty for anything else."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "importorskip"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    ):
        return str(node.args[0].value)
    return ""


def _top(name: str) -> str:
    return name.partition(".")[0]
