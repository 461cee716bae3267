"""The seam check: do the calls in a patch's production hunks fit what they call on this base?

A test whose stand-in takes `**kwargs` stays green when the real callee no longer takes a keyword; this reads the
callee's real signature. What it cannot resolve it leaves alone, so what it reports is wrong.
"""

from __future__ import annotations

import ast
import difflib
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from patchq.testing.seam.bind import (
    LAUNCH_OPTIONS,
    Function,
    decorators,
    is_known,
    last_name,
    misfit,
    parameters_of,
)
from patchq.testing.seam.names import Definition, Names
from patchq.testing.seam.scope import Callee, Scope, Site, sites
from patchq.vllm.layout import is_test

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from patchq.git.objects import Objects
    from patchq.testing.seam.names import Module

VERSION = 1
"""Raised when the check finds more or less than before; known results are then not used."""
DATACLASS = frozenset({"dataclass", "config"})
"""Class decorators that make `__init__` of the annotated fields (`config` is vLLM's own, of pydantic)."""


@dataclass(frozen=True)
class Seam:
    """A call that does not fit: where it stands, what it calls, and what is wrong."""

    file: str
    line: int
    callee: str
    problem: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def check_seams(objects: Objects, without: str, after: str, production: Sequence[str]) -> list[Seam]:
    """The calls that a patch writes and that do not fit, and those elsewhere that no longer fit what it changed.

    Args:
        objects: where the trees are read.
        without: the tree without the patch.
        after: the tree with it.
        production: the files that it changes, tests aside.
    """
    names, old = Names(objects, after), Names(objects, without)
    found: list[Seam] = []
    changed: set[str] = set()
    for path in production:
        if not path.endswith(".py"):
            continue
        module = names.parse(path)
        if module is None:
            new_or_read_before = objects.lookup(without, path) is None or old.parse(path) is not None
            if objects.lookup(after, path) is not None and new_or_read_before:
                found.append(Seam(path, 1, "", "is not Python that can be parsed"))
            continue
        lines = added_lines(_text(objects, without, path), _text(objects, after, path))
        found += _check_module(names, module, lambda call, lines=lines: _touches(call, lines))
        changed |= _changed_signatures(old.parse(path), module)
    for path in _files_with(objects, after, changed, production):
        module = names.parse(path)
        if module is not None:
            found += _check_module(names, module, lambda call: last_name(call.func) in changed, only=changed)
    return list(dict.fromkeys(found))


def added_lines(old: str, new: str) -> set[int]:
    """The lines of `new`, from 1, that are not in `old`."""
    matcher = difflib.SequenceMatcher(None, old.splitlines(), new.splitlines(), autojunk=False)
    return {
        n
        for tag, _, _, start, end in matcher.get_opcodes()
        if tag != "equal"
        for n in range(start + 1, end + 1)
    }


def _touches(call: ast.Call, lines: set[int]) -> bool:
    return any(n in lines for n in range(call.lineno, (call.end_lineno or call.lineno) + 1))


def _text(objects: Objects, tree: str, path: str) -> str:
    entry = objects.lookup(tree, path)
    return objects.blob(entry.oid).decode("utf-8", "replace") if entry is not None else ""


def _check_module(names: Names, module: Module, wanted: Any, only: set[str] | None = None) -> list[Seam]:
    scope = Scope(names, module)
    found = []
    for site in sites(module):
        if not wanted(site.call):
            continue
        seam = _check_site(names, scope, site)
        if seam is not None and (only is None or seam.callee.rpartition(".")[2] in only):
            found.append(seam)
    return found


def _check_site(names: Names, scope: Scope, site: Site) -> Seam | None:
    call, function, skip, partial, launch = site.call, site.call.func, 0, False, False
    if last_name(function) == "partial" and call.args:
        function, skip, partial = call.args[0], 1, True
    elif isinstance(function, ast.Subscript):
        function, launch = function.value, True
    callee = scope.callee(site, function)
    if callee is None:
        return None if launch or partial else _check_by_name(names, scope, site)
    problem = _problem(names, callee, call, skip=skip, partial=partial, launch=launch)
    if problem and not callee.sure and _another_takes(names, callee, call):
        return None
    name = ast.unparse(function)
    return Seam(scope.module.path, call.lineno, name, f"{name} {problem}") if problem else None


def _check_by_name(names: Names, scope: Scope, site: Site) -> Seam | None:
    """A method called on an object of unknown class: wrong where no method of that name in the tree takes the keyword.

    Only telling names are judged: two words or more, which a library outside the tree is unlikely to have as well.
    """
    call = site.call
    function = call.func
    if not isinstance(function, ast.Attribute) or not call.keywords or scope.is_foreign(site, function):
        return None
    name = function.attr
    if "_" not in name.strip("_") or name.startswith("__"):
        return None
    problems = []
    for path, node in _functions_called(names, name):
        problem = misfit(
            call, parameters_of(node, bound="staticmethod" not in decorators(node)), partial=True
        )
        if not is_known(node) or not problem.startswith("takes no keyword"):
            return None
        problems.append(
            f"{ast.unparse(function)} {problem}: no {name} in the tree does ({path}:{node.lineno})"
        )
    return Seam(scope.module.path, call.lineno, ast.unparse(function), problems[0]) if problems else None


