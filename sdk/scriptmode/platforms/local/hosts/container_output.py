"""The output of a container: Docker sends stdout and stderr as two streams, the log has the lines of both."""

from __future__ import annotations

import select
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds for which a line without an end delays the other stream, as in the runtime's relay.
_HOLD_SECONDS = 0.5


class MergedStreams:
    """The streams of one container, merged so that no line stands inside another.

    A print is often several writes, between which Docker may send output of the other stream. That waits for the end of
    the line, but at most for `_HOLD_SECONDS`.
    """

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        #: The stream of the incomplete line in the log, and the output of the other one since then.
        self._holder: int | None = None
        self._waiting: list[tuple[int, bytes]] = []
        self._deadline = 0.0

    def add(self, stream: int, data: bytes) -> None:
        """Write the next bytes of a stream, or keep them until the other stream's line has ended."""
        if self._holder not in (None, stream):
            if not self._waiting:
                self._deadline = time.monotonic() + _HOLD_SECONDS
            self._waiting.append((stream, data))
            return
        end = data.find(b"\n") + 1 if self._waiting else 0
        if end:
            self._write(data[:end])
            self._resume()
            data = data[end:]
            if data:
                self.add(stream, data)
            return
        self._write(data)
        self._holder = None if data.endswith((b"\n", b"\r")) else stream

    def remaining_seconds(self) -> float | None:
        """Return how long the kept output still waits, or ``None`` where nothing is kept."""
        return max(0.0, self._deadline - time.monotonic()) if self._waiting else None

    def release(self) -> None:
        """Write the kept output, on a new line."""
        if self._waiting:
            self._write(b"\n")
            self._resume()

    def _resume(self) -> None:
        kept, self._waiting, self._holder = self._waiting, [], None
        for stream, data in kept:
            self.add(stream, data)


def copy_output(attached: Any, write: Callable[[bytes], None]) -> None:
    """Write the output of an attached container until its streams end. ``attached`` is Docker's socket."""
    from docker.utils.socket import frames_iter

    streams = MergedStreams(write)
    frames = frames_iter(attached, tty=False)
    readable = select.poll()
    readable.register(attached, select.POLLIN)
    while True:
        seconds = streams.remaining_seconds()
        if seconds is not None and not (seconds and readable.poll(seconds * 1000)):
            streams.release()
        frame = next(frames, None)
        if frame is None:
            break
        streams.add(*frame)
    streams.release()
