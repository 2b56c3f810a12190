"""What a request must meet before it is answered: the name of the server, a rate, and a signature."""

from __future__ import annotations

import ipaddress
import threading
import time
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scriptmode.serve.aws_json import ApiError
from scriptmode.serve.s3_requests import is_for_s3
from scriptmode.serve.signatures import check_signature, find_signature
from scriptmode.serve.wsgi import LARGEST_BODY, too_large_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from scriptmode.serve.wsgi import Environ

#: Seconds of calls that a client may make at once after it made none.
_BURST_SECONDS = 5.0
#: Clients whose rate is remembered.
_MOST_CLIENTS = 10_000


class Guard:
    """The checks of one server.

    A page of another site cannot use the server through a user's browser: its requests have that site's ``Origin``, or,
    if the site's name was changed to this machine's address, that name as their ``Host``.

    Args:
        host: The name or address at which the server listens.
        rate: The most requests of one client in a second; 0 is unlimited.
        keys: Returns the secrets of the access keys by their identifiers. Without any, requests of this machine need no
            signature, and those of a server that other machines reach are refused.
        is_s3_checked: Whether another server checks the signatures of requests for S3.
        clock: The monotonic clock.
    """

    def __init__(
        self,
        host: str,
        *,
        rate: float = 0.0,
        keys: Callable[[], Mapping[str, str]] = dict,
        is_s3_checked: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._host = host
        self._is_loopback = is_loopback(host)
        self._rate = rate
        self._keys = keys
        self._is_s3_checked = is_s3_checked
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[str, tuple[float, float]] = {}

    def check(self, environ: Environ) -> None:
        """Raise `ApiError` for a request that is not answered."""
        self.check_sender(environ)
        keys = self._keys()
        if self._needs_signature(environ, keys):
            check_signature(environ, keys, time.time())

    def check_headers(self, environ: Environ) -> None:
        """Raise `ApiError` for a request that can be refused before its body is read."""
        self._check_site(environ)
        keys = self._keys()
        is_s3 = is_for_s3(environ)
        if not is_s3 and int(environ.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise too_large_error(environ)
        if self._needs_signature(environ, keys):
            # Only the signature of a request for S3 has nothing of the body.
            (check_signature(environ, keys, time.time()) if is_s3 else find_signature(environ, keys))

    def _needs_signature(self, environ: Environ, keys: Mapping[str, str]) -> bool:
        # The last key may be deleted while the server runs.
        return bool(keys or not self._is_loopback) and not (self._is_s3_checked and is_for_s3(environ))

    def check_sender(self, environ: Environ) -> None:
        """Raise `ApiError` for a request of another site's page, or one too many; needs no signature."""
        self._check_site(environ)
        if self._rate and not self._is_allowed(str(environ.get("REMOTE_ADDR", ""))):
            raise ApiError("ThrottlingException", f"Rate exceeded: {self._rate:g} requests in a second.")

    def _check_site(self, environ: Environ) -> None:
        host = environ.get("HTTP_HOST", "")
        # A reverse proxy keeps its own name; a page that has this address by another name cannot sign.
        if self._is_loopback and not self._keys() and not is_loopback(_name(host)):
            raise ApiError("AccessDeniedException", f"The server is not {host!r}: it listens at {self._host}.", 403)
        origin = environ.get("HTTP_ORIGIN")
        if origin and urlsplit(origin).netloc != host:
            raise ApiError("AccessDeniedException", f"Pages of {origin!r} cannot use the server.", 403)

    def _is_allowed(self, client: str) -> bool:
        most, now = self._rate * _BURST_SECONDS, self._clock()
        with self._lock:
            left, then = self._left.pop(client, (most, now))
            left = min(most, left + (now - then) * self._rate)
            # A refused request takes nothing: a client that asks a little too often gets the rate.
            self._left[client] = (left - 1 if left >= 1 else left, now)
            while len(self._left) > _MOST_CLIENTS:
                self._left.pop(next(iter(self._left)))
        return left >= 1


@lru_cache(maxsize=64)
def is_loopback(host: str) -> bool:
    """Return whether a host name or address is that of this machine alone."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        # Anybody can own a name such as 127.0.0.1.example.com.
        return False


def _name(host: str) -> str:
    """Return a Host header without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
