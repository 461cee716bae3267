"""The Triton functions of a file, with what they call and the plain values they use, as a file that needs Triton alone."""

from __future__ import annotations

import ast

HEADER = "import triton\nimport triton.language as tl\nfrom triton.language.extra import libdevice\n"


def extract_functions(source: str) -> str:
    """A module with every Triton function of a module and the constants beside them.

    What is kept: functions with a decorator of Triton's `jit`, and assignments at the top whose values are made of
    literals, of `tl` and of names kept before. So a kernel can be compiled without importing what its file imports.

    Args:
        source: Python.

    Raises:
        SyntaxError: it is not Python.
    """
    kept = [HEADER]
    known = {"tl", "triton", "True", "False", "None", "float", "int", "min", "max"}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and any(_is_jit(d) for d in node.decorator_list):
            first = min(node.lineno, *(d.lineno for d in node.decorator_list))
            lines = source.splitlines()[first - 1 : node.end_lineno]
            kept.append("\n".join(lines) + "\n")
            known.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            used = {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)}
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if used <= known and all(isinstance(t, ast.Name) for t in targets):
                text = ast.get_source_segment(source, node.value) or ast.unparse(node.value)
                kept.append("".join(f"{t.id} = " for t in targets if isinstance(t, ast.Name)) + f"({text})\n")
                known |= {t.id for t in targets if isinstance(t, ast.Name)}
    return "\n\n".join(kept)


def _is_jit(node: ast.expr) -> bool:
    if isinstance(node, ast.Call):
        node = node.func
    return ast.unparse(node) in {"triton.jit", "jit"}
