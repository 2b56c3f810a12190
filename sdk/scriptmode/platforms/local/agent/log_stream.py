"""The agent's log as its ``sys.stderr``: a log that cannot be written does not end the process that writes to it."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

from scriptmode_runtime.processes.streams import Sink

if TYPE_CHECKING:
    from typing_extensions import Buffer


class _Log(io.RawIOBase):
    """Writes to a descriptor; what a full disk does not take comes later, or is counted."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._sink, self._process = Sink(descriptor), os.getpid()

    @property
    def name(self) -> int:
        """The descriptor, which stands for the name of a stream without one."""
        return self._descriptor

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, content: Buffer, /) -> int:
        """Take all of ``content``; never raise ``OSError``."""
        if self._process != os.getpid():
            # A forked child; what waits is its parent's to write.
            self._sink, self._process = Sink(self._descriptor), os.getpid()
        whole = bytes(content)
        self._sink.write(whole)
        return len(whole)


def open_log_stream(descriptor: int) -> io.TextIOWrapper:
    """Return a text stream that never fails over a descriptor, which stays its owner's."""
    return io.TextIOWrapper(_Log(descriptor), encoding="utf-8", errors="backslashreplace", write_through=True)
