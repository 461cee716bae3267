"""What a noun says of a value that it does not take, for whoever knows at which line the value stands."""

from __future__ import annotations


class MisplacedError(ValueError):
    """A value that a noun does not take, and where in it that stands.

    Attributes:
        keys: the way to it from the noun.
    """

    def __init__(self, message: str, *keys: str) -> None:
        super().__init__(message)
        self.keys = keys
