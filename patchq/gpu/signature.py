"""Binding a result to the bundle that it was made with; standard library only, since it also goes into bundles.

A bundle has a key of its own, made by chance when it is written and kept by whoever wrote it. Its result carries an
HMAC over all that it says. So a result that was edited by hand, cut short, or made with another bundle is found out.
It is no proof against somebody who holds the bundle: the key lies in it, since the machine that runs it has to sign.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any


def canonical(document: dict[str, Any]) -> bytes:
    """A document without its signature, as the same bytes however it was written."""
    kept = {k: v for k, v in document.items() if k != "signature"}
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


def sign(document: dict[str, Any], key: str) -> str:
    """The signature of a document: 64 hexadecimal digits.

    Args:
        document: plain data.
        key: the bundle's, in hexadecimal digits.
    """
    return hmac.new(bytes.fromhex(key), canonical(document), hashlib.sha256).hexdigest()


def is_signed(document: dict[str, Any], key: str) -> bool:
    """Whether a document says what it said when it was signed."""
    return hmac.compare_digest(str(document.get("signature", "")), sign(document, key))
