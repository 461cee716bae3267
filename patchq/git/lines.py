"""Lines of a patch file: with their endings, and with the place they stand at."""

from __future__ import annotations

from dataclasses import dataclass, field

from patchq.errors import InputError


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a file with their endings; only LF ends a line."""
    lines = data.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


@dataclass
class Reader:
    """Lines of a patch file with the place they stand at."""

    where: str
    lines: list[bytes]
    at: int = 0
    first_line: int = 1
    _end: int = field(init=False)

    def __post_init__(self) -> None:
        self._end = len(self.lines)

    @property
    def number(self) -> int:
        """The number in the file of the line that comes next, from 1."""
        return self.first_line + self.at

    def peek(self) -> bytes | None:
        """The line that comes next, or None at the end."""
        return self.lines[self.at] if self.at < self._end else None

    def take(self) -> bytes:
        """The line that comes next, which is then behind."""
        line = self.lines[self.at]
        self.at += 1
        return line

    def fail(
        self, what: str, remedy: str = "Write the patch anew from its commit: patchq refresh."
    ) -> InputError:
        """The error that names this place, for the caller to raise."""
        return InputError(f"{self.where}:{self.number}: {what}.", remedy)


def shown(line: bytes) -> str:
    """A line as messages quote it, shortened."""
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return repr(text if len(text) <= 60 else text[:57] + "...")  # noqa: PLR2004
