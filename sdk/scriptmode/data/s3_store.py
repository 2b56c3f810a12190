"""Amazon S3 as a store of objects, with its downloads and their retries.

A download takes the fast path, `SignedGets`, first. boto3 knows all settings and the reasons of errors, but takes 1,500
microseconds of CPU for a GET: it reads what the fast path cannot read, and what is left where the fast path failed.

**This is where a failed download is retried**: `S3Store._resume` reads the rest of an object from the byte where the
connection broke, within `S3Store._retry`, which retries each transient error (`s3_errors.is_transient`) with
exponential backoff and jitter until `RETRY_SECONDS` pass without a new byte, or `FIRST_RETRY_SECONDS` where S3 has not
answered yet.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Callable, TypeVar

from scriptmode.aws import s3, s3_errors
from scriptmode.data.buffers import Buffers
from scriptmode.data.integrity import ObjectCheck, Verifier
from scriptmode.data.object_store import CHUNK_BYTES, Buffer, StoredObject
from scriptmode.data.signed_get import CONNECT_SECONDS, Answer, SignedGets, UnexpectedAnswerError
from scriptmode.data.targets import Memory, require_wanted, sleep_while_wanted
from scriptmode.errors import DataError, DataNotFoundError, PlatformError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from scriptmode.data.integrity import Checksum
    from scriptmode.data.targets import Target

#: Seconds without a byte after which a connection counts as broken.
STALL = 15.0
#: Seconds without progress after which retrying ends; fewer before S3 has answered for the first time.
RETRY_SECONDS = 60.0
FIRST_RETRY_SECONDS = 10.0
#: Seconds of backoff: doubled after each attempt without progress.
FIRST_BACKOFF, LONGEST_BACKOFF = 0.1, 5.0
#: Failures of the fast path after which it is given up, if it has never worked.
FAILURES = 8

_T = TypeVar("_T")


class S3Store:
    """An `ObjectStore` of the objects of S3, or of any endpoint that boto3's standard settings name."""

    def __init__(self, *, retry_seconds: float = RETRY_SECONDS, stall: float = STALL) -> None:
        settings = {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": stall,
            "max_pool_connections": 64,
            # Retries are done here, where it is known which bytes have come.
            "retries": {"total_max_attempts": 1},
        }
        self._s3 = s3.S3(settings=settings)
        self._buckets: dict[str, _Bucket] = {}
        self._opening = Lock()
        self._buffers = Buffers()
        self._retry_seconds = retry_seconds
        self._stall = stall
        self._answered = False
        self._verifier = Verifier(self._headers)

    def prepare(self, uri: str) -> None:
        """Load the clients and find the credentials for a bucket, without connecting."""
        self._bucket(s3.parse_s3_uri(uri).bucket)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object whose key begins with the URI's, in the order of keys, a page in memory at a time."""
        after: str | None = None
        while after != "":
            found, after = self._retry(partial(self._s3.page, prefix, after=after or ""))
            for item in found:
                # Consoles create such a key, without content, for a folder.
                if not item.location.key.endswith("/"):
                    yield StoredObject(str(item.location), item.size, item.etag)

    def find(self, uri: str) -> StoredObject:
        """Return the object of exactly that key; raise `DataNotFoundError`."""
        found, _ = self._retry(lambda: self._s3.head(uri))
        return StoredObject(uri, found.size, found.etag)

    def read(self, item: StoredObject, start: int, end: int) -> Buffer:
        """Return all bytes from ``start`` up to ``end``; raise `DataError` where the object was changed meanwhile.

        The checksum of a whole object is compared; the object is read once more if it differs.
        """
        content = self._buffers.of(end - start)
        headers = self.read_to(Memory(content), item, start)
        if (start, end) == (0, item.size):
            expected = self._verifier.checksum(item, headers, md5=self._verifies_md5(item))
            read_again = partial(self.read_to, Memory(content), item, start)
            self._verifier.check(item, expected, lambda: (content,), read_again)
        return content

    def check(
        self,
        item: StoredObject,
        headers: Mapping[str, str] | None,
        content: Callable[[], Iterable[Buffer]],
        read_again: Callable[[], object],
    ) -> None:
        """Verify a whole object that `read_to` wrote elsewhere; raise `DataError` if it differs after reading again.

        ``headers`` are what `read_to` returned.
        """
        expected = self._verifier.checksum(item, headers, md5=True)
        self._verifier.check(item, expected, content, read_again)

    def object_check(self, item: StoredObject) -> ObjectCheck:
        """Return the check of an object that is read in chunks."""

        def chunks() -> Iterator[Buffer]:
            for start in range(0, item.size, CHUNK_BYTES):
                yield self.read(item, start, min(start + CHUNK_BYTES, item.size))

        def ask() -> Checksum | None:
            return self._verifier.checksum(item, None, md5=self._verifies_md5(item))

        return ObjectCheck(item, self._verifier, ask, chunks)

    def _verifies_md5(self, item: StoredObject) -> bool:
        """Return whether a stream's bytes are worth an MD5: TLS already authenticates each record."""
        return not self._bucket(s3.parse_s3_uri(item.uri).bucket).is_encrypted

    def _headers(self, item: StoredObject) -> Mapping[str, str]:
        """Return the headers of HeadObject about an object's content."""
        wanted = _s3_object(item)
        bucket = self._bucket(wanted.location.bucket)
        if bucket.gets is not None and bucket.works:
            with suppress(UnexpectedAnswerError):
                return bucket.gets.head(wanted.location.key, total=item.size, etag=item.version)
        found, response = self._retry(lambda: self._s3.head(item.uri, checksum=True))
        if item.version not in ("", found.etag):
            raise s3.changed_object_error(wanted)
        headers: Mapping[str, str] = response["ResponseMetadata"]["HTTPHeaders"]
        return headers

    def read_to(self, target: Target, item: StoredObject, start: int) -> Mapping[str, str] | None:
        """Fill ``target`` with an object's bytes from ``start`` on; raise as `read` does.

        Return the headers about the content where the whole object was asked for and S3 answered.
        """
        wanted = _s3_object(item)
        done, headers = self._read_fast(wanted, target, start)
        if done < target.size:
            try:
                headers = self._resume(wanted, target, start, done) or headers
            except PlatformError as error:
                if (explained := _explained(wanted, error)) is error:
                    # An error that is its own cause is an endless chain.
                    raise
                raise explained from error
        return headers

    def _read_fast(self, item: s3.S3Object, target: Target, start: int) -> Answer:
        """Read over the fast path; return how many bytes came."""
        bucket = self._bucket(item.location.bucket)
        if bucket.gets is None or not (bucket.works or bucket.failures < FAILURES):
            return Answer(0, None)
        try:
            answer = bucket.gets.read(target, item.location.key, start, total=item.size, etag=item.etag)
        except UnexpectedAnswerError:
            bucket.failures += 1
            return Answer(0, None)
        bucket.works = True
        self._answered = True
        return answer

    def _resume(self, item: s3.S3Object, target: Target, start: int, done: int) -> Mapping[str, str] | None:
        """Read the rest through boto3, with retries; each attempt starts after the bytes that have come."""
        headers: Mapping[str, str] | None = None

        def keep_headers(found: Mapping[str, str]) -> None:
            nonlocal headers
            headers = found

        def read_rest() -> None:
            nonlocal done
            for chunk in self._s3.stream(item, start + done, start + target.size, keep_headers):
                if len(chunk) > target.size - done:
                    raise s3.changed_object_error(item)
                target.put(done, chunk)
                done += len(chunk)
            if done != target.size:
                raise DataError(
                    f"{item.location}: the connection to the S3 endpoint broke: it was closed after {done} of "
                    f"{target.size} bytes; retry, and check the network to it"
                ) from ConnectionResetError()

        self._retry(read_rest, lambda: done)
        return headers

    def _retry(self, action: Callable[[], _T], progress: Callable[[], int] = lambda: 0) -> _T:
        """Call ``action`` until it succeeds; raise its last error after a time without progress.

        The time is the constructor's ``retry_seconds``, `RETRY_SECONDS` by default, and at most `FIRST_RETRY_SECONDS`
        as long as S3 has not answered this store. Only transient errors are retried, with exponential backoff and
        jitter. ``progress`` returns the bytes that have come: when it grows, the time limit and the backoff start
        again. A thread whose result is not wanted any more stops retrying (`targets.reading_while`).
        """
        backoff, before, began = FIRST_BACKOFF, progress(), time.monotonic()
        attempts = 0
        while True:
            require_wanted()
            attempts += 1
            try:
                done = action()
            except PlatformError as error:
                if progress() != before:
                    backoff, before, began = FIRST_BACKOFF, progress(), time.monotonic()
                limit = self._retry_seconds if self._answered else min(self._retry_seconds, FIRST_RETRY_SECONDS)
                if not s3_errors.is_transient(error):
                    raise
                waited = time.monotonic() - began
                if waited + backoff > limit:
                    raise _after_retries(error, attempts, waited) from error.__cause__
                # Jitter: threads that were throttled together must not come back together.
                sleep_while_wanted(backoff * random.uniform(0.5, 1))  # noqa: S311 - no secret
                backoff = min(backoff * 2, LONGEST_BACKOFF)
            else:
                self._answered = True
                return done

    def _bucket(self, name: str) -> _Bucket:
        with self._opening:
            if name not in self._buckets:
                wire = self._s3.wire(name)
                gets = None if wire is None else SignedGets(wire, self._stall)
                self._buckets[name] = _Bucket(gets, self._s3.is_encrypted)
            return self._buckets[name]


def _s3_object(item: StoredObject) -> s3.S3Object:
    return s3.S3Object(s3.parse_s3_uri(item.uri), item.size, item.version)


def _after_retries(error: PlatformError, attempts: int, seconds: float) -> PlatformError:
    """Return an error that also has the number of attempts, and the seconds without progress."""
    if attempts == 1:
        return error
    return type(error)(f"{error} (tried {attempts} times, {seconds:.0f} s without progress)")


@dataclass
class _Bucket:
    """One bucket, and whether the fast path can read it."""

    gets: SignedGets | None
    #: Whether its connections use TLS.
    is_encrypted: bool
    works: bool = False
    failures: int = 0


def _explained(item: s3.S3Object, error: PlatformError) -> PlatformError:
    """Return what an error means for an object that existed when it was listed."""
    code = s3_errors.code_of(error)
    if code == "PreconditionFailed":
        return s3.changed_object_error(item)
    if isinstance(error, DataNotFoundError) and code != "NoSuchBucket":
        return DataNotFoundError(
            f"{item.location}: the object was deleted while the job read its channel; "
            "do not change a job's input until the job has ended"
        )
    return error
