"""What a launcher writes: the output of its processes to stdout, and lines of its own to stderr."""

from __future__ import annotations

import contextlib
import os
import selectors
from collections.abc import Callable
from typing import TYPE_CHECKING

from scriptmode_runtime._processes.streams import Relay, Sink

if TYPE_CHECKING:
    from scriptmode_runtime._processes.loop import Loop

#: Seconds to wait for a reader of this launcher's output that takes nothing.
_FLUSH_SECONDS = 10.0


class LauncherOutput:
    """The two streams of a launcher; where both are the same file, its own lines are written between whole lines."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sink = Sink(1)
        is_same_file = False
        with contextlib.suppress(OSError):  # the parent process closed one, or its file system is gone
            is_same_file = os.path.sameopenfile(1, 2)
        self._log = None if is_same_file else Sink(2)
        self.relay = Relay(loop.selector, self._sink, loop.clock)
        loop.tickers.append(self.relay)

    def __enter__(self) -> LauncherOutput:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(self, *_: object) -> None:
        self.relay.close()
        self._sink.close()
        if self._log:
            self._log.close()

    def log_line(self, text: str) -> None:
        """Log one line of the launcher itself."""
        if self._log is None:
            self.relay.write_line(f"scriptmode: {text}")
        else:
            self._log.write(f"scriptmode: {text}\n".encode("utf-8", "replace"))
            if self._log.pending and self._log.descriptor not in self._loop.selector.get_map():
                self._loop.selector.register(self._log.descriptor, selectors.EVENT_WRITE, self._log_writable)

    def flush_log(self) -> None:
        """Wait until the launcher's own lines are written, with a deadline."""
        self.flush(lambda: len(self._log.pending) if self._log else 0)

    def flush(self, pending: Callable[[], int]) -> None:
        """Wait until no bytes are ``pending``, unless the reader takes nothing for `_FLUSH_SECONDS`."""
        left = pending()
        while left and self._loop.until(lambda: pending() < left, self._loop.clock() + _FLUSH_SECONDS):  # noqa: B023 - it is called now
            left = pending()

    def _log_writable(self) -> None:
        if self._log:
            self._log.flush()
            if not self._log.pending:
                self._loop.selector.unregister(self._log.descriptor)
