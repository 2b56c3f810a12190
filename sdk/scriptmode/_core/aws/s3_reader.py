"""Read ranges of the objects of one bucket by obstore, the Python binding of Rust's object_store.

boto3 takes 1,500 microseconds of CPU for a GET, obstore 200. It does not return the response headers, has no names for
most errors, and rejects keys that are not paths: whatever it cannot read, boto3 reads or explains.

An HTTP client that receives into memory it uses again took less CPU: 0.48 s for 1 GiB in large objects, here 0.70 s;
0.52 s for 2,000 objects of 100 KB, here 0.88 s, of which 0.3 s are MD5s instead of the CRCs in responses' headers.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Callable, ClassVar, NamedTuple
from urllib.parse import urlsplit

from scriptmode._core.aws.direct_endpoints import is_loopback

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import S3Credential, S3Store

#: Retries of one read, which begin after the bytes that have come. None begins after the time without a byte that
#: counts as broken.
RETRIES = 3
#: Time limit of a whole response, in times without a byte that count as broken.
RESPONSE_STALLS = 4
#: A longer body is read in parts of about this size, so that the read can be aborted between two of them.
PART_BYTES = 256 * 1024
#: obstore asks for credentials again when they expire in 5 minutes. botocore renews those that expire in 10 (botocore
#: credentials.py, ``_mandatory_refresh_timeout``), so that what it returns lasts at least as long.
CREDENTIALS_LAST = dt.timedelta(minutes=10)
#: obstore 0.11 and later: see pyproject.toml.
_IS_RECENT = sys.version_info >= (3, 10)


class BucketSettings(NamedTuple):
    """The settings of a bucket that obstore shares with boto3."""

    #: The bucket's own URL, without a slash at its end.
    url: str
    region: str
    #: Returns access key, secret key and token; fresh ones each time.
    credentials: Callable[[], tuple[str, str, str | None]]
    #: The file of certificates of authorities that the user names, or "".
    authorities: str = ""
    proxy: str = ""


class S3Reader:
    """The objects of one bucket; safe to share between threads.

    It may be created before a fork: connections and threads start with the first read. A child that is forked later
    cannot read.
    """

    #: The process that obstore's threads run in, 0 before they start; a read in its children would wait for ever.
    _process: ClassVar[int] = 0

    def __init__(
        self, settings: BucketSettings, *, connect_seconds: float, stall: float, raise_if_cancelled: Callable[[], None]
    ) -> None:
        """Use connections that count as broken after ``stall`` seconds without a byte.

        What ``raise_if_cancelled`` raises aborts a read; it is called after every part of `PART_BYTES`.
        """
        self._settings = settings
        #: Whether its connections use TLS.
        self.is_encrypted = settings.url.startswith("https:")
        self._connect_seconds = connect_seconds
        self._stall = stall
        self._raise_if_cancelled = raise_if_cancelled
        self._store: S3Store | None = None
        self._creating = Lock()

    def read(
        self, key: str, start: int, end: int, *, size: int, etag: str, sink: Callable[[int, memoryview], object]
    ) -> int:
        """Read the bytes from ``start`` up to ``end`` of the object of just that size and ETag ("": any).

        ``sink`` gets each part with its offset in the object. Return the number of bytes that it got: fewer where the
        connection broke or was slow, 0 where obstore cannot read them, or the object has changed.
        """
        done = start
        for part in self._read(key, start, end, size=size, etag=etag):
            sink(done, part)
            done += len(part)
        return done - start

    def _read(self, key: str, start: int, end: int, *, size: int, etag: str) -> Iterator[memoryview]:
        """Yield what obstore reads of a part of an object, until it fails: not of what happens to it outside."""
        import obstore
        from obstore.exceptions import BaseError

        # Other keys obstore does not request as they are written.
        is_path = key.isprintable() and not any(part in ("", ".", "..") for part in key.split("/"))
        if not is_path or S3Reader._process not in (0, os.getpid()):
            return
        S3Reader._process = os.getpid()
        options: dict[str, object] = {"if_match": etag} if etag else {}
        if (start, end) != (0, size):
            options["range"] = (start, end)
        left = end - start
        # OSError and ValueError: a missing object, and settings that obstore rejects.
        with suppress(BaseError, OSError, ValueError):
            result = obstore.get(self._opened(), key, options=options)
            meta = result.meta
            # Not every endpoint honours If-Match.
            if meta["size"] != size or etag not in ("", meta["e_tag"] or etag) or result.range != (start, end):
                return
            for part in self._parts(result, left):
                # boto3 tells of more bytes than were asked for.
                if len(part) > left:
                    return
                left -= len(part)
                yield part

    def _parts(self, response: GetResult, length: int) -> Iterator[memoryview]:
        if length <= PART_BYTES:
            yield memoryview(response.bytes())
            return
        for part in response.stream(min_chunk_size=PART_BYTES):
            self._raise_if_cancelled()
            yield memoryview(part)

    def _opened(self) -> S3Store:
        with self._creating:
            if self._store is None:
                self._store = self._open()
        return self._store

    def _open(self) -> S3Store:
        from obstore.store import S3Store

        settings = self._settings
        client: dict[str, object] = {"allow_http": True, "connect_timeout": f"{int(self._connect_seconds * 1000)}ms"}
        # The whole response has a time limit, too: boto3 reads the rest of a slow one, and finds out how slow it is.
        client["timeout"] = f"{int(self._stall * RESPONSE_STALLS * 1000)}ms"
        config: dict[str, object] = {"endpoint": settings.url, "region": settings.region}
        stall = f"{int(self._stall * 1000)}ms"
        if _IS_RECENT:
            # AWS_ENDPOINT_URL_S3 would win against `endpoint`.
            config["aws_endpoint_url_s3"] = settings.url
            client["read_timeout"] = stall
        if is_loopback(settings.url):
            # Without one of its own the client would take the environment's proxy.
            client.update(proxy_url=settings.url, proxy_excludes=urlsplit(settings.url).hostname)
        elif settings.proxy:
            client["proxy_url"] = settings.proxy
        if settings.authorities and self.is_encrypted:
            # Versions before 0.11 reject it, so that boto3 reads.
            client["root_certificate"] = Path(settings.authorities).read_text()
        return S3Store(
            "-",  # the endpoint has the bucket's name
            virtual_hosted_style_request=True,
            client_options=client,
            retry_config={"max_retries": RETRIES, "retry_timeout": dt.timedelta(seconds=self._stall)},
            credential_provider=self._credentials,
            **config,
        )

    def _credentials(self) -> S3Credential:
        access_key, secret_key, token = self._settings.credentials()
        expires = dt.datetime.now(dt.timezone.utc) + CREDENTIALS_LAST
        return {"access_key_id": access_key, "secret_access_key": secret_key, "token": token, "expires_at": expires}
