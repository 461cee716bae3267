"""What a call calls: the callee's definition, from the scopes around the call and what they say of their names' types."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from patchq.testing.seam.names import Definition, Meaning, Module, Names, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.testing.seam.bind import Function

FAR = 4
"""Steps from a name to the value that it was given."""


@dataclass(frozen=True)
class Site:
    """A call and where it stands: the class and the functions around it, innermost last."""

    call: ast.Call
    owner: ast.ClassDef | None
    functions: tuple[Function, ...]


@dataclass(frozen=True)
class Callee:
    """What is called.

    Attributes:
        found: its definition.
        bound: whether the first parameter is filled by the object.
        sure: whether the object's class is known exactly, and not only one that it is derived from.
    """

    found: Definition
    bound: bool
    sure: bool = True


def sites(module: Module) -> Iterator[Site]:
    """Every call of a module."""

    def visit(node: ast.AST, owner: ast.ClassDef | None, functions: tuple[Function, ...]) -> Iterator[Site]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.ClassDef):
                yield from visit(child, child, ())
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from visit(child, owner, (*functions, child))
            else:
                if isinstance(child, ast.Call):
                    yield Site(child, owner, functions)
                yield from visit(child, owner, functions)

    yield from visit(module.body, None, ())


class Scope:
    """Resolving in one module of a tree."""

    def __init__(self, names: Names, module: Module) -> None:
        self.names = names
        self.module = module

    def callee(self, site: Site, function: ast.expr) -> Callee | None:
        """What `function`, written at `site`, is; None where that cannot be said."""
        if isinstance(function, ast.Name):
            meaning = self._name(site, function.id)
            return Callee(meaning, bound=False) if isinstance(meaning, Definition) else None
        if not isinstance(function, ast.Attribute):
            return None
        value = function.value
        owner = self._own_class(site)
        if (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Name)
            and value.func.id == "super"
            and owner
        ):
            found = self.names.method(owner, function.attr, above=True)
            return Callee(found, bound=True) if found else None
        meaning = self._dotted(site, value)
        if isinstance(meaning, Module):
            inner = self.names.in_module(meaning, function.attr)
            return Callee(inner, bound=False) if isinstance(inner, Definition) else None
        if isinstance(meaning, Definition):
            found = self.names.method(meaning, function.attr)
            return Callee(found, bound=_is_class_method(found)) if found else None
        kind, sure = self.type_of(site, value)
        found = self.names.method(kind, function.attr) if kind else None
        return Callee(found, bound=not _is_static(found), sure=sure) if found else None

    def is_foreign(self, site: Site, node: ast.expr) -> bool:
        """Whether a dotted name begins at something that is imported and is not of the tree."""
        while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name) or self._name(site, node.id) is not None:
            return False
        bodies = [self.module.body.body, *(f.body for f in site.functions)]
        return any(
            (alias.asname or alias.name.split(".")[0]) == node.id
            for body in bodies
            for statement in statements(body)
            if isinstance(statement, (ast.Import, ast.ImportFrom))
            for alias in statement.names
        )

    def _own_class(self, site: Site) -> Definition | None:
        return Definition(self.module, (site.owner,)) if site.owner is not None else None

    def _name(self, site: Site, name: str) -> Meaning:
        """What a name means, from the innermost function outwards; None where a parameter or a variable hides it."""
        for function in reversed(site.functions):
            if name in _parameter_names(function):
                return None
            if _binds(function, name):
                return self.names.in_statements(self.module, function.body, name)
        return self.names.in_module(self.module, name)

    def _dotted(self, site: Site, node: ast.expr) -> Meaning:
        if isinstance(node, ast.Name):
            return self._name(site, node.id)
        if isinstance(node, ast.Attribute):
            owner = self._dotted(site, node.value)
            return self.names.in_module(owner, node.attr) if isinstance(owner, Module) else None
        return None

    def type_of(self, site: Site, node: ast.expr, far: int = FAR) -> tuple[Definition | None, bool]:
        """The class of an expression's value, and whether it is exactly that one."""
        if not far:
            return None, False
        if isinstance(node, ast.Call):
            made = self._dotted(site, node.func)
            return (made, True) if isinstance(made, Definition) and made.class_node else (None, False)
        if isinstance(node, ast.Name):
            return self._type_of_name(site, node.id, far)
        if isinstance(node, ast.Attribute):
            owner, _ = self.type_of(site, node.value, far - 1)
            return self._type_of_attribute(owner, node.attr, far) if owner else (None, False)
        return None, False

    def _type_of_name(self, site: Site, name: str, far: int) -> tuple[Definition | None, bool]:
        owner = self._own_class(site)
        for function in reversed(site.functions):
            arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
            first = function is site.functions[0] and arguments and arguments[0].arg == name
            if first and owner and not _is_static(Definition(self.module, (function,))):
                return owner, False
            values = _values(function, name)
            annotation = next((a.annotation for a in arguments if a.arg == name), None)
            if annotation is not None and not values:
                return self.annotated(annotation), False
            if len(values) == 1 and annotation is None:
                value = values[0]
                if isinstance(value, ast.AnnAssign):
                    return self.annotated(value.annotation), False
                return (
                    self.type_of(site, value.value, far - 1)
                    if isinstance(value, ast.Assign)
                    else (None, False)
                )
            if values or annotation is not None:
                return None, False
        return None, False

    def _type_of_attribute(self, owner: Definition, name: str, far: int) -> tuple[Definition | None, bool]:
        """The class of an attribute, by its annotation in the class, or by the one thing that its methods assign to it."""
        node = owner.class_node
        if node is None:
            return None, False
        there = Scope(self.names, owner.module)
        for statement in statements(node.body):
            if (
                isinstance(statement, ast.AnnAssign)
                and isinstance(statement.target, ast.Name)
                and statement.target.id == name
            ):
                return there.annotated(statement.annotation), False
        found: list[tuple[Definition | None, bool]] = []
        for function in statements(node.body):
            if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            at = Site(ast.Call(ast.Name("_"), [], []), node, (function,))
            for statement in statements(function.body):
                if isinstance(statement, ast.AnnAssign) and _is_own(statement.target, name):
                    return there.annotated(statement.annotation), False
                if isinstance(statement, ast.Assign) and any(_is_own(t, name) for t in statement.targets):
                    found.append(there.type_of(at, statement.value, far - 1))
        if len(found) == 1:
            return found[0]
        if not found:
            for base in self.names.bases(owner):
                if base is not None:
                    return self._type_of_attribute(base, name, far - 1) if far > 1 else (None, False)
        return None, False

    def annotated(self, node: ast.expr) -> Definition | None:
        """The class that an annotation names, `| None` and `Optional` aside."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            sides = [
                s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)
            ]
            return self.annotated(sides[0]) if len(sides) == 1 else None
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.value, ast.Name)
            and node.value.id == "Optional"
        ):
            return self.annotated(node.slice)
        meaning = self.names.expression(self.module, node)
        return meaning if isinstance(meaning, Definition) and meaning.class_node else None


def _is_own(target: ast.expr, name: str) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and target.attr == name
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    )


def _parameter_names(function: Function) -> set[str]:
    args = function.args
    several = [a for a in (args.vararg, args.kwarg) if a is not None]
    return {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, *several)}


def _binds(function: Function, name: str) -> bool:
    """Whether a function's own body gives the name a meaning."""
    for statement in statements(function.body):
        if (
            isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            and statement.name == name
        ):
            return True
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            if any((a.asname or a.name.split(".")[0]) == name for a in statement.names):
                return True
        elif any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)
            for n in ast.walk(statement)
        ):
            return True
    return False


def _values(function: Function, name: str) -> list[ast.stmt]:
    """The statements of a function that bind the name, each once."""
    found: list[ast.stmt] = []
    for statement in statements(function.body):
        if isinstance(
            statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With, ast.AsyncWith)
        ):
            targets: list[ast.expr | None]
            if isinstance(statement, ast.Assign):
                targets = [*statement.targets]
            elif isinstance(statement, (ast.With, ast.AsyncWith)):
                targets = [item.optional_vars for item in statement.items]
            else:
                targets = [statement.target]
            if any(
                isinstance(n, ast.Name) and n.id == name
                for t in targets
                if t is not None
                for n in ast.walk(t)
            ):
                found.append(statement)
    return found


def _is_static(found: Definition | None) -> bool:
    from patchq.testing.seam.bind import decorators

    return found is not None and any("staticmethod" in decorators(n) for n in found.nodes)


def _is_class_method(found: Definition | None) -> bool:
    from patchq.testing.seam.bind import decorators

    return found is not None and any("classmethod" in decorators(n) for n in found.nodes)
