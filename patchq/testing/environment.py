"""What tests run in: an interpreter with what the base needs. How one is made for a given upstream is that upstream's room."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from patchq.errors import EnvironmentLacksError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROBE = """
import json, platform, sys
from importlib import metadata
dists = sorted({f"{d.metadata['Name']}=={d.version}" for d in metadata.distributions() if d.metadata['Name']})
try:
    import torch
    cuda = torch.version.cuda
except Exception:
    cuda = None
print(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "cuda": cuda, "distributions": dists}))
"""


@dataclass(frozen=True)
class Environment:
    """An interpreter ready for a base's tests.

    Attributes:
        python: the interpreter.
        key: stands for everything in it: interpreter, distributions, overlay, variables.
        facts: what is recorded of it with a result: versions, hashes.
        overlay: files put into each tree (compiled extensions), by path in the tree.
        path: directories that are on the import path after the tree.
        variables: for the tests; `{sandbox}` stands for the run's own directory.
        preload: modules that are imported once a tree before the groups part.
        cuda: the CUDA version its torch was built for; empty for none.
    """

    python: Path
    key: str
    facts: Mapping[str, str]
    overlay: Mapping[str, Path] = field(default_factory=dict)
    path: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    preload: tuple[str, ...] = ()
    cuda: str = ""


def probe(python: Path) -> dict[str, Any]:
    """What an interpreter is and has.

    Raises:
        EnvironmentLacksError: it does not run.
    """
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    try:
        done = subprocess.run([python, "-c", _PROBE], capture_output=True, check=True, env=env, cwd="/")
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError) as error:
        why = (
            (error.strerror or "it cannot be started") if isinstance(error, OSError) else "it gives no answer"
        )
        raise EnvironmentLacksError(
            f"{python} does not run as a Python interpreter: {why}.", "Name another."
        ) from None
    return found


def key_of_facts(*facts: Any) -> str:
    """A short name for plain data: 16 hexadecimal digits of its hash."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]


def given_environment(
    python: Path, variables: Mapping[str, str], preload: tuple[str, ...] = ()
) -> Environment:
    """An environment that somebody made already, used as it is.

    Raises:
        EnvironmentLacksError: it does not run, or has no pytest.
    """
    found = probe(python)
    if not any(d.lower().startswith("pytest==") for d in found["distributions"]):
        raise EnvironmentLacksError(f"{python} has no pytest.", f"Install it: {python} -m pip install pytest")
    torch = next((d.partition("==")[2] for d in found["distributions"] if d.startswith("torch==")), "")
    facts = {"kind": "given", "python": found["python"], "torch": torch, "cuda": found["cuda"] or ""}
    facts["distributions_sha256"] = hashlib.sha256("\n".join(found["distributions"]).encode()).hexdigest()
    return Environment(
        python.absolute(),
        key_of_facts(facts, dict(variables)),
        facts,
        variables=variables,
        preload=preload,
        cuda=found["cuda"] or "",
    )
