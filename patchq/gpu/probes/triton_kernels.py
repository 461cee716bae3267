"""Compiles Triton functions for a target, in an interpreter that has Triton: standard library and Triton only.

The job is a JSON file: a list of kernels, each with `module` (a file that defines the function and what it calls),
`function`, `types`, `constants`, `warps`, `stages`, `capability` (86) and `out` (where the cubin goes). One JSON line a
kernel comes out: `shared` in bytes, or the error in one line.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any


def compile_kernel(job: dict[str, Any]) -> dict[str, Any]:
    """Compile one kernel and write its cubin; what it needs of shared memory, in bytes."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location(Path(job["module"]).stem, job["module"])
    if spec is None or spec.loader is None:
        raise ImportError(job["module"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    function = getattr(module, job["function"])
    names = list(function.arg_names)
    absent = {n for n in names if n in job["constants"] and job["constants"][n] is None}
    constant = {p.name for p in function.params if p.is_constexpr} | absent
    signature = {n: "constexpr" if n in constant else job["types"].get(n, "i32") for n in names}
    constants = {n: job["constants"][n] for n in names if n in constant and n in job["constants"]}
    lacking = sorted(constant - constants.keys() - {p.name for p in function.params if p.has_default})
    if lacking:
        raise ValueError(f"no value is declared for {', '.join(lacking)}")
    aligned = {(names.index(n),): [["tt.divisibility", 16]] for n in names if signature[n].startswith("*")}
    options = {"num_warps": job["warps"], **({"num_stages": job["stages"]} if job["stages"] else {})}
    source = ASTSource(function, signature, constexprs=constants, attrs=aligned)
    compiled = triton.compile(source, target=GPUTarget("cuda", job["capability"], 32), options=options)
    Path(job["out"]).write_bytes(compiled.asm["cubin"])
    return {"shared": compiled.metadata.shared}


def main() -> None:
    """Compile what the job named by the first argument lists."""
    for job in json.loads(Path(sys.argv[1]).read_bytes()):
        try:
            answer = compile_kernel(job)
        except Exception as error:  # noqa: BLE001
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            cause = error.__cause__
            last = str(cause).strip().splitlines()[-1] if cause is not None and str(cause).strip() else ""
            said = next((w for w in (last, *reversed(lines)) if w and not w.startswith("^")), "")
            answer = {"error": f"{type(error).__name__}: {said}"[:300]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
