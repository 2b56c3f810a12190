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
import select
import socket
import ssl
import struct
import time
import weakref
from collections import deque
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, urlsplit

from scriptmode.data.targets import STEP_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.aws.s3 import Wire
    from scriptmode.data.targets import Target

    #: The first byte, the last one, and the size of the object that they are of.
    Span = tuple[int, int, int]

CONNECT_SECONDS = 10
#: Idle connections are closed by S3 after a few seconds; a kept one that is older is not worth the try.
KEEP_SECONDS = 4.0
HEAD_BYTES = 16 * 1024
_NO_CONTENT = hashlib.sha256(b"").hexdigest()
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: *([^\r]*)\r\n", re.IGNORECASE)
_RANGE = re.compile(rb"\r\ncontent-range: *bytes (\d+)-(\d+)/(\d+|\*)\r\n", re.IGNORECASE)
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})[ \r]")
#: What tells of the whole object's content: checksums and encryption.
_TOLD = re.compile(rb"\r\n(x-amz-(?:checksum|server-side-encryption)[^:\r]*): *([^\r]*)", re.IGNORECASE)
_LAST = re.compile(rb"\r\nconnection: *close|\r\ntransfer-encoding:", re.IGNORECASE)


class Answer(NamedTuple):
    """How many bytes came, and what the headers tell of the content where the whole object was asked for."""

    done: int
    headers: Mapping[str, str] | None


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

    def read(self, target: Target, key: str, start: int, *, total: int, etag: str) -> Answer:
        """Fill ``target`` from byte ``start`` of an object of ``total`` bytes, until the connection breaks.

        Raise `UnexpectedAnswerError` where nothing came, and for any other range, length or ETag.
        """
        is_whole = start == 0 and target.size == total
        span = None if is_whole else (start, start + target.size - 1, total)
        request = self._request("GET", key, span, etag)
        with self._answered(request) as (connection, head, body):
            _check(head, target.size, etag, span)
            if len(body) > target.size:
                raise UnexpectedAnswerError(f"{len(body)} bytes came, not {target.size}")
            done = _filled(connection, target, body)
            self._keep(connection, head, is_whole=done == target.size)
        return Answer(done, _told(head) if is_whole else None)

    def head(self, key: str, *, total: int, etag: str) -> Mapping[str, str]:
        """Return the headers that tell of an object's content; raise `UnexpectedAnswerError` as `read` does."""
        with self._answered(self._request("HEAD", key, None, etag)) as (connection, head, body):
            _check(head, total, etag, None)
            self._keep(connection, head, is_whole=not body)
        return _told(head)

    @contextmanager
    def _answered(self, request: bytes) -> Iterator[tuple[socket.socket, bytes, bytes]]:
        """Send a request; yield the connection, the answer's head and what came after it."""
        connection, is_kept = self._connection()
        try:
            try:
                head, body = _asked(connection, request)
            except OSError:
                if not is_kept:
                    raise
                # The server closed it while it was idle.
                connection.close()
                connection = self._connect()
                head, body = _asked(connection, request)
            yield connection, head, body
        except OSError as error:
            connection.close()
            raise UnexpectedAnswerError(str(error)) from error
        except BaseException:
            connection.close()
            raise

    def _keep(self, connection: socket.socket, head: bytes, *, is_whole: bool) -> None:
        """Keep a connection for the next request, unless it broke or the server closes it."""
        if is_whole and not _LAST.search(head):
            self._idle.append((connection, time.monotonic()))
        else:
            connection.close()

    def _connection(self) -> tuple[socket.socket, bool]:
        while self._idle:
            with suppress(IndexError):
                connection, since = self._idle.pop()
                # What can be read already is the server's close, or bytes beyond the last answer's length.
                if time.monotonic() - since < KEEP_SECONDS and not _has_input(connection):
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

    def _request(self, method: str, key: str, span: Span | None, etag: str) -> bytes:
        """Render a request as AWS's Signature Version 4 wants it (Authenticating Requests, S3 API)."""
        access_key, secret_key, token = self._wire.credentials()
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        headers = [("host", self._host)]
        headers += [("if-match", etag)] if etag else []
        # Of a range S3 tells no checksum.
        headers += [("range", f"bytes={span[0]}-{span[1]}")] if span else [("x-amz-checksum-mode", "ENABLED")]
        headers += [("x-amz-content-sha256", _NO_CONTENT), ("x-amz-date", now)]
        headers += [("x-amz-security-token", token)] if token else []
        path = f"{self._path}/{quote(key, safe='/~')}"
        names = ";".join(name for name, _ in headers)
        lines = "".join(f"{name}:{value}\n" for name, value in headers)
        scope = f"{now[:8]}/{self._wire.region}/s3/aws4_request"
        hashed = hashlib.sha256(f"{method}\n{path}\n\n{lines}\n{names}\n{_NO_CONTENT}".encode()).hexdigest()
        signed = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashed}".encode()
        signature = hmac.digest(self._signing_key(secret_key, now[:8]), signed, "sha256").hex()
        credential = f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        sent = "".join(f"{name}: {value}\r\n" for name, value in headers)
        return f"{method} {path} HTTP/1.1\r\n{sent}authorization: {credential}\r\n\r\n".encode()

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


def _check(head: bytes, length: int, etag: str, span: Span | None) -> None:
    """Raise `UnexpectedAnswerError` for another status, range, length or ETag than was asked for."""
    status, told = _STATUS.match(head), _LENGTH.search(head)
    # Not every endpoint honours If-Match.
    version = _ETAG.search(head) if etag else None
    if (
        status is None
        or status[1] != (b"206" if span else b"200")
        or told is None
        or int(told[1]) != length
        or (version is not None and version[1] != etag.encode())
        or (span is not None and not _is_range(head, span))
    ):
        raise UnexpectedAnswerError(head.partition(b"\r\n")[0].decode("latin-1"))


def _is_range(head: bytes, span: Span) -> bool:
    """Return whether the answer's Content-Range is the range that was asked for, of an object of the same size."""
    told = _RANGE.search(head)
    return told is not None and (int(told[1]), int(told[2])) == span[:2] and told[3] in (b"*", b"%d" % span[2])


def _told(head: bytes) -> dict[str, str]:
    return {name.decode("latin-1").lower(): value.decode("latin-1").strip() for name, value in _TOLD.findall(head)}


def _has_input(connection: socket.socket) -> bool:
    if isinstance(connection, ssl.SSLSocket) and connection.pending():
        return True
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


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
