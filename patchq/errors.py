"""The one family of errors that a user sees.

An error is one sentence that names the place, then one line that says what to do. The class decides the exit code.
"""

from __future__ import annotations


class PatchqError(Exception):
    """Something a person can act on.

    Attributes:
        message: one sentence that names the file, line, patch or hunk.
        remedy: one line that says what to do next.
        exit_code: the process's exit status.
        files: the files that the message is about, relative to their tree.
    """

    exit_code = 1

    def __init__(self, message: str, remedy: str, *, files: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.files = files


class RefusedError(PatchqError):
    """The answer is no: a conflict, a mismatch, a red test. Exit code 1."""

    exit_code = 1


class InputError(PatchqError):
    """Bad input or usage. Exit code 2."""

    exit_code = 2


class EnvironmentLacksError(PatchqError):
    """The environment lacks something: network, GPU, compiler, a new enough git, a free lock. Exit code 3."""

    exit_code = 3
