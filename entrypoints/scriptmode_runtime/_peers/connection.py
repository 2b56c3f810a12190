"""JSON messages in lines over one non-blocking socket, with callbacks of one selector; signed once both ends agree."""

from __future__ import annotations

import hmac
import json
import os
import selectors
import socket
from collections.abc import Callable

_LONGEST_LINE = 64 * 1024
#: On a network connection that is not authenticated yet.
_LONGEST_UNAUTHENTICATED_LINE = 4 * 1024


class Connection:
    """One end; ``on_message`` gets each message, and None once the connection is lost or a message is not valid."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        endpoint: socket.socket,
        on_message: Callable[[Connection, dict[str, object] | None], None],
        now: float,
    ) -> None:
        self._selector = selector
        self._socket = endpoint
        self._on_message = on_message
        self._incoming = b""
        self._outgoing = b""
        self._signer: _Signer | None = None
        self._verifier: _Signer | None = None
        self._events = selectors.EVENT_READ
        self._longest = _LONGEST_LINE if endpoint.family == socket.AF_UNIX else _LONGEST_UNAUTHENTICATED_LINE
        self.open = True
        #: The other host's name, once it is authenticated.
        self.host = ""
        self.nonce = os.urandom(16).hex()
        self.last_received = now
        endpoint.settimeout(0)
        if endpoint.family != socket.AF_UNIX:
            endpoint.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(endpoint, self._events, self._ready)

    def sign_messages(self, key: bytes, *, leads: bool) -> None:
        """Start to end every message, both ways, with a MAC of its sender, its number and its content."""
        self._longest = _LONGEST_LINE
        self._signer = _Signer(key, b"lead" if leads else b"member")
        self._verifier = _Signer(key, b"member" if leads else b"lead")

    def send(self, **message: object) -> None:
        """Send a message, or queue what cannot be sent now."""
        if self.open:
            line = json.dumps(message).encode()
            self._outgoing += (line + self._signer.sign(line) if self._signer else line) + b"\n"
            self._flush()

    def close(self) -> None:
        """Close the connection without calling ``on_message``."""
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
        lost = not data or len(self._incoming) > self._longest
        for line in lines:
            # In order: the welcome starts the signing of the messages after it.
            message = self._parse(line)
            if message is None:
                lost = True
                break
            if self.open:
                self._on_message(self, message)
        if lost and self.open:
            self.close()
            self._on_message(self, None)

    def _parse(self, line: bytes) -> dict[str, object] | None:
        if len(line) > self._longest:
            return None
        if self._verifier:
            line, given = line[: -_Signer.SIZE], line[-_Signer.SIZE :]
            if not hmac.compare_digest(self._verifier.sign(line), given):
                return None
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        return message if isinstance(message, dict) and isinstance(message.get("type"), str) else None

    def _flush(self) -> None:
        try:
            if self._outgoing:
                self._outgoing = self._outgoing[self._socket.send(self._outgoing) :]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing = b""  # reading reports the loss
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._outgoing else 0)
        if events != self._events:
            self._events = events
            self._selector.modify(self._socket, events, self._ready)


class _Signer:
    """MACs of one direction, each of its sender, its number and its line."""

    SIZE = 64

    def __init__(self, key: bytes, sender: bytes) -> None:
        self._key = key
        self._sender = sender
        self._number = 0

    def sign(self, line: bytes) -> bytes:
        """Return the MAC of the next line."""
        self._number += 1
        return hmac.new(self._key, b"%s %d %s" % (self._sender, self._number, line), "sha256").hexdigest().encode()
