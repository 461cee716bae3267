"""evidence.jsonl: the recorded results of a patch's tests, one a line, newest last; it stands beside the patch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from patchq.errors import InputError
from patchq.series.series import SERIES_NAME

if TYPE_CHECKING:
    from pathlib import Path

NAME = "evidence.jsonl"


def read_evidence(path: Path) -> list[dict[str, Any]]:
    """The records of one evidence.jsonl, oldest first; none where there is no file.

    Raises:
        InputError: a line is not a JSON object; file and line are named.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{SERIES_NAME}/{path.parent.name}/{NAME} cannot be read: {error}.",
            "Restore the file from version control.",
        ) from None
    records = []
    for number, line in enumerate(lines, start=1):
        where = f"{SERIES_NAME}/{path.parent.name}/{NAME}:{number}"
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise InputError(
                f"{where}: this is not JSON.", "Restore the file from version control."
            ) from None
        if not isinstance(record, dict) or not {"id", "base", "tree", "gate"} <= record.keys():
            raise InputError(
                f"{where}: this is not a record of evidence.", "Restore the file from version control."
            )
        records.append(record)
    return records
