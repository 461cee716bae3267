"""Ctrl-C, put off while something is being written that must not be left half done."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_HELD = threading.Lock()


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Have Ctrl-C reach neither this process nor the git that it starts until the block is done; then it is raised.

    It is put off in the main thread alone, where Python raises it; a block within another one changes nothing.

    Raises:
        KeyboardInterrupt: it came meanwhile.
    """
    if threading.current_thread() is not threading.main_thread() or not _HELD.acquire(blocking=False):
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)
        _HELD.release()
    if came:
        raise KeyboardInterrupt
