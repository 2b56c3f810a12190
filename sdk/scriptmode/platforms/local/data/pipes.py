"""Pipe mode: a channel's stream to one host, through one FIFO an epoch.

Epochs of one channel follow each other; ``<channel>_<n+1>`` is there before ``<channel>_<n>`` is opened, and a FIFO
whose epoch ended is gone. A reader that closes early ends its epoch.
"""

from __future__ import annotations

import fcntl
import itertools
import os
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Callable, NoReturn

from scriptmode.platforms.local.data.shared import SharedNumbers

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from scriptmode.platforms.local.data.objects import Buffer

    #: Gives the bytes of an epoch; closing it stops whatever fetches them.
    Stream = Callable[[int], Generator[Buffer, None, None]]

#: The most an unprivileged process may ask for (/proc/sys/fs/pipe-max-size).
PIPE_BYTES = 1024 * 1024
#: fcntl(2); Python 3.9 has no name for it.
_SET_PIPE_SIZE = 1031


class Gauge:
    """How far a stream has got, for the process that forked its producer."""

    def __init__(self) -> None:
        self._numbers = SharedNumbers(2)

    @property
    def opened(self) -> int:
        """How many FIFOs a reader opened."""
        return self._numbers[0]

    @property
    def sent(self) -> int:
        """Bytes that went into FIFOs."""
        return self._numbers[1]

    def add(self, *, opened: int = 0, sent: int = 0) -> None:
        """Count; only the producer does."""
        self._numbers[0] += opened
        self._numbers[1] += sent


def fifo(place: Path, epoch: int) -> Path:
    """Give an epoch's FIFO; ``place`` is the channel's in ``input/data``."""
    return place.with_name(f"{place.name}_{epoch}")


def make(place: Path, epoch: int) -> None:
    """Make an epoch's FIFO."""
    place.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(fifo(place, epoch))


def feed(place: Path, stream: Stream, gauge: Gauge) -> NoReturn:
    """Serve epoch after epoch, the first FIFO being there; what the stream raises ends it.

    The FIFO stays open then, for its end would look like the epoch's: whoever started this ends the reader first.
    """
    for epoch in itertools.count():
        make(place, epoch + 1)
        path = fifo(place, epoch)
        # Returns when there is a reader.
        pipe = os.open(path, os.O_WRONLY)
        gauge.add(opened=1)
        _send(pipe, stream, epoch, gauge)
        os.close(pipe)
        path.unlink(missing_ok=True)
    raise AssertionError


def _send(pipe: int, stream: Stream, epoch: int, gauge: Gauge) -> None:
    with suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, PIPE_BYTES)
    with closing(stream(epoch)) as buffers:
        for buffer in buffers:
            rest = memoryview(buffer)
            try:
                while rest:
                    written = os.write(pipe, rest)
                    rest = rest[written:]
                    gauge.add(sent=written)
            except BrokenPipeError:
                return