def _problem(names: Names, callee: Callee, call: ast.Call, *, skip: int, partial: bool, launch: bool) -> str:
    """What is wrong with a call of these definitions; nothing where one of them takes it, or cannot be known."""
    node = callee.found.class_node
    if node is not None:
        return "" if launch else _constructor_problem(names, callee.found, call, skip, partial=partial)
    problem = ""
    for function in callee.found.nodes:
        if isinstance(function, ast.ClassDef):
            return ""
        kernel = launch and "jit" in decorators(function)
        if "overload" in decorators(function):
            continue
        if not (kernel or (is_known(function) and not launch)) or (
            not launch and "jit" in decorators(function)
        ):
            return ""
        tuned = kernel and len(function.decorator_list) > 1
        takes = parameters_of(function, bound=callee.bound)
        extra = LAUNCH_OPTIONS if kernel else frozenset()
        problem = misfit(call, takes, skip=skip, partial=partial or tuned, extra=extra)
        if not problem:
            return ""
    return f"{problem} ({callee.found.module.path}:{callee.found.nodes[-1].lineno})" if problem else ""


def _constructor_problem(names: Names, found: Definition, call: ast.Call, skip: int, *, partial: bool) -> str:
    node = found.class_node
    if node is None or node.keywords:
        return ""
    where = f"({found.module.path}:{node.lineno})"
    new = names.method(found, "__new__")
    if new is not None and not all(n.args.kwarg for n in new.nodes if not isinstance(n, ast.ClassDef)):
        return ""
    own = [n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    if not own and DATACLASS & set(decorators(node)):
        fields = _fields(names, found)
        wrong = next(
            (
                k.arg
                for k in call.keywords
                if k.arg is not None and fields is not None and k.arg not in fields
            ),
            None,
        )
        return f"takes no keyword {wrong!r} {where}" if wrong else ""
    if any(not d.startswith("register") for d in decorators(node)):
        return ""
    init = names.method(found, "__init__")
    if init is None or any(isinstance(n, ast.ClassDef) or not is_known(n) for n in init.nodes):
        return ""
    problems = [
        misfit(call, parameters_of(n, bound=True), skip=skip, partial=partial)
        for n in init.nodes
        if not isinstance(n, ast.ClassDef)
    ]
    return f"{problems[0]} {where}" if problems and all(problems) else ""


def _fields(names: Names, found: Definition) -> set[str] | None:
    """The fields of a dataclass and its bases; None where a base is not of the tree."""
    fields: set[str] = set()
    for base in names.bases(found):
        inherited = _fields(names, base) if base is not None else None
        if inherited is None:
            return None
        fields |= inherited
    node = found.class_node
    body = node.body if node is not None else []
    return fields | {
        s.target.id for s in body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)
    }


def _another_takes(names: Names, callee: Callee, call: ast.Call) -> bool:
    """Whether some method of that name in the tree takes the call: the object may be of a derived class."""
    first = callee.found.nodes[-1]
    others = [n for _, n in _functions_called(names, first.name) if n is not first]
    return any(
        not is_known(n) or not misfit(call, parameters_of(n, bound="staticmethod" not in decorators(n)))
        for n in others
    )


def _functions_called(names: Names, name: str) -> Iterator[tuple[str, Function]]:
    """Every function or method of the tree that has this name, with the file that it is in."""
    for path in _files_with(names.objects, names.tree, {name}, ()):
        module = names.parse(path)
        for node in ast.walk(module.body) if module is not None else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
                yield path, node


def _changed_signatures(old: Module | None, new: Module) -> set[str]:
    """The names of functions that both have and whose parameters differ."""
    if old is None:
        return set()
    before = _signatures(old)
    return {
        name.rpartition(".")[2]
        for name, args in _signatures(new).items()
        if name in before and before[name] != args
    }


def _signatures(module: Module) -> dict[str, str]:
    found: dict[str, str] = {}

    def visit(body: Sequence[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found[prefix + node.name] = _shape(node)

    visit(module.body.body, "")
    return found


def _shape(function: Function) -> str:
    takes = parameters_of(function, bound=False)
    return repr(
        (
            takes.positional,
            sorted(takes.by_name),
            sorted(takes.required),
            takes.any_positional,
            takes.any_keyword,
        )
    )


def _files_with(objects: Objects, tree: str, names: set[str], skip: Sequence[str]) -> list[str]:
    """The Python files of the tree's packages in which one of these names is followed by a parenthesis."""
    plain = {n for n in names if not n.startswith("__")}
    if not plain:
        return []
    wanted = re.compile(rb"\b(?:%s)\(" % b"|".join(re.escape(n.encode()) for n in sorted(plain)))
    tops = {p.split("/")[0] for p in skip} or None
    found = []
    for path, entry in objects.walk(tree):
        inside = tops is None or path.split("/")[0] in tops
        if not inside or path in skip or is_test(path) or not path.endswith(".py"):
            continue
        if wanted.search(objects.blob(entry.oid)):
            found.append(path)
    return found
