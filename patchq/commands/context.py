"""What every command needs to know of where it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from patchq.series.series import Series


@dataclass
class Settings:
    """The options before the command's name."""

    root: Path | None = None


def load(context: typer.Context) -> Series:
    """The series that this call is about.

    Raises:
        InputError: there is none, or something in it is wrong.
    """
    from patchq.series.series import find_root, load_series

    settings = context.find_object(Settings) or Settings()
    return load_series(find_root(settings.root, Path.cwd()))
