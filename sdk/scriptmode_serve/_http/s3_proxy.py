"""Forwards S3 requests to another server: as they are, so that it checks their signatures, or signed with its key."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.etree import ElementTree as ET

from scriptmode.errors import invalid
from scriptmode_serve._http.access_keys import AccessKey
from scriptmode_serve._http.s3_forms import is_form, signed_form
from scriptmode_serve._http.s3_listing import ordered, parse_listing
from scriptmode_serve._http.s3_requests import SIGNED_URL
from scriptmode_serve._http.signatures import BODY_HASH, client_region, sign_for_s3
from scriptmode_serve._http.wsgi import Environ, StartResponse, read_body, request_headers
from scriptmode_serve._operations.allowed_paths import is_kept
from scriptmode_serve._operations.aws_json import ApiError

_SECONDS = 60.0
_CHUNK = 1024 * 1024
#: Headers of one connection, not of the request. (RFC 9110, 7.6.1)
_OF_CONNECTION = frozenset({"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade", "expect"})
#: Headers of a signature, and of a page in a browser.
_SIGNATURE = frozenset({"authorization", "date", "x-amz-date", "x-amz-security-token", "origin", "referer"})
#: Headers that ask for encryption by keys of AWS KMS, which SeaweedFS does not have: with them it stores nothing.
_ENCRYPTION = frozenset(
    f"x-amz-server-side-encryption{part}" for part in ("", "-aws-kms-key-id", "-context", "-bucket-key-enabled")
)
_LONGEST_LINE, _SHOWN_BYTES = 1024, 40
_BARE_ETAG = re.compile(rb"<ETag>([^<&\"]+)</ETag>")
_HEXADECIMAL = re.compile(rb"[0-9a-fA-F]{1,16}")


class S3Proxy:
    """A WSGI application that passes each request to one S3 server.

    Args:
        url: The URL of the server.
        wait_until_ready: Called before the first request; raises an error of scriptmode.
        key: The server's key, with which requests are signed in place of the client's; its caller has checked those.
    """

    def __init__(
        self, url: str, wait_until_ready: Callable[[], None] = lambda: None, *, key: AccessKey | None = None
    ) -> None:
        parts = urlsplit(url)
        advice = "give the URL of an S3 server, such as http://127.0.0.1:9000, or 'disk' or 'memory'"
        if "@" in parts.netloc:
            raise invalid("--s3", "has a user or a password, which is not used", advice)
        try:
            host, self._port = parts.hostname, parts.port
        except ValueError as error:
            raise invalid("--s3", f"is {url!r}: {error}", advice) from error
        if parts.scheme not in ("http", "https") or not host:
            raise invalid("--s3", f"is {url!r}", advice)
        self._is_tls = parts.scheme == "https"
        self._host = host
        #: It waits once, and again after an error.
        self._wait_until_ready = cache(wait_until_ready)
        self._key = key

    def connection(self, seconds: float = _SECONDS) -> HTTPConnection:
        """Return a connection to the server, which is not open yet."""
        kind = HTTPSConnection if self._is_tls else HTTPConnection
        return kind(self._host, self._port, timeout=seconds)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Pass one request on, and return the body of its answer."""
        sent = environ
        if self._key is not None:
            sent, stored = signed_form(environ, self._key) if is_form(environ) else (environ, environ)
            _check_keys(stored)
        self._wait_until_ready()
        connection = self.connection()
        try:
            if self._key is not None:
                self._check_marker(connection, environ, self._key)
            self._send(connection, sent)
            answer = connection.getresponse()
            corrected = self._correct(connection, answer, environ, self._key) if self._key is not None else None
        except ApiError:
            connection.close()
            raise
        except (OSError, UnicodeError, HTTPException, ET.ParseError) as error:
            connection.close()
            raise ApiError("ServiceUnavailable", type(error).__name__, 503) from error
        status, content = corrected or (f"{answer.status} {answer.reason or 'OK'}", None)
        dropped = _OF_CONNECTION if content is None else _OF_CONNECTION | {"content-length"}
        start_response(status, [(name, value) for name, value in answer.getheaders() if name.lower() not in dropped])
        if content is None:
            return _body(connection, answer)
        connection.close()
        return [content]

    def _correct(
        self, connection: HTTPConnection, answer: HTTPResponse, environ: Environ, key: AccessKey
    ) -> tuple[str, bytes] | None:
        """Return status and body where S3's are others than SeaweedFS's."""
        if answer.status == HTTPStatus.OK and (listing := parse_listing(environ)):
            return "200 OK", ordered(listing, answer.read(), partial(self._fetch, connection, key))
        if answer.status == HTTPStatus.OK and "HTTP_X_AMZ_COPY_SOURCE" in environ:
            return "200 OK", _BARE_ETAG.sub(rb'<ETag>"\1"</ETag>', answer.read())
        if answer.status == HTTPStatus.CONFLICT and client_region(environ) == "us-east-1":
            # A bucket can be created there again. (CreateBucket, "BucketAlreadyOwnedByYou")
            content = answer.read()
            is_again = b"<Code>BucketAlreadyOwnedByYou</Code>" in content and not environ["QUERY_STRING"]
            return ("200 OK", b"") if is_again else ("409 Conflict", content)
        return None

    def _check_marker(self, connection: HTTPConnection, environ: Environ, key: AccessKey) -> None:
        """Raise `ApiError` for the marker of a directory that would replace an object in SeaweedFS."""
        bucket, _, name = environ["REQUEST_URI"].partition("?")[0].lstrip("/").partition("/")
        with suppress(HTTPException):
            if environ["REQUEST_METHOD"] == "PUT" and name.endswith("/"):
                self._fetch(connection, key, f"/{bucket}/{name[:-1]}", "HEAD")
                raise ApiError("ExistingObjectIsFile", "Existing Object is a file.", 409)

    def _fetch(self, connection: HTTPConnection, key: AccessKey, target: str, method: str = "GET") -> bytes:
        """Return the answer to a request of the server's own; raise ``HTTPException`` for an error."""
        target, headers = self._signed(method, target, {}, key)
        connection.request(method, target, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != HTTPStatus.OK:
            raise HTTPException(answer.status)
        return content

    def _send(self, connection: HTTPConnection, environ: Environ) -> None:
        headers = {name: value for name, value in request_headers(environ).items() if name not in _OF_CONNECTION}
        if environ.get("CONTENT_TYPE"):
            headers["content-type"] = environ["CONTENT_TYPE"]
        size, body = environ.get("CONTENT_LENGTH"), iter(partial(environ["wsgi.input"].read, _CHUNK), b"")
        # The target as it was sent: a signature is of that spelling.
        target = environ["REQUEST_URI"]
        if self._key is not None:
            if headers.get(BODY_HASH, "").startswith("STREAMING-AWS4"):
                # Each chunk has a signature of the client's, which the server cannot check.
                size = headers.pop("x-amz-decoded-content-length", "")
                if not size.isdecimal():
                    raise ApiError("IncompleteBody", "A body in chunks needs the header x-amz-decoded-content-length")
                body = _without_chunks(environ, int(size))
                encodings = (name.strip() for name in headers.get("content-encoding", "").split(","))
                of_content = ", ".join(name for name in encodings if name not in ("", "aws-chunked"))
                headers |= {BODY_HASH: "UNSIGNED-PAYLOAD", "content-encoding": of_content}
            target, headers = self._signed(environ["REQUEST_METHOD"], target, headers, self._key)
        connection.putrequest(environ["REQUEST_METHOD"], target, skip_host=True, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if size:
            connection.putheader("content-length", size)
        connection.endheaders()
        for data in body if size else ():
            connection.send(data)

    def _signed(
        self, method: str, target: str, headers: Mapping[str, str], key: AccessKey
    ) -> tuple[str, dict[str, str]]:
        """Return the target and the headers without the client's signature, and with one by the server's key."""
        path, _, query = target.partition("?")
        kept = "&".join(part for part in query.split("&") if part.partition("=")[0].lower() not in SIGNED_URL)
        # The server signs the path in this spelling.
        target = quote(unquote(path), safe="/-_.~") + (f"?{kept}" if kept else "")
        sent = {name: value for name, value in headers.items() if name not in _SIGNATURE | _ENCRYPTION and value}
        sent["host"] = f"{self._host}:{self._port}"
        return target, sign_for_s3(method, f"http://{sent['host']}{target}", sent, key)


def _check_keys(environ: Environ) -> None:
    """Raise `ApiError` for a request with a key that SeaweedFS would change.

    It makes ``a/b`` of ``a//b``, another object, so no object has such a key.
    """
    method, (path, _, query) = environ["REQUEST_METHOD"], environ["REQUEST_URI"].partition("?")
    parameters = parse_qs(query, keep_blank_values=True)
    if "encryption" in parameters and method == "PUT":
        text = "The S3 of this server does not encrypt: such a bucket could store nothing."
        raise ApiError("NotImplemented", text, 501)
    keys = [unquote(path[1:]).partition("/")[2]]
    # The last part of a prefix may be the beginning of another part.
    keys += [prefix.rpartition("/")[0] + "/" for prefix in parameters.get("prefix", ()) if "/" in prefix]
    if "delete" in parameters and method == "POST":
        try:
            # Its size is bounded, and expat bounds what entities expand to.
            deleted = ET.fromstring(read_body(environ))  # noqa: S314
            keys += [element.text or "" for element in deleted.findall(".//{*}Key")]
        except (ET.ParseError, LookupError, ValueError) as error:
            raise ApiError("MalformedXML", f"The body is not XML: {error}") from error
    source = unquote(environ.get("HTTP_X_AMZ_COPY_SOURCE", "").partition("?")[0]).lstrip("/").partition("/")[2]
    what, changed = _loss(environ, keys[0], parameters), keys[0]
    unkept = next((key for key in keys if not is_kept(key)), None)
    if not is_kept(source) or (unkept and method in ("GET", "HEAD") and "prefix" not in parameters):
        raise ApiError("NoSuchKey", "The specified key does not exist.", 404)
    if unkept:
        what, changed = "key with an empty part or a part of dots, or with a backslash", unkept
    if what:
        text = f"The S3 of this server keeps no {what}, such as {changed!r}; give another key"
        raise ApiError("InvalidArgument", text)


def _loss(environ: Environ, key: str, parameters: Mapping[str, list[str]]) -> str:
    """Return of which objects SeaweedFS would keep no content, or none in its lists; "" where it loses nothing."""
    is_upload, is_copy = "uploads" in parameters, "HTTP_X_AMZ_COPY_SOURCE" in environ
    if not is_upload and (environ["REQUEST_METHOD"] != "PUT" or not {"acl", "tagging"}.isdisjoint(parameters)):
        return ""
    size = environ.get("HTTP_X_AMZ_DECODED_CONTENT_LENGTH") or environ.get("CONTENT_LENGTH") or "0"
    if key.endswith("/") and (is_upload or is_copy or size != "0"):
        return "content of a key that ends with a slash"
    is_unlisted = any(part == ".uploads" or part.endswith(".versions") for part in key.split("/")[:-1])
    return "key in a directory whose name is .uploads or ends with .versions" if is_unlisted else ""


def _without_chunks(environ: Environ, size: int) -> Iterator[bytes]:
    """Yield the content of a body in chunks, each after its size (Signature Version 4, "Multiple chunks").

    Raises `ApiError` for a content that does not have ``size`` bytes.
    """
    body, missing = environ["wsgi.input"], size
    while left := _chunk_size(body.readline(_LONGEST_LINE)):
        if left > missing:
            raise ApiError("IncompleteBody", f"The chunks have more bytes than x-amz-decoded-content-length: {size}")
        missing -= left
        while left and (data := body.read(min(left, _CHUNK))):
            yield data
            left -= len(data)
        body.readline(_LONGEST_LINE)
    if missing:
        raise ApiError(
            "IncompleteBody", f"The chunks lack {missing} of the bytes of x-amz-decoded-content-length: {size}"
        )


def _chunk_size(line: bytes) -> int:
    number = line.partition(b";")[0].strip()
    if not _HEXADECIMAL.fullmatch(number):
        text = f"A chunk begins with {line[:_SHOWN_BYTES]!r}, and its size in hexadecimal digits was expected"
        raise ApiError("IncompleteBody", text)
    return int(number, 16)


def _body(connection: HTTPConnection, answer: HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := answer.read(_CHUNK):
            yield chunk
    finally:
        answer.close()
        connection.close()
