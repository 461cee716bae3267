"""What every command needs to know of where it runs."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from patchq.engine.locate import Standing
    from patchq.engine.project import Project
    from patchq.git.checkout import Checkout
    from patchq.git.objects import Objects
    from patchq.series.series import Series
    from patchq.upstream.store import Store


@dataclass
class Settings:
    """The options before the command's name."""

    root: Path | None = None


def group(text: str, **settings: Any) -> typer.Typer:
    """A command that has commands of its own, listed as those of the top are."""
    return typer.Typer(help=text, add_completion=False, rich_markup_mode=None, **settings)


def load(context: typer.Context) -> Series:
    """The series that this call is about.

    Raises:
        InputError: there is none, or something in it is wrong.
    """
    from patchq.engine.project import recover_project
    from patchq.series.series import load_series

    root = root_of(context)
    recover_project(root)
    return load_series(root)


def root_of(context: typer.Context) -> Path:
    """The directory of the project that this call is about.

    Raises:
        InputError: there is none.
    """
    from patchq.series.series import find_root

    settings = context.find_object(Settings) or Settings()
    return find_root(settings.root, Path.cwd())


@contextlib.contextmanager
def on_checkout(
    series: Series, store: Store, path: Path, doing: str, base: str | None, *, three_way: bool = False
) -> Iterator[tuple[Checkout, Objects, Standing]]:
    """A checkout under its lock, its objects with the store's, and where it stands: see `patchq.commands.lanes.fitting_lane`.

    Args:
        series: the series.
        store: the store.
        path: the checkout.
        doing: what is being done to it, for whoever is kept waiting.
        base: the base that is named.
        three_way: whether the lane may be merged onto it.
    """
    from patchq.engine.journal import working_on
    from patchq.git.checkout import reading_head

    with working_on(path, doing) as checkout, reading_head(checkout) as head:
        from patchq.commands.lanes import fitting_lane

        with store.objects(checkout.object_dir) as objects:
            yield (
                checkout,
                objects,
                fitting_lane(series, store, objects, checkout, head, base, three_way=three_way),
            )


@contextlib.contextmanager
def editing(context: typer.Context, what: str) -> Iterator[tuple[Project, Series]]:
    """The project under its lock, and its series, read under it.

    Args:
        context: the call.
        what: what is being done, for whoever is kept waiting.

    Raises:
        EnvironmentLacksError: another patchq is changing it.
        InputError: there is no project, or something in it is wrong.
    """
    from patchq.engine.project import changing
    from patchq.series.series import load_series

    with changing(root_of(context), what) as project:
        yield project, load_series(project.root)
