"""JSON that may be damaged, or hostile."""

from __future__ import annotations

import json
from typing import Any


def parse_json(data: bytes | str) -> Any:
    """What a JSON text says.

    Raises:
        ValueError: it is none, is not UTF-8, or is nested deeper than any of ours.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
