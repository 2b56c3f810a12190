"""Ctrl-C during steps that are done together or not at all."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds after the first Ctrl-C from which on another one is not deferred: a disk or a program may hang.
_IMPATIENT_SECONDS = 3.0


@contextmanager
def deferred_interrupts() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` for a Ctrl-C at the end of the context, not in it.

    Without effect outside the main thread, which alone is interrupted, and where Ctrl-C has another handler than
    Python's.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    first: list[float] = []

    def note(*_: object) -> None:
        first.append(time.monotonic())
        if first[-1] - first[0] > _IMPATIENT_SECONDS:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if first:
            raise KeyboardInterrupt
