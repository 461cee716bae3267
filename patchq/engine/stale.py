"""Whether a refresh would take back what another command changed since the checkout was last brought up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from patchq.errors import RefusedError
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from patchq.engine.log import Entry


def refuse_stale(
    entries: Sequence[Entry], top: Path, command: str, base: str, written: Sequence[str]
) -> None:
    """Refuse to write bodies from a checkout that was left behind, as the project's log has it.

    A checkout that the log does not know is the user's own affair.

    Args:
        entries: the log, oldest first.
        top: the checkout's top directory.
        command: this command without its options; an earlier one brought the checkout up to date as well.
        base: the base whose bodies are written.
        written: the patches whose bodies would change.

    Raises:
        RefusedError: a patch and the entry that changed it are named.
    """
    here = [
        e.number
        for e in entries
        if (e.checkout is not None and e.checkout.path == str(top)) or e.what.startswith(command)
    ]
    if not here:
        return
    ours = {f"{SERIES_NAME}/{patch}/{base}.patch": patch for patch in written}
    for entry in reversed(entries):
        if entry.number <= here[-1]:
            return
        lost = [
            ours[c.path] for c in entry.files if c.path in ours and c.old is not None and c.new is not None
        ]
        if lost:
            raise RefusedError(
                f"{top} does not have what entry {entry.number} ({entry.what}) changed in {lost[0]}, "
                "and a refresh from it would take that back.",
                "Make the change in a checkout that has it (patchq apply --create DIR), or, where that is to go, first: "
                f"patchq undo {entry.number}.",
            )
