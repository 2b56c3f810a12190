"""A stream of bytes in both directions over TCP, which outlives its connections for `LOST_SECONDS`.

Both ends relay between two descriptors and a socket, keep what the other one has not acknowledged, and send it again
after the next connection. They prove to each other that they know the job's secret (HMAC-SHA256 of two nonces) before
anything else is sent. The end that connects tries again; of two connections the later one is used.

A connection begins with a nonce and the position of each side; afterwards it has records: a letter and four bytes of
length, then the content. ``D`` is data, ``A`` the number of bytes that arrived (8 bytes), ``E`` the end of the data,
which counts as a byte.
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
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Generator

    #: The proof of a connection: it yields how many bytes it needs next, and gets them.
    _Proof = Generator[int, bytes, "_Connection"]

#: Seconds without a connection after which the other end is lost; the same where it had nothing more to say, and while
#: this end's machine goes down.
LOST_SECONDS, _ENDED_SECONDS, _LEAVING_SECONDS = 90.0, 20.0, 2.0
#: Seconds between two tries to connect, and without a record after which a connection is closed.
_RETRY_SECONDS, _DEAD_SECONDS = 0.2, 20.0
#: Seconds between two records of an idle connection, and for the proof at its beginning.
_BEAT_SECONDS, _PROOF_SECONDS = 5.0, 10.0
#: Bytes that are kept at most until they are acknowledged, and that wait for the target at most, about.
_MOST_KEPT = 4 << 20
#: Connections without a proof that are waited for at once: anything may connect.
_MOST_UNPROVEN = 16
_READ = 64 << 10
_HEADER, _POSITION = struct.Struct(">cI"), struct.Struct(">Q")
_NONCE_BYTES = 32
#: What stands for the end among the bytes that are kept.
_END = b"E"


class LostError(Exception):
    """Error for another end that is lost, or that does not know the secret."""


class _Connection(NamedTuple):
    socket: socket.socket
    #: The bytes of this end that the other one has, and those of the other one of which it knows that they arrived.
    acknowledged: int
    received: int


class _Unproven:
    """A connection whose other end has not shown yet that it knows the secret."""

    def __init__(self, found: socket.socket, proof: _Proof) -> None:
        found.setblocking(False)  # noqa: FBT003
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = found
        self.deadline = time.monotonic() + _PROOF_SECONDS
        self._proof = proof
        self._needed, self._received = next(proof), b""

    def read(self) -> _Connection | None:
        """Read what has arrived; return the connection once it is proven, and raise ``OSError`` if it cannot be."""
        if time.monotonic() > self.deadline:
            raise TimeoutError(f"no proof in {_PROOF_SECONDS:g} s")
        with suppress(BlockingIOError):
            while True:
                more = self.socket.recv(self._needed - len(self._received))
                if not more:
                    raise ConnectionResetError("the connection was closed")
                self._received += more
                if len(self._received) == self._needed:
                    content, self._received = self._received, b""
                    try:
                        self._needed = self._proof.send(content)
                    except StopIteration as end:
                        proven: _Connection = end.value
                        return proven
        return None


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
        os.set_blocking(target, False)
        self._has_ended = self._other_ended = False
        #: What was read and not acknowledged, with a last byte for the end, and the position of its first byte.
        self._kept, self._kept_from = bytearray(), 0
        self._sent = self._received = self._acknowledged = 0
        self._socket: socket.socket | None = None
        self._incoming, self._outgoing = bytearray(), bytearray()
        #: What has arrived and was not written to the target.
        self._arrived = bytearray()
        self._unproven: list[_Unproven] = []
        self._heard = self._spoken = self._connected = time.monotonic()
        self._opened = 0.0
        self._leaves_soon = False

    def leave_soon(self) -> None:
        """Wait less for a connection from now on: this end's machine goes down. A signal handler may call it."""
        self._leaves_soon = True

    def listen(self, listener: socket.socket) -> None:
        """Relay as the end that accepts connections, until both ends have ended; raise `LostError`."""
        listener.setblocking(False)  # noqa: FBT003
        self._run(listener)

    def connect(self, address: tuple[str, int]) -> None:
        """Relay as the end that connects, until both ends have ended; raise `LostError`."""
        self._run(None, address)

    def _run(self, listener: socket.socket | None, address: tuple[str, int] = ("", 0)) -> None:
        while not self._is_complete:
            if self._socket is None and listener is None and not self._unproven:
                self._open(address)
            limit = _LEAVING_SECONDS if self._leaves_soon else _ENDED_SECONDS if self._other_ended else LOST_SECONDS
            if self._socket is None and time.monotonic() - self._connected > limit and self._is_known(listener):
                raise LostError(f"no connection for {limit:g} s")
            try:
                self._turn(listener)
            except OSError:
                self._drop()
        self._finish()

    @property
    def _is_complete(self) -> bool:
        """Whether each end has all of the other one, and knows that, or is gone because it did."""
        is_told = self._received == self._acknowledged
        if self._socket is None and time.monotonic() - self._connected > _BEAT_SECONDS:
            is_told = True
        is_all_sent = self._has_ended and not self._kept and not self._outgoing
        return is_all_sent and self._other_ended and is_told and not self._arrived

    def _is_known(self, listener: socket.socket | None) -> bool:
        """Return whether the other end was there before: nothing limits the wait for a host that has not started."""
        return listener is None or bool(self._received)

    def _open(self, address: tuple[str, int]) -> None:
        time.sleep(max(0.0, self._opened + _RETRY_SECONDS - time.monotonic()))
        self._opened = time.monotonic()
        with suppress(OSError):
            self._expect(socket.create_connection(address, _PROOF_SECONDS), is_first=True)

    def _expect(self, found: socket.socket, *, is_first: bool) -> None:
        """Wait for the proof of a connection, of the last `_MOST_UNPROVEN`."""
        try:
            self._unproven.append(_Unproven(found, self._prove(found, is_first=is_first)))
        except OSError:
            found.close()
            raise
        for unproven in self._unproven[:-_MOST_UNPROVEN]:
            unproven.socket.close()
        del self._unproven[:-_MOST_UNPROVEN]

    def _prove(self, found: socket.socket, *, is_first: bool) -> _Proof:
        """Exchange proofs and positions; raise ``OSError`` for an end that does not know the secret."""
        # The buffer of a new connection has room for what is sent here.
        own = secrets.token_bytes(_NONCE_BYTES)
        found.sendall(own)
        theirs = yield _NONCE_BYTES
        nonces = own + theirs if is_first else theirs + own
        received = self._received
        position = _POSITION.pack(received)
        found.sendall(self._proof(b"first" if is_first else b"second", nonces, position) + position)
        answer = yield hashlib.sha256().digest_size + _POSITION.size
        digest, their_position = answer[: -_POSITION.size], answer[-_POSITION.size :]
        expected = self._proof(b"second" if is_first else b"first", nonces, their_position)
        if not hmac.compare_digest(digest, expected):
            raise ConnectionAbortedError("the other end does not know the job's secret")
        return _Connection(found, _POSITION.unpack(their_position)[0], received)

    def _proof(self, side: bytes, nonces: bytes, position: bytes) -> bytes:
        return hmac.new(self._secret, side + nonces + position, hashlib.sha256).digest()

    def _use(self, made: _Connection) -> None:
        self._drop()
        if made.received != self._received:
            # By the connection before, since the proof. The other end tries again.
            raise ConnectionAbortedError("the other end knows an old position")
        self._acknowledge(made.acknowledged)
        self._socket = made.socket
        self._sent = self._kept_from
        self._heard = self._spoken = time.monotonic()

    def _check_unproven(self) -> None:
        for unproven in list(self._unproven):
            made = None
            try:
                made = unproven.read()
                if made:
                    self._use(made)
            except OSError:
                unproven.socket.close()
            if made or unproven.socket.fileno() < 0:
                self._unproven.remove(unproven)

    def _drop(self) -> None:
        if self._socket:
            self._socket.close()
            self._connected = time.monotonic()
        self._socket = None
        # What was acknowledged in what is dropped here, the other end may not know.
        self._acknowledged = -1
        self._incoming.clear()
        self._outgoing.clear()

    def _finish(self) -> None:
        """Close the connection once the other end has read the last acknowledgement, which a reset would discard."""
        if self._socket:
            with suppress(OSError):
                self._socket.settimeout(_RETRY_SECONDS)
                self._socket.shutdown(socket.SHUT_WR)
                while self._socket.recv(_READ):
                    pass
        for unproven in self._unproven:
            unproven.socket.close()
        self._drop()

    def _acknowledge(self, position: int) -> None:
        if not self._kept_from <= position <= self._kept_from + len(self._kept):
            raise ConnectionAbortedError(f"the other end has {position} bytes")
        del self._kept[: position - self._kept_from]
        self._kept_from = position

    def _turn(self, listener: socket.socket | None) -> None:
        """Wait for one of the descriptors, and relay what has arrived."""
        self._fill()
        polled = self._socket
        ready = dict(self._poller(listener).poll(1000))
        if listener is not None and listener.fileno() in ready:
            with suppress(OSError):
                self._expect(listener.accept()[0], is_first=False)
        self._check_unproven()
        if self._source in ready:
            received = os.read(self._source, _READ)
            self._kept += received or _END
            self._has_ended = not received
        if self._arrived:
            self._write()
        if polled and polled is self._socket:
            self._exchange(ready.get(polled.fileno(), 0))

    def _poller(self, listener: socket.socket | None) -> select.poll:
        poller = select.poll()
        for readable in (*([listener] if listener else []), *(unproven.socket for unproven in self._unproven)):
            poller.register(readable, select.POLLIN)
        if not self._has_ended and len(self._kept) < _MOST_KEPT:
            poller.register(self._source, select.POLLIN)
        if self._arrived:
            poller.register(self._target, select.POLLOUT)
        if self._socket:
            wanted = (select.POLLIN if len(self._arrived) < _MOST_KEPT else 0) | (
                select.POLLOUT if self._outgoing else 0
            )
            poller.register(self._socket, wanted)
        return poller

    def _fill(self) -> None:
        """Add the next records to the bytes that the socket takes."""
        if self._outgoing or not self._socket:
            return
        now = time.monotonic()
        start = self._sent - self._kept_from
        content = bytes(self._kept[start : start + _READ])
        self._sent += len(content)
        is_end = bool(content) and self._has_ended and start + len(content) == len(self._kept)
        if is_end:
            content = content[: -len(_END)]
        if content:
            self._outgoing += _HEADER.pack(b"D", len(content)) + content
        if is_end:
            self._outgoing += _HEADER.pack(b"E", 0)
        if now - self._spoken > _BEAT_SECONDS or self._received != self._acknowledged:
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
        elif len(self._arrived) >= _MOST_KEPT:
            # Nothing is read before the target takes it.
            self._heard = time.monotonic()
        elif time.monotonic() - self._heard > _DEAD_SECONDS:
            raise TimeoutError(f"nothing arrived for {_DEAD_SECONDS:g} s")
        if self._outgoing:
            with suppress(BlockingIOError):
                del self._outgoing[: self._socket.send(self._outgoing)]

    def _write(self) -> None:
        try:
            with suppress(BlockingIOError):
                del self._arrived[: os.write(self._target, self._arrived[:_READ])]
        except OSError as error:
            raise LostError(f"nothing reads what arrives: {error}") from error
        self._close_target()

    def _close_target(self) -> None:
        if self._other_ended and not self._arrived:
            os.close(self._target)

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
                self._arrived += content
                self._received += size
            elif kind == b"A":
                self._acknowledge(_POSITION.unpack(content)[0])
            elif not self._other_ended:
                self._other_ended = True
                self._received += len(_END)
                self._close_target()
