"""Putting a release's extensions into a checkout, and knowing them again from those that somebody compiled there."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

from patchq.cache import write_atomically
from patchq.engine.journal import Record
from patchq.errors import EnvironmentLacksError, RefusedError
from patchq.jsontext import parse_json
from patchq.text import listed

if TYPE_CHECKING:
    from pathlib import Path

    from patchq.git.checkout import Checkout
    from patchq.progress import Progress
    from patchq.vllm.extensions import Extensions

Stamp = list[int]
"""Size in bytes and time of modification in ns."""


def place_extensions(checkout: Checkout, extensions: Extensions, progress: Progress) -> None:
    """Copy a release's members into a checkout, in place of those of another release.

    Raises:
        RefusedError: files are in their place that patchq did not put there.
        EnvironmentLacksError: the checkout cannot be written.
    """
    known = _known(checkout)
    wanted = {name: _stamp(path) for name, path in extensions.files.items()}
    foreign = [
        name
        for name in wanted
        if os.path.lexists(checkout.top / name)
        and _stamp(checkout.top / name) not in (known.get(name), wanted[name])
    ]
    if foreign:
        raise RefusedError(
            f"{checkout.top} has compiled files that patchq did not put there: {listed(foreign)}.",
            "Take them away for the release's, or keep compiling them: add --compile.",
            files=tuple(foreign),
        )
    _forget(checkout, {n: s for n, s in known.items() if n not in wanted})
    write_atomically(_note(checkout), json.dumps(wanted, indent=1).encode())
    with progress.task(f"placing {len(wanted)} files", total=len(wanted), unit="files") as step:
        for name, source in extensions.files.items():
            target = checkout.top / name
            if not os.path.lexists(target) or _stamp(target) != wanted[name]:
                _copy(source, target)
            step(1)


def remove_extensions(checkout: Checkout) -> None:
    """Take away what `place_extensions` put there, as far as it is still that."""
    _forget(checkout, _known(checkout))
    _note(checkout).unlink(missing_ok=True)


def _forget(checkout: Checkout, placed: dict[str, Stamp]) -> None:
    for name, stamp in placed.items():
        path = checkout.top / name
        if os.path.lexists(path) and _stamp(path) == stamp:
            path.unlink()


def _copy(source: Path, target: Path) -> None:
    draft = target.with_name(f".{target.name}.{os.getpid()}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, draft)
        draft.replace(target)
    except OSError as error:
        raise EnvironmentLacksError(
            f"{target} cannot be written: {error.strerror}.", "Make room, and run this again."
        ) from None
    finally:
        draft.unlink(missing_ok=True)


def _stamp(path: Path) -> Stamp:
    status = path.lstat()
    return [status.st_size, status.st_mtime_ns]


def _note(checkout: Checkout) -> Path:
    directory = Record(checkout).directory
    directory.mkdir(parents=True, exist_ok=True)
    return directory / "extensions.json"


def _known(checkout: Checkout) -> dict[str, Stamp]:
    try:
        known: dict[str, Stamp] = parse_json(_note(checkout).read_bytes())
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}
