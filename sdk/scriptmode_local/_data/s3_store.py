"""Amazon S3 as a store of objects, with its downloads and their retries.

`signed_requests` reads, lists and looks up objects first. boto3 does what it cannot, which finds the reason.

**This is where a failed download is retried**: `S3Store._resume` reads on through boto3 where a connection broke,
within `S3Store._retry`, which retries each transient error (`s3_errors.is_transient`) with exponential backoff and
jitter until `RETRY_SECONDS` pass without progress, which is `LEAST_RATE` bytes per second, or `FIRST_RETRY_SECONDS`
where S3 has not answered yet; each attempt starts after the bytes that have come.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Callable, NoReturn, TypeVar

from scriptmode._core.aws import s3, s3_errors
from scriptmode._core.aws.s3_body import HEAD_BYTES
from scriptmode._core.aws.s3_uris import S3Object, parse_s3_uri
from scriptmode._core.aws.signed_requests import BucketRequests
from scriptmode._core.spec.inputs import LEAST_RATE
from scriptmode.errors import DataNotFoundError, PlatformError, with_suffix
from scriptmode_local._data.cancellation import raise_if_cancelled, sleep_unless_cancelled
from scriptmode_local._data.integrity import Checksum, ObjectCheck, Verifier
from scriptmode_local._data.object_store import CHUNK_BYTES, Buffer, StoredObject

if TYPE_CHECKING:
    from scriptmode._core.aws.s3_body import Body

CONNECT_SECONDS = 10
#: Seconds without a byte, or with fewer than `LEAST_RATE` per second, after which a connection counts as broken.
STALL = 15.0
#: Seconds without progress after which retrying ends; fewer before S3 has answered for the first time.
RETRY_SECONDS = 60.0
FIRST_RETRY_SECONDS = 10.0
#: Seconds of backoff: doubled after each attempt without progress.
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0
#: Failures after which a bucket is read through boto3 alone, if it was never read without.
FAILURES = 8

_T = TypeVar("_T")


class S3Store:
    """An `ObjectStore` of the objects of S3, or of any endpoint that boto3's standard settings name."""

    def __init__(self, *, retry_seconds: float = RETRY_SECONDS, stall: float = STALL, page: int = s3.MOST_KEYS) -> None:
        """Try a request again for ``retry_seconds``; lose a connection ``stall`` seconds after its last byte.

        ``page`` objects are listed first.
        """
        settings = {
            "connect_timeout": min(CONNECT_SECONDS, stall),
            "read_timeout": stall,
            "max_pool_connections": 64,
            # Retries are done here, where it is known which bytes have come.
            "retries": {"total_max_attempts": 1},
        }
        self._s3 = s3.S3(settings=settings)
        self._buckets: dict[str, _Bucket] = {}
        self._opening = Lock()
        self._retry_seconds = retry_seconds
        self._stall = stall
        self._page = page
        self._answered = False
        self._verifier = Verifier(self._headers)

    def prepare(self, uri: str) -> None:
        """Find the credentials for a bucket, and load boto3's client if they are not variables, without connecting."""
        self._bucket(parse_s3_uri(uri).bucket)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object whose key begins with the URI's, in the order of keys, a page in memory at a time."""
        after: str | None = None
        while after != "":
            most = s3.MOST_KEYS if after else self._page
            page, after = self._ask(prefix, partial(self._s3.page, prefix, after=after or "", most=most))
            for item in page:
                # Consoles create such a key, without content, for a directory.
                if not item.location.key.endswith("/"):
                    yield StoredObject(str(item.location), item.size, item.etag)

    def find(self, uri: str) -> StoredObject:
        """Return the object of exactly that key; raise `DataNotFoundError`."""
        item, _ = self._ask(uri, lambda: self._s3.head(uri))
        return StoredObject(uri, item.size, item.etag)

    def read(self, item: StoredObject, start: int, end: int) -> Sequence[Buffer]:
        """Return all bytes from ``start`` up to ``end``; raise `DataError` where the object was changed meanwhile.

        The checksum of a whole object is compared; the object is read once more if it differs.
        """
        content: list[Buffer] = []

        def keep(_: int, data: Buffer) -> None:
            # The memory of one of several parts is used again; that of a small object is larger than its bytes.
            content.append(data if len(data) == end - start > 4 * HEAD_BYTES else bytes(data))

        self.read_unverified(item, start, end, keep)
        if (start, end) == (0, item.size):
            expected = self._checksum(item)

            def read_again() -> None:
                content.clear()
                self.read_unverified(item, start, end, keep)

            self._verifier.check(item, expected, lambda: content, read_again)
        return content

    def read_unverified(self, item: StoredObject, start: int, end: int, sink: Callable[[int, Buffer], object]) -> None:
        """Read bytes as `read`, and pass them to ``sink`` in order, with their offsets; `check` verifies them."""
        wanted, began = _s3_object(item), time.monotonic()
        bucket = self._bucket(wanted.location.bucket)
        done = 0
        if bucket.works or bucket.failures < FAILURES:
            for part in self._parts(bucket, wanted, (start, end)):
                sink(start + done, part)
                done += len(part)
            if done == end - start:
                bucket.works = self._answered = True
                return
            bucket.failures += 1
        try:
            self._resume(wanted, (start, end), done, sink, began)
        except PlatformError as error:
            self._raise_explained(wanted, error)

    def open(self, item: StoredObject, start: int, end: int, waiting: Callable[[], None]) -> Body | None:
        """Return the bytes from ``start`` up to ``end`` as they come, unverified; None where boto3 must read them."""
        wanted = _s3_object(item)
        return self._open(self._bucket(wanted.location.bucket), wanted, (start, end), waiting)

    def _open(self, bucket: _Bucket, item: S3Object, span: tuple[int, int], waiting: Callable[[], None]) -> Body | None:
        with suppress(PlatformError, *BucketRequests.FAILURES):
            return bucket.requests.get(item, *span, waiting)
        return None

    def _parts(self, bucket: _Bucket, item: S3Object, span: tuple[int, int]) -> Iterator[memoryview]:
        """Yield bytes of an object, each part until the next is asked for; fewer than all where boto3 must read on."""
        deadline = time.monotonic() + s3.ANSWER_STALLS * self._stall
        if body := self._open(bucket, item, span, raise_if_cancelled):
            with closing(body):
                while time.monotonic() < deadline and (part := body.read()):
                    yield part
                    raise_if_cancelled()

    def check(
        self, item: StoredObject, content: Callable[[], Iterable[Buffer]], read_again: Callable[[], object]
    ) -> None:
        """Verify a whole object that was written to a file; raise `DataError` if it differs after reading again."""
        self._verifier.check(item, self._verifier.checksum(item, thorough=True), content, read_again)

    def object_check(self, item: StoredObject) -> ObjectCheck:
        """Return the check of an object that is read in chunks."""

        def chunks() -> Iterator[Buffer]:
            for start in range(0, item.size, CHUNK_BYTES):
                yield from self.read(item, start, min(start + CHUNK_BYTES, item.size))

        return ObjectCheck(item, self._verifier, lambda: self._checksum(item), chunks)

    def _checksum(self, item: StoredObject) -> Checksum | None:
        """Return what a stream is compared with: at any cost, but not over TLS, which authenticates each record."""
        is_encrypted = self._bucket(parse_s3_uri(item.uri).bucket).requests.is_encrypted
        return self._verifier.checksum(item, thorough=not is_encrypted)

    def _headers(self, item: StoredObject) -> Mapping[str, str]:
        """Return the headers of HeadObject about an object's content."""
        try:
            current, response = self._ask(item.uri, lambda: self._s3.head(item.uri, checksum=True))
        except DataNotFoundError as error:
            self._raise_explained(_s3_object(item), error)
        if "" not in (item.version, current.etag) and item.version != current.etag:
            raise s3.changed_object_error(_s3_object(item), f"it has the ETag {current.etag} now")
        headers: Mapping[str, str] = response["ResponseMetadata"]["HTTPHeaders"]
        return headers

    def _ask(self, uri: str, call: Callable[[], _T]) -> _T:
        """Return an answer that has no object's bytes, with retries."""
        return self._retry(lambda: s3.within(uri, s3.ANSWER_STALLS * self._stall, call))

    def _resume(
        self, item: S3Object, span: tuple[int, int], done: int, sink: Callable[[int, Buffer], object], began: float
    ) -> None:
        """Read through boto3, with retries; each starts after the ``done`` bytes that have come since ``began``."""
        start, end = span

        def read_rest() -> None:
            nonlocal done
            for chunk in self._s3.stream(item, start + done, end, window=self._stall):
                raise_if_cancelled()
                if len(chunk) > (length := end - start) - done:
                    raise s3.unexpected_answer_error(item, f"more than {length:,} bytes", f"{length:,} bytes were")
                sink(start + done, chunk)
                done += len(chunk)

        self._retry(read_rest, lambda: done, began)

    def _raise_explained(self, item: S3Object, error: PlatformError) -> NoReturn:
        if (explained := self._explained(item, error)) is error:
            # An error that is its own cause is an endless chain.
            raise error
        raise explained from error

    def _explained(self, item: S3Object, error: PlatformError) -> PlatformError:
        """Return what an error means for an object that existed when it was listed."""
        code = s3_errors.code_of(error)
        if code == "PreconditionFailed":
            try:
                etag = self.find(str(item.location)).version
            except DataNotFoundError:
                code = "NoSuchKey"
            except PlatformError:
                return s3.changed_object_error(item, "S3 answered 412 PreconditionFailed")
            else:
                if etag != item.etag:
                    return s3.changed_object_error(item, f"it has the ETag {etag} now" if etag else "it has none now")
                return s3.unexpected_answer_error(item, "412 PreconditionFailed", f"the object of ETag {etag} was")
        if code == "NoSuchKey" or (isinstance(error, DataNotFoundError) and code != "NoSuchBucket"):
            return DataNotFoundError(
                f"{item.location}: the object was deleted while the job read its channel",
                advice="do not change a job's input until the job has ended",
            )
        return error

    def _retry(
        self, action: Callable[[], _T], progress: Callable[[], int] = lambda: 0, began: float | None = None
    ) -> _T:
        """Call ``action`` until it succeeds; raise its last error after ``retry_seconds`` without progress.

        ``progress`` returns the bytes that have come since ``began``, by default now: when `LEAST_RATE` per second
        came, the time limit and the backoff start again. A thread whose result is not needed any more stops retrying
        (`cancellation`).
        """
        backoff, before, attempts = FIRST_BACKOFF, 0, 0
        began = time.monotonic() if began is None else began
        while True:
            raise_if_cancelled()
            attempts += 1
            try:
                done = action()
            except PlatformError as error:
                self._answered = self._answered or progress() > before
                if progress() - before >= max(1, LEAST_RATE * (time.monotonic() - began)):
                    backoff, before, began = FIRST_BACKOFF, progress(), time.monotonic()
                limit = self._retry_seconds if self._answered else min(self._retry_seconds, FIRST_RETRY_SECONDS)
                waited = time.monotonic() - began
                if not s3_errors.is_transient(error) or (attempts == 1 and waited + backoff > limit):
                    raise
                if waited + backoff > limit:
                    suffix = f"(tried {attempts} times, {waited:.0f} s without progress)"
                    raise with_suffix(error, suffix) from error.__cause__
                # Jitter: threads that were throttled together must not come back together.
                sleep_unless_cancelled(backoff * random.uniform(0.5, 1))  # noqa: S311 - no secret
                backoff = min(backoff * 2, LONGEST_BACKOFF)
            else:
                self._answered = True
                return done

    def _bucket(self, name: str) -> _Bucket:
        with self._opening:
            if name not in self._buckets:
                requests = BucketRequests(name, self._s3.bucket_settings(name), self._stall)
                self._buckets[name] = _Bucket(requests)
            return self._buckets[name]


def _s3_object(item: StoredObject) -> S3Object:
    return S3Object(parse_s3_uri(item.uri), item.size, item.version)


@dataclass
class _Bucket:
    """One bucket, and whether it can be read without boto3."""

    requests: BucketRequests
    works: bool = False
    failures: int = 0
