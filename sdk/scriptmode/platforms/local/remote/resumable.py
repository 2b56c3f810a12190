"""A stream of bytes in both directions over TCP, which outlives its connections for `LOST_SECONDS`.

Both ends relay between two descriptors and a socket, keep what the other one has not acknowledged, and send it again
after the next connection. They prove to each other that they know the job's secret (HMAC-SHA256 of two nonces) before
anything else is sent. The end that connects tries again; of two connections the later one is used.

A connection begins with a nonce and the position of each side; afterwards it has records: a letter and four bytes of
length, then the content. ``D`` is data, ``A`` the number of bytes that arrived (8 bytes), ``E`` the end of the data.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import select
import socket
import struct
import time
from contextlib import suppress
from typing import NamedTuple

#: Seconds without a connection after which the other end is lost.
LOST_SECONDS = 90.0
#: Seconds between two tries to connect, and without a record after which a connection is closed.
_RETRY_SECONDS, _DEAD_SECONDS = 0.2, 20.0
#: Seconds between two records of an idle connection, and for the proof at its beginning.
_BEAT_SECONDS, _PROOF_SECONDS = 5.0, 10.0
#: Bytes that are kept at most until they are acknowledged.
_MOST_KEPT = 4 << 20
_READ = 64 << 10
_HEADER, _POSITION = struct.Struct(">cI"), struct.Struct(">Q")
_NONCE_BYTES = 32


class LostError(Exception):
    """Error for another end that is lost, or that does not know the secret."""


class _Connection(NamedTuple):
    socket: socket.socket
    #: The bytes of this end that the other one has.
    acknowledged: int


class ResumableStream:
    """One end: what is read from ``source`` arrives at the other one, and what comes from there goes to ``target``.

    Args:
        secret: The job's secret.
        source: Descriptor that is read.
        target: Descriptor that is written.

    """

    def __init__(self, secret: bytes, source: int, target: int) -> None:
        self._secret = secret
        self._source, self._target = source, target
        self._has_ended = self._other_ended = self._is_end_sent = False
        #: What was read and not acknowledged, and the position of its first byte.
        self._kept, self._kept_from = bytearray(), 0
        self._sent = self._received = self._acknowledged = 0
        self._socket: socket.socket | None = None
        self._incoming, self._outgoing = bytearray(), bytearray()
        self._heard = self._spoken = self._connected = time.monotonic()

    def listen(self, listener: socket.socket) -> None:
        """Relay as the end that accepts connections, until both ends have ended; raise `LostError`."""
        listener.setblocking(False)  # noqa: FBT003
        self._run(listener)

    def connect(self, address: tuple[str, int]) -> None:
        """Relay as the end that connects, until both ends have ended; raise `LostError`."""
        self._run(None, address)

    def _run(self, listener: socket.socket | None, address: tuple[str, int] = ("", 0)) -> None:
        while not (self._is_end_sent and self._other_ended and not self._kept and not self._outgoing):
            if self._socket is None and listener is None:
                self._open(address)
            if self._socket is None and time.monotonic() - self._connected > LOST_SECONDS and self._is_known(listener):
                raise LostError(f"no connection for {LOST_SECONDS:g} s")
            try:
                self._turn(listener)
            except OSError:
                self._drop()
        self._drop()

    def _is_known(self, listener: socket.socket | None) -> bool:
        """Return whether the other end was there before: nothing limits the wait for a host that has not started."""
        return listener is None or bool(self._received)

    def _open(self, address: tuple[str, int]) -> None:
        with suppress(OSError):
            found = socket.create_connection(address, _PROOF_SECONDS)
            try:
                self._use(self._prove(found, is_first=True))
            except OSError:
                found.close()
            return
        time.sleep(_RETRY_SECONDS)

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            found, _ = listener.accept()
            try:
                self._use(self._prove(found, is_first=False))
            except OSError:
                found.close()

    def _prove(self, found: socket.socket, *, is_first: bool) -> _Connection:
        """Exchange proofs and positions; raise ``OSError`` for an end that does not know the secret."""
        found.settimeout(_PROOF_SECONDS)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own = secrets.token_bytes(_NONCE_BYTES)
        found.sendall(own)
        theirs = _receive_exactly(found, _NONCE_BYTES)
        nonces = own + theirs if is_first else theirs + own
        position = _POSITION.pack(self._received)
        found.sendall(self._proof(b"first" if is_first else b"second", nonces, position) + position)
        answer = _receive_exactly(found, hashlib.sha256().digest_size + _POSITION.size)
        digest, their_position = answer[: -_POSITION.size], answer[-_POSITION.size :]
        expected = self._proof(b"second" if is_first else b"first", nonces, their_position)
        if not hmac.compare_digest(digest, expected):
            raise ConnectionAbortedError("the other end does not know the job's secret")
        return _Connection(found, _POSITION.unpack(their_position)[0])

    def _proof(self, side: bytes, nonces: bytes, position: bytes) -> bytes:
        return hmac.new(self._secret, side + nonces + position, hashlib.sha256).digest()

    def _use(self, made: _Connection) -> None:
        self._drop()
        self._socket = made.socket
        self._socket.setblocking(False)  # noqa: FBT003
        self._acknowledge(made.acknowledged)
        self._sent = self._kept_from
        self._is_end_sent = False
        self._heard = self._spoken = time.monotonic()

    def _drop(self) -> None:
        if self._socket:
            self._socket.close()
            self._connected = time.monotonic()
        self._socket = None
        self._incoming.clear()
        self._outgoing.clear()

    def _acknowledge(self, position: int) -> None:
        if not self._kept_from <= position <= self._kept_from + len(self._kept):
            raise ConnectionAbortedError(f"the other end has {position} bytes")
        del self._kept[: position - self._kept_from]
        self._kept_from = position

    def _turn(self, listener: socket.socket | None) -> None:
        """Wait for one of the descriptors, and relay its bytes."""
        poller = select.poll()
        if listener is not None:
            poller.register(listener, select.POLLIN)
        if not self._has_ended and len(self._kept) < _MOST_KEPT:
            poller.register(self._source, select.POLLIN)
        self._fill()
        if self._socket:
            poller.register(self._socket, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        ready = dict(poller.poll(1000))
        if listener is not None and listener.fileno() in ready:
            self._accept(listener)
            return
        if self._source in ready:
            received = os.read(self._source, _READ)
            self._kept += received
            self._has_ended = not received
        if self._socket:
            self._exchange(ready.get(self._socket.fileno(), 0))

    def _fill(self) -> None:
        """Add the next records to the bytes that the socket takes."""
        if self._outgoing or not self._socket:
            return
        now = time.monotonic()
        start = self._sent - self._kept_from
        if content := bytes(self._kept[start : start + _READ]):
            self._outgoing += _HEADER.pack(b"D", len(content)) + content
            self._sent += len(content)
        elif self._has_ended and not self._is_end_sent:
            self._outgoing += _HEADER.pack(b"E", 0)
            self._is_end_sent = True
        is_due = now - self._spoken > _BEAT_SECONDS
        if is_due or self._received - self._acknowledged >= _READ or (self._received != self._acknowledged):
            self._outgoing += _HEADER.pack(b"A", _POSITION.size) + _POSITION.pack(self._received)
            self._acknowledged = self._received
        if self._outgoing:
            self._spoken = now

    def _exchange(self, events: int) -> None:
        assert self._socket is not None  # noqa: S101 - the caller looked
        if events & ~select.POLLOUT:
            received = self._socket.recv(_READ)
            if not received:
                raise ConnectionResetError("the connection was closed")
            self._heard = time.monotonic()
            self._incoming += received
            self._read_records()
        elif time.monotonic() - self._heard > _DEAD_SECONDS:
            raise TimeoutError(f"nothing arrived for {_DEAD_SECONDS:g} s")
        if self._outgoing:
            with suppress(BlockingIOError):
                del self._outgoing[: self._socket.send(self._outgoing)]

    def _write(self, content: bytes) -> None:
        left = memoryview(content)
        try:
            while left:
                left = left[os.write(self._target, left) :]
        except OSError as error:
            raise LostError(f"nothing reads what arrives: {error}") from error

    def _read_records(self) -> None:
        while len(self._incoming) >= _HEADER.size:
            kind, size = _HEADER.unpack_from(self._incoming)
            if size > _READ:
                raise ConnectionAbortedError(f"a record has {size} bytes")
            if len(self._incoming) < _HEADER.size + size:
                return
            content = bytes(self._incoming[_HEADER.size : _HEADER.size + size])
            del self._incoming[: _HEADER.size + size]
            if kind == b"D":
                self._write(content)
                self._received += size
            elif kind == b"A":
                self._acknowledge(_POSITION.unpack(content)[0])
            elif not self._other_ended:
                self._other_ended = True
                os.close(self._target)


def _receive_exactly(found: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = found.recv(size - len(received))
        if not more:
            raise ConnectionResetError("the connection was closed")
        received += more
    return received
