"""The stream between a relay and its host: one TLS connection, both of whose ends are authenticated.

The job's agent makes a certificate and a secret for each job. The end that connects has both, and not the private key.
It accepts that certificate alone and then sends the secret, which the end that listens answers by one byte. Nothing
else is sent or accepted before, and nothing outside of TLS. The end that connects tries again until it is proven, and
sends the first frame.

TCP itself outlives a cut of the network: an end is lost after `LOST_SECONDS` in which the other machine acknowledged
nothing, or when the connection is reset. Bytes that were changed on their way are an ``ssl.SSLError``.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import ssl
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from typing import NamedTuple

from scriptmode_local._remote.frames import wait_for
from scriptmode_local._system.certificates import create_certificate

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
_ACCEPTED = b"\n"
#: The socket has nothing to read, or no room.
_NOT_NOW = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError)
#: Seconds for what the two ends say last to each other.
_LAST_SECONDS = 5.0


class StreamKeys(NamedTuple):
    """What the two ends know, each as one text: the secret in its first line, then certificates and keys as PEM."""

    #: Of the relays: the secret, the certificate and its private key.
    relay: str
    #: Of the hosts: the secret and the certificate.
    host: str

    @classmethod
    def create(cls) -> StreamKeys:
        """Return new keys for one job; raise `MissingPackageError` where cryptography is not installed."""
        certificate, private_key = create_certificate("a connection to hosts on other machines", "kubernetes")
        host = f"{secrets.token_hex(32)}\n{certificate.decode()}"
        return cls(host + private_key.decode(), host)


class TlsStream:
    """One end, which is proven once ``expected`` has come. It reads and writes as a `Stream` of frames does."""

    def __init__(self, connection: socket.socket, context: ssl.SSLContext, expected: bytes) -> None:
        self._deadline = time.monotonic() + _PROOF_SECONDS
        self._expected, self._proof = expected, b""
        #: Whether the other end may send more.
        self._is_open = True
        connection.setblocking(False)  # noqa: FBT003
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(LOST_SECONDS * 1000))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL):
            connection.setsockopt(socket.IPPROTO_TCP, option, _KEEPALIVE_SECONDS)
        is_server = context.protocol is ssl.PROTOCOL_TLS_SERVER
        # The first read begins the handshake.
        self.socket = context.wrap_socket(connection, is_server, do_handshake_on_connect=False)

    def is_proven(self) -> bool:
        """Read what has arrived; return whether the other end has proven itself, and raise ``OSError`` if it cannot."""
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"no proof in {_PROOF_SECONDS:g} s")
        received = self.read()
        if received == b"":
            raise ConnectionResetError("the connection was closed")
        self._proof += received or b""
        if len(self._proof) < len(self._expected):
            return False
        if not hmac.compare_digest(self._proof, self._expected):
            raise ConnectionAbortedError("the other end does not know the job's secret")
        return True

    def read(self) -> bytes | None:
        """Return all that has arrived, None for nothing, b"" at the end or when the connection is lost."""
        content = bytearray()
        try:
            while self._is_open and len(content) < _READ:
                more = self.socket.recv(_READ)
                content += more
                self._is_open = bool(more)
        except _NOT_NOW:
            pass
        except ssl.SSLError:
            raise
        except OSError:
            self._is_open = False
        return bytes(content) if content or not self._is_open else None

    def write(self, content: bytes | memoryview) -> int | None:
        """Return how many bytes are on their way, None where none can be; raise ``BrokenPipeError`` if it is lost."""
        try:
            return self.socket.send(content[:_READ])
        except _NOT_NOW:
            return None
        except OSError as error:
            raise BrokenPipeError(str(error)) from error

    def fileno(self) -> int:
        """Return the descriptor of the socket."""
        return self.socket.fileno()

    def close(self) -> None:
        """Send the end, and wait some seconds for that of the other end: what was sent has arrived then."""
        deadline = time.monotonic() + _LAST_SECONDS
        with self.socket, suppress(OSError):
            # It raises for something unread. To close with that would reset the connection, and lose what was sent.
            with suppress(ssl.SSLError):
                self.socket.unwrap()
            # What follows is read without TLS.
            self.socket.shutdown(socket.SHUT_WR)
            while self.read() != b"" and time.monotonic() < deadline:
                wait_for([self.fileno()], seconds=1)


class ListeningStream:
    """The end that accepts a connection: nothing arrives before one of them is proven."""

    def __init__(self, keys: StreamKeys, listener: socket.socket) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_2
        with tempfile.NamedTemporaryFile() as file:
            file.write(keys.relay.encode())
            file.flush()
            self._context.load_cert_chain(file.name)
        self._secret = keys.host.partition("\n")[0].encode()
        self._listener = listener
        self._listener.setblocking(False)  # noqa: FBT003
        self._unproven: list[TlsStream] = []
        self._refused: set[str] = set()
        self._proven: TlsStream | None = None

    @property
    def descriptors(self) -> list[int]:
        """Those that can be read when something has arrived."""
        if self._proven:
            return [self._proven.fileno()]
        return [self._listener.fileno(), *(stream.fileno() for stream in self._unproven)]

    def read(self) -> bytes | None:
        """Return what has arrived by the proven connection, None before there is one."""
        if self._proven:
            return self._proven.read()
        with suppress(OSError):
            self._unproven.append(TlsStream(self._listener.accept()[0], self._context, self._secret))
        if len(self._unproven) > _MOST_UNPROVEN:
            self._unproven.pop(0).socket.close()
        self._proven = next(filter(self._accept, self._unproven), None)
        self._unproven = [stream for stream in self._unproven if stream.fileno() >= 0]
        for stream in self._unproven if self._proven else ():
            if stream is not self._proven:
                stream.socket.close()
        return None

    def _accept(self, stream: TlsStream) -> bool:
        """Return whether a connection is proven; close one that cannot be, and tell each reason once."""
        try:
            return stream.is_proven() and bool(stream.write(_ACCEPTED))
        except OSError as error:
            stream.socket.close()
            if str(error) not in self._refused:
                self._refused.add(str(error))
                sys.stderr.write(f"scriptmode: a connection was refused: {error}\n")
            return False

    def write(self, content: bytes | memoryview) -> int | None:
        """Write to the proven connection, before which nothing is to be written."""
        return self._proven.write(content) if self._proven else None

    def accept_another(self) -> None:
        """Close the proven connection, and accept another one in its place."""
        self.close()
        self._unproven, self._proven = [], None

    def fileno(self) -> int:
        """Return the descriptor of the proven connection."""
        return self.descriptors[0]

    def close(self) -> None:
        """Close the proven connection, if there is one."""
        if self._proven:
            self._proven.close()


def connect(keys: str, address: tuple[str, int]) -> TlsStream:
    """Return a proven connection of the end that has `StreamKeys.host`; raise ``TimeoutError``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # The job's certificate is the only one that is accepted, at whatever address.
    context.check_hostname = False
    context.load_verify_locations(cadata=keys)
    deadline = time.monotonic() + _CONNECT_SECONDS
    while True:
        try:
            with ExitStack() as failed:
                connection = failed.enter_context(socket.create_connection(address, _PROOF_SECONDS))
                stream, secret = TlsStream(connection, context, _ACCEPTED), keys.partition("\n")[0].encode()
                failed.enter_context(stream.socket)
                while not stream.is_proven():
                    if secret and stream.write(secret):
                        secret = b""
                    wait_for([stream.fileno()], seconds=1)
                failed.pop_all()
                return stream
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no connection for {_CONNECT_SECONDS:g} s: {error}") from error
        time.sleep(_RETRY_SECONDS)
