"""JSON objects in lines over one socket, without blocking; callbacks of one selector."""

from __future__ import annotations

import json
import os
import selectors
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_LINE = 64 * 1024


class Connection:
    """One end. ``on_message`` gets each message, and None once the other end is lost or speaks no JSON."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        endpoint: socket.socket,
        on_message: Callable[[Connection, dict[str, Any] | None], None],
        now: float,
    ) -> None:
        self._selector = selector
        self._socket = endpoint
        self._on_message = on_message
        self._incoming = b""
        self._outgoing = b""
        self.open = True
        #: The other host's name, once it is proven.
        self.host = ""
        self.nonce = os.urandom(16).hex()
        self.heard = now
        self.spoke = now
        endpoint.settimeout(0)
        endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(endpoint, selectors.EVENT_READ, self._ready)

    def send(self, **message: object) -> None:
        """Send a message, or as much of it as goes now."""
        if self.open:
            self._outgoing += json.dumps(message).encode() + b"\n"
            self._flush()

    def close(self) -> None:
        """Close; ``on_message`` hears nothing of it."""
        if self.open:
            self.open = False
            self._selector.unregister(self._socket)
            self._socket.close()

    def _ready(self) -> None:
        self._flush()
        try:
            data = self._socket.recv(_LONGEST_LINE)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        *lines, self._incoming = (self._incoming + data).split(b"\n")
        messages = [_parse(line) for line in lines]
        lost = not data or None in messages or len(self._incoming) > _LONGEST_LINE
        for message in messages:
            if message is not None and self.open:
                self._on_message(self, message)
        if lost and self.open:
            self.close()
            self._on_message(self, None)

    def _flush(self) -> None:
        try:
            if self._outgoing:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing = b""  # that it is lost shows when reading
        write = selectors.EVENT_WRITE if self._outgoing else 0
        self._selector.modify(self._socket, selectors.EVENT_READ | write, self._ready)


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None
