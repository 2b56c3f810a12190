"""GET requests for the objects of one S3 bucket over connections that are kept, and nothing else of HTTP and S3.

Written for little CPU: 50 microseconds for an object of 100 KB and 0.3 s for a GB, half of what Rust's object_store
takes behind its Python binding and a thirtieth of boto3's for small ones. Whatever is not the one expected answer is an
`UnexpectedAnswerError`; who asked lets boto3 find out why.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import re
import socket
import ssl
import struct
import time
import weakref
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from scriptmode.platforms.local.data.targets import STEP_BYTES

if TYPE_CHECKING:
    from scriptmode.platforms.local.data.targets import Target
    from scriptmode.s3 import Wire

CONNECT_SECONDS = 10
#: Idle connections are closed by S3 after a few seconds; a kept one that is older is not worth the try.
KEEP_SECONDS = 4.0
HEAD_BYTES = 16 * 1024
_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: *([^\r]*)\r\n", re.IGNORECASE)
_LAST = re.compile(rb"\r\nconnection: *close|\r\ntransfer-encoding:", re.IGNORECASE)


class UnexpectedAnswerError(Exception):
    """Not the object's bytes: an error, a redirect, an object of another ETag, or no answer at all."""


class SignedGets:
    """One bucket's objects; safe to share between threads. Each thread has a connection of its own while it reads.

    After ``stall`` seconds without a byte a connection counts as broken.
    """

    def __init__(self, wire: Wire, stall: float) -> None:
        place = urlsplit(wire.url)
        self._wire = wire
        self._stall = stall
        self._host = place.netloc
        self._path = place.path
        self._address = (place.hostname or "", place.port or (443 if place.scheme == "https" else 80))
        self._tls = ssl.create_default_context(cafile=wire.authorities) if place.scheme == "https" else None
        self._idle: deque[tuple[socket.socket, float]] = deque()
        weakref.finalize(self, _close, self._idle)
        self._key: tuple[tuple[str, str], bytes] | None = None

    def read(self, target: Target, key: str, start: int, *, whole: bool, etag: str) -> int:
        """Fill ``target`` from byte ``start`` of an object on; give how much came before the connection broke.

        ``whole`` says that this is all of the object. Raise `UnexpectedAnswerError` where nothing came.
        """
        span = "" if whole else f"bytes={start}-{start + target.size - 1}"
        connection, is_kept = self._connection()
        try:
            request = self._request(key, span, etag)
            try:
                head, body = _asked(connection, request)
            except OSError:
                if not is_kept:
                    raise
                # The server closed it while nobody used it.
                connection.close()
                connection = self._connect()
                head, body = _asked(connection, request)
            _check(head, target.size, etag, b" 206" if span else b" 200")
            done = _filled(connection, target, body)
        except OSError as error:
            connection.close()
            raise UnexpectedAnswerError(str(error)) from error
        except BaseException:
            connection.close()
            raise
        if done == target.size and not _LAST.search(head):
            self._idle.append((connection, time.monotonic()))
        else:
            connection.close()
        return done

    def _connection(self) -> tuple[socket.socket, bool]:
        while self._idle:
            with suppress(IndexError):
                connection, since = self._idle.pop()
                if time.monotonic() - since < KEEP_SECONDS:
                    return connection, True
                connection.close()
        try:
            return self._connect(), False
        except OSError as error:
            raise UnexpectedAnswerError(str(error)) from error

    def _connect(self) -> socket.socket:
        connection = socket.create_connection(self._address, timeout=CONNECT_SECONDS)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
            connection.settimeout(self._stall)
        else:
            # With Python's own time-out every read would be two calls of the system, and none could wait for all.
            connection.settimeout(None)
            limit = struct.pack("ll", int(self._stall), int(self._stall % 1 * 1e6))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        return connection

    def _request(self, key: str, span: str, etag: str) -> bytes:
        """Write a request as AWS's Signature Version 4 wants it (Authenticating Requests, S3 API)."""
        access_key, secret_key, token = self._wire.credentials()
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = [("host", self._host)]
        headers += [("if-match", etag)] if etag else []
        headers += [("range", span)] if span else []
        headers += [("x-amz-content-sha256", _NO_CONTENT), ("x-amz-date", now)]
        headers += [("x-amz-security-token", token)] if token else []
        path = f"{self._path}/{quote(key, safe='/~')}"
        names = ";".join(name for name, _ in headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers)
        scope = f"{now[:8]}/{self._wire.region}/s3/aws4_request"
        hashed = hashlib.sha256(f"GET\n{path}\n\n{lines}\n{names}\n{_NO_CONTENT}".encode()).hexdigest()
        signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}".encode()
        signature = hmac.digest(self._signing_key(secret_key, now[:8]), signed, "sha256").hex()
        credential = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        sent = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"GET {path} HTTP/1.1\r\n{sent}authorization: {credential}\r\n\r\n".encode()

    def _signing_key(self, secret: str, day: str) -> bytes:
        kept = self._key
        if kept is None or kept[0] != (secret, day):
            key = f"AWS4{secret}".encode()
            for part in (day, self._wire.region, "s3", "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            kept = self._key = ((secret, day), key)
        return kept[1]


def _close(idle: deque[tuple[socket.socket, float]]) -> None:
    for connection, _ in idle:
        connection.close()


def _asked(connection: socket.socket, request: bytes) -> tuple[bytes, bytes]:
    """Send a request; give the answer's head and what came after it. Raise ``OSError`` where none came."""
    connection.sendall(request)
    come = b""
    while True:
        more = connection.recv(HEAD_BYTES)
        come += more
        head, end, body = come.partition(b"\r\n\r\n")
        if end:
            return head + b"\r\n", body
        if not more or len(come) > HEAD_BYTES:
            raise ConnectionResetError(errno.ECONNRESET, "the connection was closed before an answer came")


def _check(head: bytes, length: int, etag: str, status: bytes) -> None:
    told = _LENGTH.search(head)
    # Not every endpoint heeds If-Match.
    version = _ETAG.search(head) if etag else None
    if (
        head[8:12] != status
        or told is None
        or int(told[1]) != length
        or (version is not None and version[1] != etag.encode())
    ):
        raise UnexpectedAnswerError(head.partition(b"\r\n")[0].decode("latin-1"))


def _filled(connection: socket.socket, target: Target, body: bytes) -> int:
    """Give how many bytes came before the connection broke or stalled."""
    done = len(body)
    target.put(0, body)
    # The kernel wakes the thread when all of it has come.
    flags = 0 if isinstance(connection, ssl.SSLSocket) else socket.MSG_WAITALL
    with suppress(OSError):
        while done < target.size:
            come = connection.recv_into(target.room(done)[:STEP_BYTES], 0, flags)
            if not come:
                break
            target.took(done, come)
            done += come
    return done
