"""What a name means in a tree: modules, functions and classes, followed through imports; nothing is imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.git.objects import Objects

FAR = 12
"""Imports followed from name to name, and classes from base to base, before giving up."""


@dataclass(frozen=True)
class Module:
    """A module of the tree.

    Attributes:
        name: dotted.
        path: in the tree.
        body: its syntax tree.
    """

    name: str
    path: str
    body: ast.Module

    @property
    def package(self) -> str:
        """What its relative imports start from."""
        return self.name if self.path.endswith("/__init__.py") else self.name.rpartition(".")[0]


@dataclass(frozen=True)
class Definition:
    """Where something is defined: the module, and all definitions of the name there (branches may have one each)."""

    module: Module
    nodes: tuple[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, ...]

    @property
    def class_node(self) -> ast.ClassDef | None:
        """The class, if it is one and nothing else."""
        first = self.nodes[0]
        return first if len(self.nodes) == 1 and isinstance(first, ast.ClassDef) else None


Meaning: TypeAlias = "Module | Definition | None"


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, those in its branches too, without going into functions and classes."""
    for statement in body:
        yield statement
        for field in ("body", "orelse", "finalbody", "handlers"):
            inner = getattr(statement, field, None)
            if inner and not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                for part in inner:
                    yield from statements(part.body if isinstance(part, ast.ExceptHandler) else [part])


class Names:
    """Names of one tree.

    Args:
        objects: where it is read.
        tree: its id.
    """

    def __init__(self, objects: Objects, tree: str) -> None:
        self.objects = objects
        self.tree = tree
        self._modules: dict[str, Module | None] = {}

    def parse(self, path: str) -> Module | None:
        """The module at a path; None where there is none, or it is not Python that can be read."""
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        if name not in self._modules or self._modules[name] is None:
            entry = self.objects.lookup(self.tree, path)
            found = None
            if entry is not None:
                try:
                    found = Module(name, path, ast.parse(self.objects.blob(entry.oid)))
                except (SyntaxError, ValueError, KeyError):
                    found = None
            self._modules[name] = found
        return self._modules[name]

    def module(self, name: str) -> Module | None:
        """The module of a dotted name."""
        if name not in self._modules:
            path = name.replace(".", "/")
            self._modules[name] = None
            for candidate in (f"{path}.py", f"{path}/__init__.py"):
                if self.parse(candidate) is not None:
                    break
        return self._modules[name]

    def in_module(self, module: Module, name: str, far: int = FAR) -> Meaning:
        """What a name means at the top of a module."""
        found = self.in_statements(module, module.body.body, name, far)
        if found is None and module.path.endswith("/__init__.py"):
            return self.module(f"{module.name}.{name}")
        return found

    def in_statements(self, module: Module, body: list[ast.stmt], name: str, far: int = FAR) -> Meaning:
        """What a name means by the definitions and imports of a scope; None where anything else binds it too."""
        nodes: list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef] = []
        imported: Meaning = None
        for statement in statements(body):
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                if statement.name == name:
                    nodes.append(statement)
            elif isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) == name and far:
                        imported = self._from(module, statement, alias.name, far) or imported
            elif isinstance(statement, ast.Import):
                for alias in statement.names:
                    if alias.asname == name:
                        imported = self.module(alias.name)
                    elif alias.asname is None and alias.name.split(".")[0] == name:
                        imported = self.module(name)
            elif name in _assigned(statement):
                return None
        return Definition(module, tuple(nodes)) if nodes else imported

    def _from(self, module: Module, statement: ast.ImportFrom, name: str, far: int) -> Meaning:
        source = statement.module or ""
        if statement.level:
            parts = module.package.split(".")
            parts = parts[: len(parts) - statement.level + 1]
            source = ".".join([*parts, *([source] if source else [])])
        target = self.module(source)
        if target is None:
            return self.module(f"{source}.{name}")
        return self.in_module(target, name, far - 1) or self.module(f"{source}.{name}")

    def bases(self, found: Definition) -> list[Definition | None]:
        """The classes that a class is derived from directly; None for one that is not of the tree."""
        node = found.class_node
        if node is None:
            return []
        result: list[Definition | None] = []
        for base in node.bases:
            plain = base.value if isinstance(base, ast.Subscript) else base
            if isinstance(plain, ast.Name) and plain.id in {"object", "ABC", "Generic", "Protocol"}:
                continue
            meaning = self.expression(found.module, plain)
            result.append(meaning if isinstance(meaning, Definition) and meaning.class_node else None)
        return result

    def expression(self, module: Module, node: ast.expr) -> Meaning:
        """What a dotted name at the top of a module means."""
        if isinstance(node, ast.Name):
            return self.in_module(module, node.id)
        if isinstance(node, ast.Attribute):
            owner = self.expression(module, node.value)
            return self.in_module(owner, node.attr) if isinstance(owner, Module) else None
        return None

    def method(
        self, found: Definition, name: str, *, above: bool = False, far: int = FAR
    ) -> Definition | None:
        """A method of a class, looked for in its bases; None as soon as a class that is not of the tree could have it.

        Args:
            found: the class.
            name: the method.
            above: begin with its bases, as `super()` does.
            far: how many bases may still be gone through.
        """
        node = found.class_node
        if node is None or not far:
            return None
        if not above:
            nodes = [
                s
                for s in statements(node.body)
                if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef)) and s.name == name
            ]
            if nodes:
                return Definition(found.module, tuple(nodes))
            if any(name in _assigned(s) for s in statements(node.body)):
                return None
        for base in self.bases(found):
            if base is None:
                return None
            inherited = self.method(base, name, far=far - 1)
            if inherited is not None:
                return inherited
            if not self._complete(base, far - 1):
                return None
        return None

    def _complete(self, found: Definition, far: int) -> bool:
        """Whether all that a class is derived from is of the tree."""
        return far > 0 and all(b is not None and self._complete(b, far - 1) for b in self.bases(found))


def _assigned(statement: ast.stmt) -> set[str]:
    """The plain names that a statement binds by assignment."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign, ast.For, ast.AsyncFor)):
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [i.optional_vars for i in statement.items if i.optional_vars is not None]
    return {n.id for t in targets for n in ast.walk(t) if isinstance(n, ast.Name)}
