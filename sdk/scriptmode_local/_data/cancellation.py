"""Cancel what a thread reads ahead of a consumer that has gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import local
from typing import Callable

#: Seconds for which a thread that sleeps may go on after it was cancelled.
CHECK_SECONDS = 0.1

_thread = local()


class CancelledError(Exception):
    """The result of this thread is not needed any more."""


@contextmanager
def cancelled_by(is_cancelled: Callable[[], bool]) -> Iterator[None]:
    """Raise `CancelledError` in this thread's reads and retries once ``is_cancelled`` returns True."""
    _thread.is_cancelled = is_cancelled
    try:
        yield
    finally:
        del _thread.is_cancelled


def raise_if_cancelled() -> None:
    """Raise `CancelledError` when the result of this thread is not needed any more."""
    is_cancelled: Callable[[], bool] | None = getattr(_thread, "is_cancelled", None)
    if is_cancelled is not None and is_cancelled():
        raise CancelledError


def sleep_unless_cancelled(seconds: float) -> None:
    """Sleep; raise `CancelledError` when the result of this thread is not needed any more."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, CHECK_SECONDS))
        raise_if_cancelled()
