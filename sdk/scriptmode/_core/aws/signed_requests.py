"""List and look up objects of S3 without boto3, whose import and first client take 0.25 s of CPU in each process.

Only where environment variables alone say how a bucket is read, and only what S3 answers with 200: boto3 sends every
other request, sends those again that failed, and finds the reason.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import os
import re
import socket
import ssl
import weakref
from collections.abc import Iterable, Mapping
from functools import reduce
from http import HTTPStatus, client
from typing import Any
from urllib.parse import quote, unquote_plus, urlencode, urlsplit
from xml.etree import ElementTree as ET

from scriptmode._core.aws.direct_endpoints import is_loopback
from scriptmode._core.aws.s3_reader import BucketSettings
from scriptmode._core.aws.s3_uris import S3Location, S3Object

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
        self._bucket = bucket
        self._timeout = timeout
        self._scheme, self._host, self._path, _, _ = urlsplit(settings.url)
        self._idle: list[client.HTTPConnection] = []
        weakref.finalize(self, _close, self._idle)
        # A connection would read the certificates of all authorities again.
        self._tls = ssl.create_default_context(cafile=settings.authorities or None) if self._scheme == "https" else None

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

    def _send(
        self, method: str, key: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> tuple[Mapping[str, str], bytes] | None:
        path = f"{self._path}/{quote(key, safe='/~')}"
        text = urlencode(sorted(query.items()), quote_via=quote, safe="~")
        target, is_kept = f"{path}?{text}" if text else path, True
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection, is_kept = self._connect(), False
            try:
                connection.request(method, target, headers=self._signed(method, path, text, headers))
                response = connection.getresponse()
                content = response.read()
                break
            except (OSError, client.HTTPException) as error:
                connection.close()
                # The server may have closed a connection that was kept.
                if not is_kept or isinstance(error, socket.timeout):
                    raise
        self._idle.append(connection)
        received = {name.lower(): value for name, value in response.getheaders()}
        return (received, content) if response.status == HTTPStatus.OK else None

    def _connect(self) -> client.HTTPConnection:
        connection = client.HTTPConnection(self._host, timeout=self._timeout)
        if self._tls is not None:
            connection = client.HTTPSConnection(self._host, timeout=self._timeout, context=self._tls)
        try:
            connection.connect()
        except socket.timeout as error:
            # Not that of a read: boto3 finds the reason.
            raise ConnectionError(f"{self.settings.url} cannot be reached") from error
        return connection

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
        signature = reduce(_mac, (*scope, "\n".join(text)), f"AWS4{secret_key}".encode())
        credential = "/".join((access_key, *scope))
        authorization = f"{text[0]} Credential={credential}, SignedHeaders={names}, Signature={signature.hex()}"
        return {**signed, "authorization": authorization}


def _close(connections: Iterable[client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")
