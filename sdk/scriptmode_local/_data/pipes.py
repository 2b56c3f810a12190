"""Pipe mode: write a channel's stream for one host into FIFOs, one an epoch.

The epochs of a channel follow each other; ``<channel>_<n+1>`` is created before ``<channel>_<n>`` is opened, and a FIFO
is removed when its epoch has ended. A reader that closes early ends its epoch.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import select
import stat
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NoReturn

from scriptmode._core.aws.s3_body import Body
from scriptmode.errors import DataError
from scriptmode_runtime._files import beneath

if TYPE_CHECKING:
    from scriptmode_local._data.large_objects import Bytes

    #: Yields the bytes of an epoch. It calls its second argument now and then while it waits, and passes on what that
    #: raises. Closing it stops the downloads.
    Stream = Callable[[int, Callable[[], None]], Generator[Bytes, None, None]]

#: The largest size that an unprivileged process may set (/proc/sys/fs/pipe-max-size).
PIPE_BYTES = 1024 * 1024
#: fcntl(2); Python 3.9 has no name for it.
_SET_PIPE_SIZE = 1031


def fifo(channel: Path, epoch: int) -> Path:
    """Return the path of an epoch's FIFO; ``channel`` is the channel's path in ``input/data``."""
    return channel.with_name(f"{channel.name}_{epoch}")


class Fifos:
    """The FIFOs of one channel of one host, in a directory that is created before the host starts.

    The directory is kept open: if the host's script replaces it, by a link for example, the replacement is not used.
    """

    def __init__(self, channel: Path) -> None:
        channel.parent.mkdir(parents=True, exist_ok=True)
        self._directory = beneath.Directory(channel.parent)
        self._channel = channel

    def create(self, epoch: int) -> None:
        """Create an epoch's FIFO."""
        with self._directory.at(fifo(self._channel, epoch).name) as at:
            os.mkfifo(at.name, dir_fd=at.dir_fd)

    def open(self, epoch: int) -> int:
        """Wait for a reader of an epoch's FIFO, and return the descriptor to write to it; raise `DataError`."""
        path = fifo(self._channel, epoch)
        # A host may have replaced the FIFO: its type is checked before it is opened for writing.
        with self._directory.at(path.name) as at:
            descriptor = os.open(at.name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at.dir_fd)
        try:
            if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                raise DataError(f"{str(path)!r} is not a FIFO any more", advice="the script must not replace it")
            return os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_CLOEXEC)
        finally:
            os.close(descriptor)

    def remove(self, epoch: int) -> None:
        """Remove an epoch's FIFO, if it still exists."""
        with suppress(FileNotFoundError), self._directory.at(fifo(self._channel, epoch).name) as at:
            os.unlink(at.name, dir_fd=at.dir_fd)


def feed(fifos: Fifos, stream: Stream, counters: memoryview) -> NoReturn:
    """Write epoch after epoch; the first FIFO must exist. An error of the stream is raised.

    ``counters`` count the FIFOs that a reader opened, and the bytes that were written into them. After an error the
    FIFO stays open, for its end would look like the epoch's: the caller must stop the reader first.
    """
    for epoch in itertools.count():
        fifos.create(epoch + 1)
        pipe = fifos.open(epoch)
        counters[0] += 1
        _send(pipe, stream, epoch, counters)
        os.close(pipe)
        fifos.remove(epoch)
    raise AssertionError


class _ReaderGoneError(Exception):
    """The reader closed its end."""


def _send(pipe: int, stream: Stream, epoch: int, counters: memoryview) -> None:
    with suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE_SIZE, PIPE_BYTES)
    try:
        chunks = stream(epoch, lambda: _require_reader(pipe))
        with closing(chunks) as buffers:
            for buffer in buffers:
                counters[1] += _write(pipe, buffer)
    except _ReaderGoneError:
        pass
    except Exception:
        # An error after the reader has closed its end does not matter.
        with suppress(_ReaderGoneError):
            _require_reader(pipe)
            raise


def _require_reader(pipe: int) -> None:
    poll = select.poll()
    # Without events, a FIFO's write end reports POLLERR alone: it has no reader (poll(2)).
    poll.register(pipe, 0)
    if poll.poll(0):
        raise _ReaderGoneError


def _write(pipe: int, buffer: Bytes) -> int:
    """Write all of a buffer, or move what is there of a response; return the number of bytes."""
    try:
        if isinstance(buffer, Body):
            return buffer.splice(pipe)
        rest = memoryview(buffer)
        while rest:
            rest = rest[os.write(pipe, rest) :]
    except BrokenPipeError:
        raise _ReaderGoneError from None
    return len(buffer)
