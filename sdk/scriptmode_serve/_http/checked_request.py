"""A request that is checked as soon as its headers have come: waitress has read whole bodies before."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from waitress.parser import HTTPRequestParser, ParsingError
from waitress.utilities import Error

from scriptmode._core.spec.inputs import LEAST_RATE
from scriptmode_serve._http import wsgi
from scriptmode_serve._http.error_answers import render_error
from scriptmode_serve._http.s3_requests import is_for_s3
from scriptmode_serve._http.wsgi import Environ
from scriptmode_serve._operations.aws_json import ApiError

#: A longer body of a refused request, an object's or another, is not awaited: the connection is closed.
_MOST_DISCARDED, _MOST_DISCARDED_ELSE = 256 * 1024 * 1024, 16 * 1024 * 1024
#: Seconds in which the headers of a request must arrive.
_HEADER_SECONDS = 10.0
_NOT_PREFIXED = ("CONTENT_TYPE", "CONTENT_LENGTH")


def later(deadline: float, count: int, now: float) -> float:
    """Return the deadline of a client that sent or took some bytes, each of which gives it more time, up to a limit."""
    return min(deadline + count / LEAST_RATE, now + wsgi.IDLE_SECONDS)


class _RefusedError(Error):  # type: ignore[misc]
    """An answer that waitress sends without the application; it closes the connection after it."""

    def __init__(self, error: ApiError, environ: Environ) -> None:
        super().__init__("")
        self._error = error
        self._environ = environ

    def to_response(self, ident: object = None) -> tuple[str, list[tuple[str, str]], bytes]:  # noqa: ARG002
        content, kind = render_error(self._environ, self._error)
        return f"{self._error.status} Refused", [("Content-Type", kind)], content


@lru_cache(maxsize=1)
def _with_largest_body(adjustments: Any) -> Any:
    """Return the settings of waitress with the limit of bodies that are not objects of S3."""
    changed = copy.copy(adjustments)
    changed.max_request_body_size = wsgi.LARGEST_BODY
    return changed


class CheckedRequest(HTTPRequestParser):  # type: ignore[misc]
    """A request as it arrives; ``check`` gets its headers if it has a body, and raises `ApiError` to refuse it."""

    def __init__(self, check: Callable[[Environ], None], address: str, adjustments: Any) -> None:
        super().__init__(adjustments)
        self._check, self._address = check, address
        #: The task of its answer.
        self.task: Any = None
        self.is_for_s3 = False
        #: When its first byte came, and when the client counts as gone, by the monotonic clock.
        self.began = time.monotonic()
        self.deadline = self.began + _HEADER_SECONDS
        #: Bytes of the body of a refused request that are still to come, and are discarded.
        self._left = 0
        self.adj: Any = adjustments
        self.completed: bool

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the headers; raise waitress's ``ParsingError``."""
        super().parse_header(header_plus)
        if self.chunked and "CONTENT_LENGTH" in self.headers:
            # Two readers may find two ends of it (RFC 9112, 6.3).
            raise ParsingError("Content-Length beside Transfer-Encoding")

    def received(self, data: bytes) -> int:
        """Parse bytes that have come, and return how many belong to this request."""
        had_headers, consumed = self.headers_finished, min(self._left, len(data))
        if self._left:
            # A client that sends its body before it reads would miss the answer.
            self._left -= consumed
            self.completed = not self._left
        else:
            consumed = super().received(data)
        if had_headers:
            self.deadline = later(self.deadline, consumed, time.monotonic())
        elif self.headers_finished and not self.error:
            environ = self._headers()
            self.is_for_s3 = is_for_s3(environ)
            if not self.completed:
                self._check_headers(environ)
        return consumed

    def _check_headers(self, environ: Environ) -> None:
        seconds = wsgi.IDLE_SECONDS
        try:
            self._check(environ)
        except ApiError as error:
            self.error = _RefusedError(error, environ)
            most = _MOST_DISCARDED if self.is_for_s3 else _MOST_DISCARDED_ELSE
            is_read = not self.expect_continue and 0 < self.content_length <= most
            self._left, self.completed = self.content_length if is_read else 0, not is_read
            seconds = _HEADER_SECONDS
        self.deadline = time.monotonic() + seconds
        if not self.is_for_s3:
            # The length of a body in chunks is not known before.
            self.adj = _with_largest_body(self.adj)

    def _headers(self) -> Environ:
        """Return what is known before the body has come, in WSGI's terms."""
        headers = {name if name in _NOT_PREFIXED else f"HTTP_{name}": value for name, value in self.headers.items()}
        return {
            "REQUEST_METHOD": self.command.upper(),
            "PATH_INFO": self.path,
            "REQUEST_URI": self.request_uri,
            "QUERY_STRING": self.query,
            "REMOTE_ADDR": self._address,
            **headers,
        }
