"""The options and arguments that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from patchq.series.series import Series


def _series(context: typer.Context) -> Series | None:
    """The series of the `--root` that stands earlier on the line being completed, where it can be read."""
    from patchq.errors import PatchqError
    from patchq.series.series import find_root, load_series

    root = context.find_root().params.get("root")
    try:
        return load_series(find_root(Path(root) if root else None, Path.cwd()))
    except PatchqError:
        return None


def patch_names(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Patch ids and titles that begin as typed, for the shell's tab completion."""
    series = _series(context)
    return [
        (p.id, p.title)
        for p in (series.patches if series else ())
        if p.id.startswith(incomplete) or p.name.startswith(incomplete)
    ]


def _base_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of bases that begin as typed, for the shell's tab completion."""
    series = _series(context)
    return [name for name in (series.lock.bases if series else ()) if name.startswith(incomplete)]


CheckoutPath = Annotated[Path, typer.Argument(metavar="CHECKOUT", help="A vLLM working tree.")]
MaybeCheckoutPath = Annotated[Optional[Path], typer.Argument(metavar="CHECKOUT", help="A vLLM working tree.")]  # noqa: UP045
BaseName = Annotated[
    str | None,
    typer.Option(
        "--base", metavar="BASE", help="The base; the pinned one by default.", autocompletion=_base_names
    ),
]
BaseNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[BASE]...", help="Bases, by name.", autocompletion=_base_names),
]
SomeBases = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--base", metavar="BASE", help="A base; may be repeated.", autocompletion=_base_names),
]
PatchId = Annotated[str, typer.Argument(metavar="ID", help="A patch.", autocompletion=patch_names)]
Upto = Annotated[
    str | None,
    typer.Option("--upto", metavar="ID", help="The patches up to this one.", autocompletion=patch_names),
]
Only = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option(
        "--only",
        metavar="ID",
        help="This patch and what it depends on; may be repeated.",
        autocompletion=patch_names,
    ),
]
Stack = Annotated[
    bool,
    typer.Option(
        "--stack/--alone", help="At its place in the series, or on the base with what it depends on."
    ),
]
Target = Annotated[
    str | None, typer.Option(metavar="T", help="An architecture such as sm_86 instead of the patch's own.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Decide everything, write nothing.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
PatchIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Patches; all where none is named.", autocompletion=patch_names),
]
