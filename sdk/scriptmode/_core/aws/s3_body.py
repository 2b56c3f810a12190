"""Receive a response of S3 by the part, in memory that stays in the processor's caches."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from http import client
from typing import cast

#: Bytes of an object that are passed on at a time.
PART_BYTES = 256 * 1024
#: The most bytes of a response's head, and of what comes with it.
HEAD_BYTES = 16 * 1024
#: Seconds after which those bytes are passed on that have come.
WAITING_SECONDS = 0.2


class Body:
    """The bytes of a response as they come on a connection, which is kept after the last one.

    ``memory`` has the first ``came`` of them. It is used again for those that follow.
    """

    def __init__(
        self, connection: client.HTTPConnection, memory: memoryview, came: int, *, left: int,
        keep: Callable[[client.HTTPConnection], object],
    ) -> None:  # fmt: skip
        #: The number of bytes that were not passed on yet.
        self.left = left
        self._connection, self._socket = connection, connection.sock
        self._memory, self._came = memory, came
        self._keep = keep

    def read(self) -> memoryview:
        """Return the next bytes, valid until the next call; none where the connection broke."""
        came, wanted, self._came = self._came, min(self.left, len(self._memory)), 0
        passed_on = time.monotonic() + WAITING_SECONDS
        try:
            while came < wanted and (not came or time.monotonic() < passed_on):
                if not (count := self._socket.recv_into(self._memory[came:wanted])):
                    break
                came += count
        except OSError:
            self._connection.close()
        self.left -= came
        return self._memory[:came]

    def close(self) -> None:
        """Keep the connection if all bytes came."""
        if self.left:
            self._connection.close()
        else:
            self._keep(self._connection)


def receive_head(connection: socket.socket, memory: memoryview) -> tuple[int, int]:
    """Receive a response's head into ``memory``; return where it ends, and where what came of the content ends.

    Raises ``OSError`` or ``ValueError`` unless it comes within the time limit of one receive.
    """
    content, filled = cast("bytearray", memory.obj), 0
    deadline = time.monotonic() + (connection.gettimeout() or 0.0)
    while (end := content.find(b"\r\n\r\n", 0, filled)) < 0:
        if not (count := connection.recv_into(memory[filled:])):
            raise ConnectionError("the connection was closed, or the response's head is too long")
        filled += count
        if time.monotonic() > deadline:
            raise socket.timeout("the response's head comes too slowly")
    if not content.startswith(b"HTTP/1."):
        raise ValueError("the response is not one of HTTP")
    return end + 4, filled
