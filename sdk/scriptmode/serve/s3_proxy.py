"""Forwards S3 requests to another server as they are: their signatures are valid there if the client's keys are."""

from __future__ import annotations

import http.client
import shutil
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scriptmode.errors import invalid
from scriptmode.serve.wsgi import respond

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from scriptmode.serve.wsgi import Environ, StartResponse

_SECONDS = 60.0
_CHUNK = 1024 * 1024
#: Headers of one connection, not of the request. (RFC 9110, 7.6.1)
_OF_CONNECTION = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"})


class S3Proxy:
    """A WSGI application that passes each request to one S3 server.

    Args:
        url: The URL of the server.
        wait_until_ready: Called before the first request; raises an error of scriptmode.
        without: Headers that the server is not sent.
    """

    def __init__(
        self, url: str, wait_until_ready: Callable[[], None] = lambda: None, *, without: frozenset[str] = frozenset()
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise invalid(
                "s3", f"is {url!r}", "give the URL of an S3 server, such as http://127.0.0.1:9000, or 'memory'"
            )
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._wait_until_ready = wait_until_ready
        self._without = _OF_CONNECTION | without
        self._is_ready = False

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Pass one request on, and return the body of its answer."""
        if not self._is_ready:
            self._wait_until_ready()
            self._is_ready = True
        kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=_SECONDS)
        try:
            self._send(connection, environ)
            answer = connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            text = f"<Error><Code>ServiceUnavailable</Code><Message>{type(error).__name__}</Message></Error>".encode()
            return respond(start_response, text, status=503, content_type="application/xml")
        headers = [(name, value) for name, value in answer.getheaders() if name.lower() not in _OF_CONNECTION]
        start_response(f"{answer.status} {answer.reason or 'OK'}", headers)
        return _body(connection, answer)

    def _send(self, connection: http.client.HTTPConnection, environ: Environ) -> None:
        # The target as it was sent: a signature is of that spelling.
        connection.putrequest(
            environ["REQUEST_METHOD"], environ["REQUEST_URI"], skip_host=True, skip_accept_encoding=True
        )
        for name, value in environ.items():
            header = name[len("HTTP_") :].replace("_", "-").lower()
            if name.startswith("HTTP_") and header not in self._without:
                connection.putheader(header, value)
        if environ.get("CONTENT_TYPE"):
            connection.putheader("content-type", environ["CONTENT_TYPE"])
        size = environ.get("CONTENT_LENGTH")
        if size:
            connection.putheader("content-length", size)
        connection.endheaders()
        if size and int(size):
            with connection.sock.makefile("wb") as target:
                shutil.copyfileobj(environ["wsgi.input"], target, _CHUNK)


def _body(connection: http.client.HTTPConnection, answer: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := answer.read(_CHUNK):
            yield chunk
    finally:
        answer.close()
        connection.close()
