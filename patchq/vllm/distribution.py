"""An editable install of a checkout as a wheel: a .pth to its files, and the metadata of the release that it is based on.

What pip makes of it is what the tree's own editable build makes of Python-only changes, and pip can take it away again;
nothing of the tree is run for it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zipfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from patchq.vllm import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

REQUIREMENTS = {"empty": "common", "cpu": "cpu", "cuda": "cuda"}
"""The tree's requirements file by device."""
RECORD_NAME = "patchq-build.json"
EPOCH = (2020, 1, 1, 0, 0, 0)
_SCRIPTS = "[console_scripts]\nvllm = vllm.entrypoints.cli.main:main\n"


@dataclass(frozen=True)
class Distribution:
    """What an editable install says of itself.

    Attributes:
        version: with a local part that names device and tree.
        metadata: the text of METADATA.
        entry_points: the text of entry_points.txt.
        record: what it was built from, kept beside the metadata as patchq-build.json.
    """

    version: str
    metadata: str
    entry_points: str
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def filename(self) -> str:
        """Of its wheel."""
        return f"{PROJECT}-{self.version}-py3-none-any.whl"


def local_version(version: str, device: str, tree: str) -> str:
    """A release's version, marked with what it was made into; vLLM takes itself for a CPU build by the word in it."""
    parts = [*([device] if device != "cuda" else []), "patchq", f"t{tree[:12]}"]
    return f"{version or '0.0.0'}+{'.'.join(parts)}"


def flat_requirements(read: Callable[[str], str], name: str) -> list[str]:
    """The lines of a tree's requirements file and of those that it includes, as its setup.py reads them.

    Args:
        read: gives the text of a file of the tree, empty where there is none.
        name: such as `cpu`.
    """
    found = []
    for raw in read(f"requirements/{name}.txt").splitlines():
        line = re.sub(r"\s#.*$", "", raw).strip()
        if line.startswith("-r "):
            found += flat_requirements(read, line.split()[1].removesuffix(".txt"))
        elif line and not line.startswith(("-", "#")):
            found.append(line)
    return found


def describe(
    version: str, released: str, entry_points: str, before: Sequence[str], after: Sequence[str]
) -> tuple[str, str]:
    """The metadata of an install, and its entry points.

    Args:
        version: with its local part.
        released: METADATA of the wheel that the extensions come from; empty where there is none.
        entry_points: of that wheel.
        before: the base's requirements.
        after: the checkout's, which may have more, fewer or others.
    """
    known = [_general(line.removeprefix("Requires-Dist: ")) for line in _header(released, "Requires-Dist: ")]
    old, new = ([_general(line) for line in lines] for lines in (before, after))
    wanted = [r for r in known if r not in old or r in new] if released else new
    wanted += [r for r in new if r not in wanted and (not released or r not in old)]
    lines = ["Metadata-Version: 2.1", f"Name: {PROJECT}", f"Version: {version}"]
    lines += _header(released, "Requires-Python: ") + _header(released, "Provides-Extra: ")
    lines += [f"Requires-Dist: {r}" for r in dict.fromkeys(wanted)]
    return "\n".join(lines) + "\n", entry_points or _SCRIPTS


def _header(metadata: str, start: str) -> list[str]:
    return [line for line in metadata.split("\n\n", 1)[0].splitlines() if line.startswith(start)]


def _general(line: str) -> str:
    """A requirement in one spelling, so that two can be compared; a `+cpu` pin is met by every build of that version."""
    from packaging.requirements import Requirement

    requirement = Requirement(line)
    requirement.specifier = type(requirement.specifier)(re.sub(r"\+cpu\b", "", str(requirement.specifier)))
    return str(requirement)


def write_wheel(directory: Path, distribution: Distribution, checkout: Path) -> Path:
    """Write the wheel, the same bytes for the same content, and give its path."""
    info = f"{PROJECT}-{distribution.version}.dist-info"
    files = {
        f"__editable__.{PROJECT}.pth": f"{checkout}\n",
        f"{info}/METADATA": distribution.metadata,
        f"{info}/entry_points.txt": distribution.entry_points,
        f"{info}/{RECORD_NAME}": json.dumps(distribution.record, indent=1, sort_keys=True) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: patchq\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(text.encode())}")
    files[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,"]) + "\n"
    path = directory / distribution.filename
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), text)
    return path
