"""Something that is looked at again and again while other work is done."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextlib.contextmanager
def meanwhile(every: float, look: Callable[[], None]) -> Iterator[None]:
    """Have `look` called on a thread of its own, after each `every` seconds, until the block is done."""
    over = threading.Event()

    def loop() -> None:
        while not over.wait(every):
            look()

    thread = threading.Thread(target=loop, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
