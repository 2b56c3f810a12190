"""What a request must meet before it is answered: the name of the server, and a signature."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from functools import lru_cache

from scriptmode_serve._http.s3_forms import check_form_size, is_form
from scriptmode_serve._http.s3_requests import is_for_s3
from scriptmode_serve._http.signatures import check_signature, find_signature
from scriptmode_serve._http.wsgi import LARGEST_BODY, Environ, too_large_error
from scriptmode_serve._operations.aws_json import ApiError


class Guard:
    """The checks of one server.

    A page of another site cannot use the server through a user's browser: its requests have that site's ``Origin``, or,
    if the site's name was changed to this machine's address, that name as their ``Host``.

    Args:
        host: The name or address at which the server listens.
        keys: Returns the secrets of the access keys by their identifiers. Without any, requests of this machine need no
            signature, and those of a server that other machines reach are refused.
        s3: The setting ``--s3``: another server checks the signatures of requests for S3.
    """

    def __init__(self, host: str, *, keys: Callable[[], Mapping[str, str]] = dict, s3: str = "disk") -> None:
        self._host = host
        self._is_loopback = is_loopback(host)
        self._keys = keys
        self._is_s3_checked, self._checks_policies = s3 not in ("disk", "memory"), s3 != "memory"

    def check(self, environ: Environ) -> None:
        """Raise `ApiError` for a request that is not answered."""
        self.check_site(environ)
        keys = self._keys()
        if self._needs_signature(environ, keys):
            if is_form(environ) and not self._checks_policies:
                raise ApiError("NotImplemented", "A form stores no object in memory: leave out --s3 memory.", 501)
            check_signature(environ, keys, time.time())

    def check_headers(self, environ: Environ) -> None:
        """Raise `ApiError` for a request that can be refused before its body is read."""
        self.check_site(environ)
        keys = self._keys()
        is_s3 = is_for_s3(environ)
        if not is_s3 and int(environ.get("CONTENT_LENGTH") or 0) > LARGEST_BODY:
            raise too_large_error(environ)
        if self._needs_signature(environ, keys):
            # Only the signature of a request for S3 has nothing of the body, unless it is a form.
            if is_form(environ):
                check_form_size(environ)
            else:
                (check_signature(environ, keys, time.time()) if is_s3 else find_signature(environ, keys))

    def _needs_signature(self, environ: Environ, keys: Mapping[str, str]) -> bool:
        # The last key may be deleted while the server runs.
        return bool(keys or not self._is_loopback) and not (self._is_s3_checked and is_for_s3(environ))

    def check_site(self, environ: Environ) -> None:
        """Raise `ApiError` for a request of another site's page; needs no signature."""
        host = environ.get("HTTP_HOST", "")
        # A reverse proxy keeps its own name; a page that has this address by another name cannot sign.
        if self._is_loopback and not self._keys() and not is_loopback(_name(host)):
            raise ApiError("AccessDeniedException", f"The server is not {host!r}: it listens at {self._host}.", 403)
        if (origin := environ.get("HTTP_ORIGIN", "")) not in ("", f"http://{host}", f"https://{host}"):
            raise ApiError("AccessDeniedException", f"Pages of {origin!r} cannot use the server.", 403)


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
