"""Pipe mode: a channel's stream to one host, through one FIFO an epoch.

Epochs of one channel follow each other; ``<channel>_<n+1>`` is there before ``<channel>_<n>`` is opened, and a FIFO
whose epoch ended is gone. A reader that closes early ends its epoch.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import select
import stat
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING, Callable, NoReturn

from scriptmode.data.shared_counters import SharedCounters
from scriptmode.errors import DataError
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from scriptmode.data.object_store import Buffer

    #: Gives the bytes of an epoch. It calls what it is given now and then while it waits, and lets through what that
    #: raises. Closing it stops whatever fetches the bytes.
    Stream = Callable[[int, Callable[[], None]], Generator[Buffer, None, None]]

#: The most an unprivileged process may ask for (/proc/sys/fs/pipe-max-size).
PIPE_BYTES = 1024 * 1024
#: fcntl(2); Python 3.9 has no name for it.
_SET_PIPE_SIZE = 1031


class Gauge:
    """How many FIFOs of a channel were opened and how much went into them, for the process that forked its producer."""

    def __init__(self) -> None:
        self._numbers = SharedCounters(2)
        #: The producer's own: what is shared is written and not read back.
        self._sent = 0

    @property
    def opened(self) -> int:
        """How many FIFOs a reader opened."""
        return self._numbers[0]

    def count(self) -> None:
        """Count one more; only the producer does."""
        self._numbers[0] += 1

    @property
    def sent(self) -> int:
        """How many bytes went into FIFOs."""
        return self._numbers[1]

    def add(self, count: int) -> None:
        """Count bytes that went into a FIFO; only the producer does, once for each buffer."""
        self._sent += count
        self._numbers[1] = self._sent


def fifo(place: Path, epoch: int) -> Path:
    """Return the path of an epoch's FIFO; ``place`` is the channel's in ``input/data``."""
    return place.with_name(f"{place.name}_{epoch}")


class Fifos:
    """The FIFOs of one channel of one host, in the directory that is there before the host starts.

    That directory is kept open: one that the host's script puts in its place, a link to another one say, is not used.
    """

    def __init__(self, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        self._directory = beneath.Directory(place.parent)
        self._place = place

    def close(self) -> None:
        """Close the directory."""
        self._directory.close()

    def make(self, epoch: int) -> None:
        """Make an epoch's FIFO."""
        with self._directory.at(fifo(self._place, epoch).name) as at:
            os.mkfifo(at.name, dir_fd=at.dir_fd)

    def open(self, epoch: int) -> int:
        """Wait for a reader of an epoch's FIFO, and return the descriptor to write to it; raise `DataError`."""
        path = fifo(self._place, epoch)
        # A host may have put something else in the FIFO's place: it is looked at before it is opened.
        with self._directory.at(path.name) as at:
            found = os.open(at.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at.dir_fd)
        try:
            if not stat.S_ISFIFO(os.fstat(found).st_mode):
                raise DataError(f"{str(path)!r} is no FIFO any more; the script must leave it where it is")
            return os.open(f"/proc/self/fd/{found}", os.O_WRONLY | os.O_CLOEXEC)
        finally:
            os.close(found)

    def remove(self, epoch: int) -> None:
        """Remove an epoch's FIFO, if it is still there."""
        with suppress(FileNotFoundError), self._directory.at(fifo(self._place, epoch).name) as at:
            os.unlink(at.name, dir_fd=at.dir_fd)


def feed(fifos: Fifos, stream: Stream, gauge: Gauge) -> NoReturn:
    """Serve epoch after epoch, the first FIFO being there; what the stream raises ends it.

    The FIFO stays open then, for its end would look like the epoch's: whoever started this ends the reader first.
    """
    for epoch in itertools.count():
        fifos.make(epoch + 1)
        pipe = fifos.open(epoch)
        gauge.count()
        _send(pipe, partial(stream, epoch), gauge)
        os.close(pipe)
        fifos.remove(epoch)
    raise AssertionError


class _ReaderGoneError(Exception):
    """The reader closed its end."""


def _send(pipe: int, stream: Callable[[Callable[[], None]], Generator[Buffer, None, None]], gauge: Gauge) -> None:
    with suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, PIPE_BYTES)
    try:
        with closing(stream(lambda: _require_reader(pipe))) as buffers:
            for buffer in buffers:
                _write(pipe, buffer)
                gauge.add(len(buffer))
    except _ReaderGoneError:
        pass
    except Exception:
        # What breaks after the reader went away is nobody's loss.
        with suppress(_ReaderGoneError):
            _require_reader(pipe)
            raise


def _require_reader(pipe: int) -> None:
    poll = select.poll()
    # Of a FIFO's write end this asks for POLLERR alone: there is no reader (poll(2)).
    poll.register(pipe, 0)
    if poll.poll(0):
        raise _ReaderGoneError


def _write(pipe: int, buffer: Buffer) -> None:
    rest = memoryview(buffer)
    try:
        while rest:
            rest = rest[os.write(pipe, rest) :]
    except BrokenPipeError:
        raise _ReaderGoneError from None
