"""The frames of the stream between `relay` and `remote_host`: a line of JSON, then ``size`` bytes.

=============  =========================================================================================================
``hello``      From the host's machine, first: its ``address`` for the other hosts, "" where the engine knows it, and
               the ``folder`` that is the job's directory there.
``file``       The next bytes of the file ``path`` in the job's directory, which replace the file when ``last``, with
               its ``mode`` and its time of modification ``mtime`` in ns.
``directory``  There is the directory ``path``.
``link``       There is a symbolic link ``path`` to ``target``.
``remove``     The file ``path`` is not there any more.
``append``     The next bytes at the end of the file ``path``.
``start``      To the host's machine: all files are sent; start the agent of ``host``.
``message``    A line of `host_messages`: a command to the host's machine, an event from it.
=============  =========================================================================================================
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Callable, NamedTuple, Protocol

from scriptmode_local._store.shapes import validate_shape

#: Bytes of a file in one frame: other frames do not wait for a large file.
CHUNK = 256 << 10
_LONGEST_LINE = 64 << 10
#: A time of modification is less: 292 years in ns.
_LATEST = 1 << 63
_SHAPES: Mapping[str, Mapping[str, object]] = {
    "hello": {"address!": str, "folder!": str},
    "file": {"path!": str, "last!": bool, "mode!": int, "mtime!": int},
    "directory": {"path!": str},
    "link": {"path!": str, "target!": str},
    "remove": {"path!": str},
    "append": {"path!": str},
    "start": {"host!": str},
    "message": {},
}


class StreamError(Exception):
    """Error for bytes that are not frames."""


class Frame(NamedTuple):
    """One frame: its kind, the other fields, and its bytes."""

    kind: str
    fields: Mapping[str, Any]
    content: bytes


class Stream(Protocol):
    """A stream that does not wait, as raw ones of `io`: None stands for nothing yet, b"" for the end."""

    def read(self) -> bytes | None: ...
    def write(self, content: memoryview, /) -> int | None: ...
    def fileno(self) -> int: ...


def send_frame(
    stream: Stream, kind: str, content: bytes = b"", *, wait: Callable[[int], object] = lambda _: None, **fields: object
) -> None:
    """Write a frame; raise ``OSError``, ``BrokenPipeError`` where nothing reads it.

    ``wait`` is called before each write with the descriptor: it returns when that may be written, and reads what
    arrives meanwhile. Otherwise two ends that send large files would wait for each other for ever.
    """
    line = json.dumps({"kind": kind, "size": len(content), **fields}).encode() + b"\n"
    left = memoryview(line + content)
    while left:
        wait(stream.fileno())
        left = left[stream.write(left) or 0 :]


def wait_for(readable: Collection[int], writable: Collection[int] = (), *, seconds: float) -> list[int]:
    """Return the descriptors that can be read or written, or are closed; none after the given seconds."""
    # select(2) refuses descriptors above 1023.
    poller = select.poll()
    for descriptor in {*readable, *writable}:
        events = (select.POLLIN if descriptor in readable else 0) | (select.POLLOUT if descriptor in writable else 0)
        poller.register(descriptor, events)
    return [descriptor for descriptor, _ in poller.poll(seconds * 1000)]


class FrameReader:
    """Reader of the frames of a stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        #: Whether the other end was closed.
        self.is_closed = False
        self._received = bytearray()

    def read(self) -> Iterator[Frame]:
        """Yield the frames that have arrived; raise `StreamError`."""
        received = self._stream.read()
        self.is_closed = received == b""
        self._received += received or b""
        while (end := self._received.find(b"\n", 0, _LONGEST_LINE)) >= 0:
            header = _parse(bytes(self._received[:end]))
            size = header.pop("size")
            if len(self._received) - end - 1 < size:
                return
            content = bytes(self._received[end + 1 : end + 1 + size])
            del self._received[: end + 1 + size]
            yield Frame(header.pop("kind"), header, content)
        if len(self._received) >= _LONGEST_LINE:
            raise StreamError(f"a line does not end: {bytes(self._received[:100])!r}")


def _parse(line: bytes) -> dict[str, Any]:
    try:
        header: dict[str, Any] = json.loads(line)
        validate_shape(header, {"kind!": str, "size!": int}, "")
        validate_shape(header, _SHAPES[header["kind"]], "")
        _check_values(header)
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise StreamError(f"{line[:100]!r} is not a frame: {error}") from error
    if not 0 <= header["size"] <= CHUNK:
        raise StreamError(f"{line[:100]!r} is not a frame: its size is more than {CHUNK}")
    return header


def _check_values(header: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for a value that the operating system does not take."""
    for name in ("path", "target"):
        if b"\0" in os.fsencode(header.get(name, "")):
            raise ValueError(f"{name} has a NUL")
    if abs(header.get("mtime", 0)) >= _LATEST:
        raise ValueError(f"mtime is {header['mtime']}")
