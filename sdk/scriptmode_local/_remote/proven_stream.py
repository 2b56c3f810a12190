"""A stream of bytes in both directions over one TCP connection, whose ends prove that they know the job's secret.

Both ends relay between two descriptors and the socket. Each sends a nonce, then the HMAC-SHA256 of both nonces; nothing
else is sent or accepted before. The end that connects tries again until it is proven. TCP itself outlives a cut of the
network: an end is lost after `LOST_SECONDS` in which the other machine acknowledged nothing, or when the connection is
reset. The end of one direction is the shutdown of that of the connection.
"""

from __future__ import annotations

import hmac
import os
import secrets
import select
import socket
import threading
import time
from contextlib import suppress

#: Seconds in which a first connection has to be proven, and without an acknowledgement after which the other end is
#: lost. The kernel sends again after 51 and after 102 s what a cut of the network lost at its beginning.
_CONNECT_SECONDS, LOST_SECONDS = 90.0, 110.0
#: Seconds between two tries to connect, and for a proof.
_RETRY_SECONDS, _PROOF_SECONDS = 0.2, 10.0
_KEEPALIVE_SECONDS = 5
#: Connections without a proof that are waited for at once: anything may connect.
_MOST_UNPROVEN = 16
#: Bytes of one read.
_READ = 64 << 10
_NONCE_BYTES, _DIGEST_BYTES = 32, 32


class LostError(Exception):
    """Error for another end that is lost, or that does not know the secret."""


class _Unproven:
    """A connection whose other end has not shown yet that it knows the secret."""

    def __init__(self, connection: socket.socket, secret: bytes, *, is_first: bool) -> None:
        self.socket = connection
        self.deadline = time.monotonic() + _PROOF_SECONDS
        self._secret, self._is_first = secret, is_first
        self._nonce, self._received = secrets.token_bytes(_NONCE_BYTES), b""
        connection.setblocking(False)  # noqa: FBT003
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(LOST_SECONDS * 1000))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            connection.setsockopt(socket.IPPROTO_TCP, option, _KEEPALIVE_SECONDS)
        # The buffer of a new connection has room for the nonce and the proof.
        connection.sendall(self._nonce)

    def is_proven(self) -> bool:
        """Read what has arrived; return whether the other end has proven itself, and raise ``OSError`` if it cannot."""
        if time.monotonic() > self.deadline:
            raise TimeoutError(f"no proof in {_PROOF_SECONDS:g} s")
        with suppress(BlockingIOError):
            while left := _NONCE_BYTES + _DIGEST_BYTES - len(self._received):
                # The answer to the nonce is sent between the two.
                more = self.socket.recv(left if len(self._received) >= _NONCE_BYTES else left - _DIGEST_BYTES)
                if not more:
                    raise ConnectionResetError("the connection was closed")
                self._received += more
                if len(self._received) == _NONCE_BYTES:
                    self.socket.sendall(self._proof(is_first=self._is_first))
        if left:
            return False
        if not hmac.compare_digest(self._received[_NONCE_BYTES:], self._proof(is_first=not self._is_first)):
            raise ConnectionAbortedError("the other end does not know the job's secret")
        return True

    def _proof(self, *, is_first: bool) -> bytes:
        theirs = self._received[:_NONCE_BYTES]
        nonces = self._nonce + theirs if self._is_first else theirs + self._nonce
        return hmac.digest(self._secret, (b"first" if is_first else b"second") + nonces, "sha256")


class ProvenStream:
    """One end: what is read from ``source`` arrives at the other one, and what comes from there goes to ``target``.

    Args:
        secret: The job's secret.
        source: Descriptor that is read.
        target: Descriptor that is written.

    """

    def __init__(self, secret: bytes, source: int, target: int) -> None:
        self._secret = secret
        self._source, self._target = source, target

    def listen(self, listener: socket.socket) -> None:
        """Relay as the end that accepts a connection, until both ends have ended; raise `LostError`."""
        listener.setblocking(False)  # noqa: FBT003
        unproven: list[_Unproven] = []
        proven = None
        while proven is None:
            select.select([listener, *(candidate.socket for candidate in unproven)], [], [], 1)
            with suppress(OSError):
                unproven.append(_Unproven(listener.accept()[0], self._secret, is_first=False))
            for oldest in unproven[:-_MOST_UNPROVEN]:
                oldest.socket.close()
            proven = next(filter(_try, unproven), None)
            unproven = [candidate for candidate in unproven if candidate.socket.fileno() >= 0]
        for candidate in unproven:
            if candidate is not proven:
                candidate.socket.close()
        self._relay(proven.socket)

    def connect(self, address: tuple[str, int]) -> None:
        """Relay as the end that connects, until both ends have ended; raise `LostError`."""
        deadline = time.monotonic() + _CONNECT_SECONDS
        while time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(address, _PROOF_SECONDS) as connection:
                candidate = _Unproven(connection, self._secret, is_first=True)
                while not candidate.is_proven():
                    select.select([connection], [], [], _PROOF_SECONDS)
                self._relay(connection)
                return
            time.sleep(_RETRY_SECONDS)
        raise LostError(f"no connection for {_CONNECT_SECONDS:g} s")

    def _relay(self, connection: socket.socket) -> None:
        """Copy both ways to their ends. The sending thread forks nothing, and ends with the connection."""
        connection.setblocking(True)  # noqa: FBT003
        sender = _Sender(connection, self._source)
        try:
            while content := connection.recv(_READ):
                # What nothing reads any more does not keep the other direction from its end.
                with suppress(BrokenPipeError):
                    _write(self._target, content)
            os.close(self._target)
            sender.join()
        except OSError as error:
            raise LostError(str(error)) from error
        finally:
            connection.close()
        if sender.error:
            raise LostError(str(sender.error))


class _Sender(threading.Thread):
    """Sender of what is read from a descriptor, then of the end."""

    def __init__(self, connection: socket.socket, source: int) -> None:
        super().__init__(daemon=True)
        self._connection, self._source = connection, source
        self.error: OSError | None = None
        self.start()

    def run(self) -> None:
        """Send to the end."""
        try:
            while content := os.read(self._source, _READ):
                self._connection.sendall(content)
            self._connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.error = error


def _try(candidate: _Unproven) -> bool:
    """Return whether a connection is proven; close one that cannot be."""
    try:
        return candidate.is_proven()
    except OSError:
        candidate.socket.close()
        return False


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]
