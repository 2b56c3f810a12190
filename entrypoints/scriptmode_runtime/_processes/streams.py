"""The relay from the children's pipes to this process's output: unchanged, and no line inside another.

The relay reads a chunk of a readable `Source` and writes it to the `Sink`: all of it where there is one source, else
its complete lines, and the beginning of the next line once that has waited for its end for `_PARTIAL_SECONDS`. What
another source, or the launcher, writes then begins on a line of its own. While the sink's pipe is full no source is
read. Bounded: the partial line of each source and one pending write.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import stat
import sys
from collections.abc import Callable

# Imported at once: on a full disk Python leaves truncated bytecode of a module, with which the next import fails.
from scriptmode_runtime._processes.log_backlog import Backlog

_CHUNK = 64 * 1024
#: Requested capacity of a pipe, the default maximum (fs.pipe-max-size): fewer switches between writer and relay.
_PIPE = 1024 * 1024
_F_SETPIPE_SZ = 1031
#: Bytes kept for the report of a failure: several tracebacks, those of one host's ranks included.
_TAIL = 64 * 1024
#: Chunks smaller than this are joined.
_SMALL = 4 * 1024
#: The most bytes of a log's end that a notice replaces, and the fewest: no notice is longer.
_END, _NOTICE = 4 * 1024, 160
#: Seconds for which a partial line waits for its end, where several processes write. A print is often two writes.
_PARTIAL_SECONDS = 0.5


class Tail:
    """The last bytes of a stream, kept in the chunks that were read: only small ones are copied."""

    def __init__(self, limit: int = _TAIL) -> None:
        self._limit = limit
        self._pieces: list[bytes] = [b""]
        self._size = 0
        self._is_cut = False

    def add(self, chunk: bytes) -> None:
        """Add a chunk of the stream."""
        if len(self._pieces[-1]) < _SMALL:
            self._pieces[-1] += chunk
        else:
            self._pieces.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._pieces[0]) >= self._limit:
            self._size -= len(self._pieces.pop(0))
            self._is_cut = True

    def text(self) -> str:
        """Return the end of the stream as text, in whole lines where it has any."""
        kept = b"".join(self._pieces)
        end = kept[-self._limit :]
        if self._is_cut or len(end) < len(kept):
            # A partial line may hold a part of a secret, which the redaction would not recognise.
            end = end[end.find(b"\n") + 1 :]
        return end.decode("utf-8", "replace")


class Sink:
    """The launcher's own output. Where it is a pipe, a slow reader does not block the launcher.

    Where it is a file on a full disk, whole lines are dropped, and a notice has their number: see `log_backlog`.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.pending = b""
        self.mid_line = False
        self._reopened: int | None = None
        self._is_file = False
        self._backlog = Backlog()
        try:
            mode = os.fstat(descriptor).st_mode
            self._is_file = stat.S_ISREG(mode)
            if stat.S_ISFIFO(mode):
                # Opened again, because O_NONBLOCK is a property of the open file, which other processes share.
                self._reopened = os.open(f"/proc/self/fd/{descriptor}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
                self.descriptor = self._reopened
        except OSError:  # no /proc, or another user's pipe: writes block, as print does
            pass

    def write(self, data: bytes) -> None:
        """Write ``data`` after pending output; the part that cannot be written now is pending."""
        if not data:
            return
        self.mid_line = data[-1:] not in b"\n\r"
        if self._backlog:
            self._backlog.write(self._written)
        if self._backlog:
            self._backlog.add(data)
            self._backlog.write(self._written)
        else:
            self.pending = self.pending + data if self.pending else data
            self.flush()

    def flush(self) -> None:
        """Write as much pending output as possible; drop it where the reader has closed the pipe."""
        self.pending = self._written(self.pending)
        if self.pending and self._is_file:
            self._backlog.add(self.pending)
            self.pending = b""

    def close(self) -> None:
        """Write the remaining output as far as possible, and close the descriptor that was opened here."""
        self._backlog.end()
        self._backlog.write(self._written)
        if self._backlog:
            self._replace_end()
        if self._reopened is not None:
            os.close(self._reopened)

    def _written(self, data: bytes) -> bytes:
        """Write ``data``; return the rest that can only be written later."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self.descriptor, view) :]
        except BlockingIOError:
            pass
        except OSError as error:
            if not self._is_file:
                return b""
            self._backlog.reason = error.strerror or str(error)
        return bytes(view) if view else b""

    def _replace_end(self) -> None:
        """Write the notice of what is missing over the file's last lines, which needs no space."""
        # Opened again: Linux appends what pwrite writes with O_APPEND, and the file may be open for writing alone.
        with contextlib.suppress(OSError), open(f"/proc/self/fd/{self.descriptor}", "r+b", buffering=0) as file:
            start = file.seek(max(0, file.seek(0, os.SEEK_END) - _END))
            end = file.read()
            newline = end.rfind(b"\n", 0, -_NOTICE)
            file.seek(start + newline + 1)
            last = end[newline + 1 :]
            text = (b"\n" if newline < 0 < start else b"") + self._backlog.replace(last)
            # The size stays the same for those who read the log meanwhile.
            file.write(text[:-1].ljust(len(last) - 1) + b"\n")


class Source:
    """One child's output."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        _widen(descriptor)
        self.descriptor = descriptor
        self.tail = Tail()
        self.open = True
        self.watched = False
        #: A partial line that was read and not written, and when it is written at the latest.
        self.partial = b""
        self.due = 0.0


class Relay:
    """The relay from all sources to the sink, with callbacks of one selector, in one thread."""

    def __init__(self, selector: selectors.BaseSelector, sink: Sink, clock: Callable[[], float]) -> None:
        self._selector = selector
        self._sink = sink
        self._clock = clock
        self._sources: list[Source] = []
        #: Number of reads that returned data.
        self.chunks = 0
        #: The source of what was written last; None for a line of the launcher.
        self._writer: Source | None = None
        self._blocked = False

    @property
    def idle(self) -> bool:
        """Whether every stream has ended and is written."""
        return not self._sources and not self._sink.pending

    def pending(self) -> int:
        """Return the number of bytes that were read and are not written."""
        return len(self._sink.pending) + sum(len(source.partial) for source in self._sources)

    def add(self, descriptor: int) -> Source:
        """Relay the reading end of a pipe, which the relay now owns."""
        source = Source(descriptor)
        self._sources.append(source)
        self._watch(source)
        return source

    def write_line(self, line: str) -> None:
        """Write a line of the launcher itself."""
        self._write(f"{line}\n".encode("utf-8", "replace"), None)

    def deadline(self) -> float | None:
        """Return when `tick` is due next."""
        return min((source.due for source in self._sources if source.partial), default=None)

    def tick(self) -> None:
        """Write partial lines that waited long enough."""
        now = self._clock()
        for source in self._sources:
            if source.partial and source.due <= now:
                self._write(source.partial, source)
                source.partial = b""

    def drain(self, source: Source) -> None:
        """Read the present content of the pipe: its process has ended, and children of that may keep the pipe open."""
        total = 0
        while source.open and total < _PIPE:
            size = self._read(source)
            if not size:
                return
            total += size

    def close(self) -> None:
        """Close the sources that are still open."""
        for source in list(self._sources):
            self._end(source)

    def _read(self, source: Source) -> int:
        try:
            chunk = os.read(source.descriptor, _CHUNK)
        except BlockingIOError:
            return 0
        if not chunk:
            self._end(source)
            return 0
        self.chunks += 1
        source.tail.add(chunk)
        self._process(source, chunk)
        return len(chunk)

    def _process(self, source: Source, chunk: bytes) -> None:
        data = source.partial + chunk if source.partial else chunk
        is_whole = len(self._sources) == 1 or len(data) > _PIPE
        cut = len(data) if is_whole else data.rfind(b"\n") + 1
        if cut or not source.partial:
            source.due = self._clock() + _PARTIAL_SECONDS
        source.partial = data[cut:]
        self._write(data[:cut], source)

    def _end(self, source: Source) -> None:
        self._unwatch(source)
        source.open = False
        os.close(source.descriptor)
        self._sources.remove(source)
        self._write(source.partial, source)
        source.partial = b""

    def _write(self, data: bytes, source: Source | None) -> None:
        if not data:
            return
        if self._sink.mid_line and source is not self._writer:
            data = b"\n" + data
        self._writer = source
        self._sink.write(data)
        if self._sink.pending and not self._blocked:
            self._blocked = True
            for other in self._sources:
                self._unwatch(other)
            self._selector.register(self._sink.descriptor, selectors.EVENT_WRITE, self._writable)

    def _writable(self) -> None:
        self._sink.flush()
        if not self._sink.pending:
            self._blocked = False
            self._selector.unregister(self._sink.descriptor)
            for source in self._sources:
                self._watch(source)

    def _watch(self, source: Source) -> None:
        if not source.watched and source.open and not self._blocked:
            source.watched = True
            self._selector.register(source.descriptor, selectors.EVENT_READ, lambda: self._read(source))

    def _unwatch(self, source: Source) -> None:
        if source.watched:
            source.watched = False
            self._selector.unregister(source.descriptor)


def _widen(pipe: int) -> None:
    """Set the capacity of a pipe to `_PIPE` bytes, where the system allows it."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, _F_SETPIPE_SZ, _PIPE)
