"""Where bytes from a connection go: into memory, or through a small buffer into a file."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Callable, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.data.object_store import Buffer
    from scriptmode.errors import PlatformError

#: Received at once. It stays in the processor's cache until it is written: with 1 MiB a file costs twice as much.
STEP_BYTES = 256 * 1024
#: How long a thread that pauses may go on after nobody waits for it any more.
LOOK_SECONDS = 0.1

_asking = local()


class NotWantedError(Exception):
    """Nobody waits any more for what this thread is reading."""


@contextmanager
def reading_while(wanted: Callable[[], bool]) -> Iterator[None]:
    """Let this thread's reading into memory and trying again end with `NotWantedError` once ``wanted`` says no."""
    _asking.wanted = wanted
    try:
        yield
    finally:
        del _asking.wanted


def require_wanted() -> None:
    """Raise `NotWantedError` when nobody waits any more for what this thread is reading."""
    wanted: Callable[[], bool] | None = getattr(_asking, "wanted", None)
    if wanted is not None and not wanted():
        raise NotWantedError


def sleep_while_wanted(seconds: float) -> None:
    """Sleep as long as somebody waits for what this thread is reading; raise `NotWantedError` once nobody does."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, LOOK_SECONDS))
        require_wanted()


class Target(Protocol):
    """``size`` bytes that come in order; ``done`` is how many have come."""

    size: int

    def room(self, done: int) -> memoryview:
        """Give where the next bytes are to be received; `took` is called then."""

    def took(self, done: int, count: int) -> None:
        """Keep what was received."""

    def put(self, done: int, data: Buffer) -> None:
        """Keep bytes that were received elsewhere."""


class Memory:
    """A `Target` that is memory."""

    def __init__(self, content: memoryview) -> None:
        self.size = len(content)
        self._content = content

    def room(self, done: int) -> memoryview:
        """Give where the next bytes are to be received."""
        require_wanted()
        return self._content[done:]

    def took(self, done: int, count: int) -> None:
        """Leave what was received where it is."""

    def put(self, done: int, data: Buffer) -> None:
        """Copy bytes that were received elsewhere."""
        require_wanted()
        self._content[done : done + len(data)] = data


class File:
    """A `Target` of ``size`` bytes from ``start`` on of a file that may have others at the same time.

    ``scratch`` is memory of the calling thread's own; ``failed`` gives what is raised when the file cannot be written.
    """

    def __init__(
        self, descriptor: int, start: int, size: int, *, scratch: memoryview, failed: Callable[[OSError], PlatformError]
    ) -> None:
        self.size = size
        self._descriptor = descriptor
        self._start = start
        self._scratch = scratch
        self._failed = failed

    def room(self, done: int) -> memoryview:
        """Give where the next bytes are to be received."""
        return self._scratch[: self.size - done]

    def took(self, done: int, count: int) -> None:
        """Write what was received."""
        self.put(done, self._scratch[:count])

    def put(self, done: int, data: Buffer) -> None:
        """Write bytes."""
        rest, start = memoryview(data), self._start + done
        try:
            while rest:
                written = os.pwrite(self._descriptor, rest, start)
                start, rest = start + written, rest[written:]
        except OSError as error:
            # Not to be taken for what a connection raises.
            raise self._failed(error) from error
