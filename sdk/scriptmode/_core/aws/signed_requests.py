"""List, look up and read objects of S3 without boto3, whose import and first client take 0.25 s of CPU in each process.

boto3 takes 1,500 microseconds of CPU for a GET, this module 200. Only what S3 answers as it should is used: boto3 sends
what failed again, and finds the reason. It also lists and looks up where more than environment variables say how.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import os
import re
import select
import socket
import ssl
import weakref
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache, reduce
from http import HTTPStatus, client
from typing import Any, Callable, NamedTuple, TypeVar
from urllib.parse import quote, unquote, unquote_plus, urlencode, urlsplit
from xml.etree import ElementTree as ET

from scriptmode._core.aws.direct_endpoints import is_loopback
from scriptmode._core.aws.s3_body import HEAD_BYTES, PART_BYTES, Body, receive_head
from scriptmode._core.aws.s3_uris import S3Location, S3Object

_Answer = TypeVar("_Answer")

#: Variables that boto3 reads and that this module reads as well, or that say nothing about S3.
_KNOWN = frozenset({
    "AWS_ACCESS_KEY_ID", "AWS_CA_BUNDLE", "AWS_CONFIG_FILE", "AWS_DEFAULT_REGION", "AWS_EC2_METADATA_DISABLED",
    "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AWS_SHARED_CREDENTIALS_FILE",
})  # fmt: skip
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
_BUCKET = "([a-z0-9]|-(?!-|s3alias)){3,63}"
#: With the bucket. Other partitions and kinds of buckets have other hosts (Amazon S3 endpoints and quotas).
_URL = re.compile(
    rf"https?://(?!s3-accelerate)[A-Za-z0-9.-]+(:\d+)?/{_BUCKET}|"
    rf"https://{_BUCKET}\.s3\.(af|ap|ca|eu|il|me|mx|sa|us)-[a-z]+-\d\.amazonaws\.com"
)
_NO_CONTENT = hashlib.sha256(b"").hexdigest()


class BucketSettings(NamedTuple):
    """The settings of a bucket that boto3 reads."""

    #: The bucket's own URL, without a slash at its end.
    url: str
    region: str
    #: Returns access key, secret key and token, which are still valid.
    credentials: Callable[[], tuple[str, str, str | None]]
    #: The file of certificates of authorities that the user names, or "".
    authorities: str = ""
    #: Its URL.
    proxy: str = ""


def environment_settings(bucket: str) -> BucketSettings | None:
    """Return how boto3 reads a bucket; None where more than the variables of `_KNOWN` says how."""
    region, key, secret = map(os.environ.get, ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    others = {name for name in os.environ if name.startswith("AWS_")} - _KNOWN
    # Without an error where there is no home, or only another user may read it.
    files = (os.path.expanduser(os.environ.get(name, usual)) for name, usual in _FILES.items())  # noqa: PTH111
    has_files = any(map(os.path.exists, files))
    if not (region and key and secret) or others or has_files:
        return None
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    url = f"{endpoint.rstrip('/')}/{bucket}" if endpoint else f"https://{bucket}.s3.{region}.amazonaws.com"
    has_proxy = any(name.lower().endswith("_proxy") for name in os.environ)
    if not _URL.fullmatch(url) or (has_proxy and not is_loopback(url)):
        return None
    token = os.environ.get("AWS_SESSION_TOKEN") or None
    authorities = os.environ.get("AWS_CA_BUNDLE") or os.environ.get("REQUESTS_CA_BUNDLE") or ""
    return BucketSettings(url, region, lambda: (key, secret, token), authorities)


class BucketRequests:
    """Requests for one bucket, which return None for any answer but the expected one; safe to share between threads.

    They raise `FAILURES` where no answer comes in ``timeout`` seconds, or none that can be read. Connections are kept.
    """

    FAILURES = (OSError, ValueError, client.HTTPException, ET.ParseError)

    def __init__(self, bucket: str, settings: BucketSettings, timeout: float) -> None:
        self.settings = settings
        self.is_encrypted = settings.url.startswith("https:")
        self._bucket = bucket
        self._timeout = timeout
        _, self._host, self._path, _, _ = urlsplit(settings.url)
        user, _, self._proxy = urlsplit(settings.proxy).netloc.rpartition("@")
        self._proxy_headers = (
            {"proxy-authorization": f"Basic {b64encode(unquote(user).encode()).decode()}"} if user else {}
        )
        # A proxy connects to a server with TLS, and asks another itself.
        self._origin = f"http://{self._host}" if self._proxy and not self.is_encrypted else ""
        self._idle: list[client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)

    def page(self, prefix: str, after: str, most: int) -> tuple[list[S3Object], str] | None:
        """Return at most ``most`` objects of a prefix and where the next page begins, "" at the end."""
        query = {"list-type": "2", "prefix": prefix, "encoding-type": "url", "max-keys": str(most)}
        answer = self._send("GET", "", {**query, "continuation-token": after} if after else query, {})
        # The parser is botocore's, too.
        root = ET.fromstring(answer[1] if answer else "<None/>")  # noqa: S314
        following = root.findtext("{*}NextContinuationToken", "")
        if not root.tag.endswith("ListBucketResult") or (root.findtext("{*}IsTruncated") == "true" and not following):
            return None
        decoded = unquote_plus if root.findtext("{*}EncodingType") == "url" else str
        objects = []
        for item in root.iterfind("{*}Contents"):
            key, size, etag = (item.findtext(f"{{*}}{name}", "") for name in ("Key", "Size", "ETag"))
            objects.append(S3Object(S3Location(self._bucket, decoded(key)), int(size), etag))
        return objects, following

    def head(self, key: str, *, checksum: bool) -> Mapping[str, Any] | None:
        """Return what boto3 returns of an object's size, ETag and headers."""
        answer = self._send("HEAD", key, {}, {"x-amz-checksum-mode": "ENABLED"} if checksum else {})
        headers = answer[0] if answer else {}
        # Each object of S3 has both; a proxy's page has not.
        if not headers.keys() >= {"etag", "content-length"}:
            return None
        about = {"HTTPHeaders": headers}
        return {"ETag": headers["etag"], "ContentLength": headers["content-length"], "ResponseMetadata": about}

    def get(self, item: S3Object, start: int, end: int, waiting: Callable[[], None]) -> Body | None:
        """Return the bytes from ``start`` up to ``end`` of the object of just that size and ETag ("": any)."""
        headers = {"if-match": item.etag} if item.etag else {}
        headers.update({"range": f"bytes={start}-{end - 1}"} if (start, end) != (0, item.size) else {})
        memory = memoryview(bytearray(min(end - start, PART_BYTES) + HEAD_BYTES))

        def exchange(connection: client.HTTPConnection, target: str, signed: Mapping[str, str]) -> tuple[int, int]:
            lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
            connection.sock.sendall(f"GET {target} HTTP/1.1\r\n{lines}\r\n".encode())
            return receive_head(connection.sock, memory)

        connection, (head, filled) = self._exchange("GET", item.location.key, {}, headers, exchange)
        status, *lines = str(memory[:head], "latin-1").split("\r\n")
        fields = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]
        received = dict(fields)
        etag, length = received.get("etag", ""), received.get("content-length")
        # Chunks, which a proxy may add a length to, or two lengths: where the content ends is not sure (RFC 9112, 6.3).
        is_sure = [name for name, _ in fields if name in ("content-length", "transfer-encoding")] == ["content-length"]
        expected = ("206", f"bytes {start}-{end - 1}/{item.size}") if "range" in headers else ("200", None)
        # Not every endpoint honours If-Match.
        is_it = (status[9:12], received.get("content-range")) == expected and length == str(end - start)
        if not (is_it and is_sure) or filled - head > end - start or (etag and item.etag not in ("", etag)):
            connection.close()
            return None
        is_kept = status.startswith("HTTP/1.1") and received.get("connection", "").lower() != "close"
        keep = self._idle.append if is_kept else client.HTTPConnection.close
        return Body(connection, memory[head:], filled - head, left=end - start, waiting=waiting, keep=keep)

    def _send(
        self, method: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], bytes] | None:
        def exchange(connection: client.HTTPConnection, target: str, signed: Mapping[str, str]) -> tuple[Any, bytes]:
            connection.request(method, target, headers=dict(signed))
            response = connection.getresponse()
            return response, response.read()

        connection, (response, content) = self._exchange(method, key, query, headers, exchange)
        if connection.sock:
            self._idle.append(connection)
        received = {name.lower(): value for name, value in response.getheaders()}
        return (received, content) if response.status == HTTPStatus.OK else None

    def _exchange(
        self, method: str, key: str, query: Mapping[str, str], headers: Mapping[str, str],
        exchange: Callable[[client.HTTPConnection, str, Mapping[str, str]], _Answer],
    ) -> tuple[client.HTTPConnection, _Answer]:  # fmt: skip
        """Return a connection, a kept one if there is one, and the answer that came to a request."""
        path = f"{self._path}/{quote(key, safe='/~')}"
        text = urlencode(sorted(query.items()), quote_via=quote, safe="~")
        target, is_kept = f"{path}?{text}" if text else path, True
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection, is_kept = self._connect(), False
            try:
                if is_kept:
                    _require_silence(connection)
                signed = self._signed(method, path, text, headers)
                signed.update(self._proxy_headers if self._origin else {})
                return connection, exchange(connection, f"{self._origin}{target}", signed)
            except (OSError, ValueError, client.HTTPException) as error:
                connection.close()
                # The server may have closed a connection that was kept.
                if not is_kept or isinstance(error, socket.timeout):
                    raise

    def _connect(self) -> client.HTTPConnection:
        host = self._proxy or self._host
        connection = client.HTTPConnection(host, timeout=self._timeout)
        if self.is_encrypted:
            connection = client.HTTPSConnection(host, timeout=self._timeout, context=self._tls)
            if self._proxy:
                connection.set_tunnel(self._host, headers=self._proxy_headers)
        try:
            connection.connect()
        except socket.timeout as error:
            # Not that of a read: boto3 finds the reason.
            raise ConnectionError(f"{self.settings.url} cannot be reached") from error
        return connection

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Each connection would read the certificates of all authorities again.
        return ssl.create_default_context(cafile=self.settings.authorities or None)

    def _signed(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers of a request with its signature (Signature Version 4, S3 API)."""
        access_key, secret_key, token = self.settings.credentials()
        now = dt.datetime.now(dt.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        signed = {**headers, "host": self._host, "x-amz-content-sha256": _NO_CONTENT, "x-amz-date": now}
        signed.update({"x-amz-security-token": token} if token else {})
        names = ";".join(sorted(signed))
        lines = (f"{name}:{signed[name]}" for name in sorted(signed))
        request = "\n".join((method, path, query, *lines, "", names, _NO_CONTENT))
        scope = (now[:8], self.settings.region, "s3", "aws4_request")
        text = ("AWS4-HMAC-SHA256", now, "/".join(scope), hashlib.sha256(request.encode()).hexdigest())
        signature = _mac(_signing_key(secret_key, *scope), "\n".join(text))
        credential = "/".join((access_key, *scope))
        authorization = f"{text[0]} Credential={credential}, SignedHeaders={names}, Signature={signature.hex()}"
        return {**signed, "authorization": authorization}


def _close(connections: Iterable[client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _require_silence(connection: client.HTTPConnection) -> None:
    """Raise ``ConnectionError`` where a kept connection ended, or has bytes that the next answer would begin with."""
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    if poll.poll(0) or (isinstance(connection.sock, ssl.SSLSocket) and connection.sock.pending()):
        raise ConnectionError("the server closed the connection, or sent more than its answer")


@lru_cache(8)
def _signing_key(secret_key: str, *scope: str) -> bytes:
    return reduce(_mac, scope, f"AWS4{secret_key}".encode())


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
