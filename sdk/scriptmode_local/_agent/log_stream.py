"""The agent's log as its ``sys.stderr``: a write to it never fails, so a full disk does not end the agent."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from scriptmode_runtime._processes.streams import Sink

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Log(io.FileIO):
    """Stream to a descriptor; text that a full disk refuses is written later, or counted and dropped."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor, "w", closefd=False)
        self._sink, self._process = Sink(descriptor), os.getpid()

    def write(self, content: Buffer, /) -> int:
        """Write or buffer all of ``content``; never raise ``OSError``."""
        if self._process != os.getpid():
            # In a forked child: the parent writes what is buffered, so the child begins with an empty buffer.
            self._sink, self._process = Sink(self.fileno()), os.getpid()
        data = bytes(content)
        self._sink.write(data)
        return len(data)


def open_log_stream(descriptor: int) -> io.TextIOWrapper:
    """Return a text stream to ``descriptor`` whose writes never fail; the caller keeps the descriptor."""
    return io.TextIOWrapper(_Log(descriptor), encoding="utf-8", errors="backslashreplace", write_through=True)
