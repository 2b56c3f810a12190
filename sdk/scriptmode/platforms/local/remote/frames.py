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
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from scriptmode.platforms.local.store.shapes import validate_shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Bytes of a file in one frame: other frames do not wait for a large file.
CHUNK = 256 << 10
_LONGEST_LINE = 64 << 10
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


def send_frame(descriptor: int, kind: str, content: bytes = b"", **fields: object) -> None:
    """Write a frame; block until all is written. Raises ``OSError``, ``BrokenPipeError`` where nothing reads it."""
    line = json.dumps({"kind": kind, "size": len(content), **fields}).encode() + b"\n"
    left = memoryview(line + content)
    while left:
        left = left[os.write(descriptor, left) :]


class FrameReader:
    """Reader of the frames of a descriptor, which it makes non-blocking."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        #: Whether the other end was closed.
        self.is_closed = False
        self._received = bytearray()
        os.set_blocking(descriptor, False)

    def read(self) -> Iterator[Frame]:
        """Yield the frames that have arrived, of at most `CHUNK` bytes received at once; raise `StreamError`."""
        with suppress(BlockingIOError):
            received = os.read(self.descriptor, CHUNK)
            self.is_closed = not received
            self._received += received
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
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise StreamError(f"{line[:100]!r} is not a frame: {error}") from error
    if not 0 <= header["size"] <= CHUNK:
        raise StreamError(f"{line[:100]!r} is not a frame: its size is more than {CHUNK}")
    return header
