"""The HTTP server, waitress: it reads a request whole before a thread has it, so that slow clients hold no thread.

What the headers alone show is refused before the body is read. Connections of clients that have shown nothing yet are
bounded in seconds and, where the server has too many, in number.
"""

from __future__ import annotations

import copy
import logging
import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from scriptmode.errors import PlatformError
from scriptmode.serve import aws_json
from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.s3_requests import is_for_s3
from scriptmode.serve.wsgi import LARGEST_BODY

if TYPE_CHECKING:
    from collections.abc import Callable

    from scriptmode.serve.wsgi import Environ, Service

_THREADS = 16
_MOST_CONNECTIONS = 1000
#: Seconds after which a connection without a byte is closed, and in which the headers of a request must arrive.
_IDLE_SECONDS, _HEADER_SECONDS = 60, 10.0
#: Seconds after which a connection without a request in work may be closed where the server has too many.
_SPARE_SECONDS = 1.0
#: Bytes of one object that is written in one request (PutObject, Amazon S3 API reference).
_LARGEST_OBJECT = 5 * 1024**3
#: The keys of an object's metadata are in lower case; waitress capitalizes the names of headers.
_METADATA = re.compile(rb"(?m)^X-Amz-Meta-[^:\r\n]*")


def create_http_server(application: Service, host: str, port: int, check: Callable[[Environ], None]) -> Any:
    """Return a server of waitress that listens; raise `PlatformError` where it cannot.

    ``check`` gets the headers of each request whose body has not been read, and raises `ApiError` to refuse it.
    """
    from waitress.channel import HTTPChannel
    from waitress.server import create_server
    from waitress.task import WSGITask

    class Task(WSGITask):  # type: ignore[misc]
        def build_response_header(self) -> bytes:
            return _METADATA.sub(lambda found: found[0].lower(), super().build_response_header())

    class Channel(HTTPChannel):  # type: ignore[misc]
        task_class = Task
        parser_class = _parser_class(check)

        def send_continue(self) -> None:
            # waitress would wait for the body of a request that has none.
            if not self.request.completed:
                super().send_continue()

    # A full queue of requests is not worth a warning.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)
    try:
        server = create_server(
            application,
            map={},
            host=host,
            port=port,
            threads=_THREADS,
            connection_limit=_MOST_CONNECTIONS,
            channel_timeout=_IDLE_SECONDS,
            cleanup_interval=1,
            max_request_body_size=_LARGEST_OBJECT,
            ident=None,
        )
    except (OSError, ValueError) as error:
        raise PlatformError(
            f"the server cannot listen at {host}:{port}: {error}",
            advice="end the other server, or give another --listen ADDRESS:PORT",
        ) from error
    # A name with several addresses has a listener for each.
    for each in (server, *getattr(server, "map", {}).values()):
        if hasattr(each, "channel_class"):
            each.channel_class = Channel
            each.maintenance = partial(_close_connections, each)
    return server


def _parser_class(check: Callable[[Environ], None]) -> Any:
    from waitress.parser import HTTPRequestParser, ParsingError
    from waitress.utilities import Error

    class RefusedError(Error):  # type: ignore[misc]
        def __init__(self, error: ApiError) -> None:
            super().__init__("")
            self._error = error

        def to_response(self, ident: object = None) -> tuple[str, list[tuple[str, str]], bytes]:  # noqa: ARG002
            content = aws_json.render_error(self._error)
            return f"{self._error.status} Refused", [("Content-Type", aws_json.CONTENT_TYPE)], content

    class Parser(HTTPRequestParser):  # type: ignore[misc]
        def __init__(self, adjustments: Any) -> None:
            super().__init__(adjustments)
            #: When its first byte came.
            self.began = time.time()
            self.adj: Any = adjustments
            self.completed: bool

        def parse_header(self, header_plus: bytes) -> None:
            super().parse_header(header_plus)
            if self.chunked and "CONTENT_LENGTH" in self.headers:
                # Two readers would find two ends of it (RFC 9112, 6.3).
                raise ParsingError("Content-Length beside Transfer-Encoding")

        def received(self, data: bytes) -> int:
            is_first = not self.headers_finished
            consumed: int = super().received(data)
            if is_first and self.headers_finished and not self.completed:
                environ = _headers(self)
                try:
                    check(environ)
                except ApiError as error:
                    self.error, self.completed = RefusedError(error), True
                if not is_for_s3(environ):
                    # Of a body in chunks the length is not known before.
                    self.adj = copy.copy(self.adj)
                    self.adj.max_request_body_size = LARGEST_BODY
            return consumed

    return Parser


def _headers(request: Any) -> Environ:
    """Return what is known of a request whose body has not been read."""
    named = ("CONTENT_TYPE", "CONTENT_LENGTH")
    return {
        "REQUEST_METHOD": request.command.upper(),
        "PATH_INFO": request.path,
        "REQUEST_URI": request.request_uri,
        "QUERY_STRING": request.query,
        **{name if name in named else f"HTTP_{name}": value for name, value in request.headers.items()},
    }


def _close_connections(server: Any, now: float) -> None:
    """Close connections that are idle, and those whose headers do not arrive; more of both where there are too many."""
    spare = []
    for channel in server.active_channels.values():
        request = channel.request
        if channel.requests:
            continue
        is_half_sent = request is not None and not request.headers_finished
        if channel.last_activity < now - _IDLE_SECONDS or (is_half_sent and request.began < now - _HEADER_SECONDS):
            channel.will_close = True
        elif request is None or is_half_sent:
            spare.append((request.began if request else channel.last_activity, channel))
    if server.in_connection_overflow:
        spare.sort(key=lambda each: each[0])
        for since, channel in spare[: _MOST_CONNECTIONS // 2]:
            channel.will_close = channel.will_close or since < now - _SPARE_SECONDS
