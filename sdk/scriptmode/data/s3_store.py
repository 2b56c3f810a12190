"""Amazon S3 as a store of objects: read by `SignedGets` as long as all is well, and by boto3 where it is not.

boto3 knows the settings and the reasons but takes 1,500 microseconds of CPU for a GET: what fails the fast way, or
cannot go it, boto3 reads; it tells the cause, or goes on where the connection broke.
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
#: Seconds that something is tried again for without any progress; less before S3 has ever answered.
PATIENCE = 60.0
FIRST_PATIENCE = 10.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
#: So often the fast way may fail before it ever worked; then it is taken no more.
FAILURES = 8

_T = TypeVar("_T")


class S3Store:
    """An `ObjectStore` of the objects of S3, or of any endpoint that boto3's standard settings name."""

    def __init__(self, *, patience: float = PATIENCE, stall: float = STALL) -> None:
        settings = {
            "connect_timeout": CONNECT_SECONDS,
            "read_timeout": stall,
            "max_pool_connections": 64,
            # Repeating is done here, where it is known what has come already.
            "retries": {"total_max_attempts": 1},
        }
        self._s3 = s3.S3(settings=settings)
        self._buckets: dict[str, _Bucket] = {}
        self._opening = Lock()
        self._buffers = Buffers()
        self._patience = patience
        self._stall = stall
        self._answered = False
        self._verifier = Verifier(self._headers)

    def prepare(self, uri: str) -> None:
        """Load the clients and find the credentials for a bucket; nothing is connected."""
        self._bucket(s3.parse(uri).bucket)

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object whose key begins with the URI's, in the order of keys, a page in memory at a time."""
        after: str | None = None
        while after != "":
            found, after = self._patiently(partial(self._s3.page, prefix, after=after or ""))
            for item in found:
                # Such a key is what consoles make of a folder: it has no content.
                if not item.location.key.endswith("/"):
                    yield StoredObject(str(item.location), item.size, item.etag)

    def find(self, uri: str) -> StoredObject:
        """Give the object of exactly that key; raise `DataNotFoundError`."""
        found, _ = self._patiently(lambda: self._s3.head(uri))
        return StoredObject(uri, found.size, found.etag)

    def read(self, item: StoredObject, start: int, end: int) -> Buffer:
        """Return all bytes from ``start`` up to ``end``; raise `DataError` when the object is another by now.

        Where that is the whole object, its checksum is compared; it is read once more if it differs.
        """
        content = self._buffers.of(end - start)
        headers = self.read_to(Memory(content), item, start)
        if (start, end) == (0, item.size):
            expected = self._verifier.checksum(item, headers, md5=self._compares_md5(item))
            again = partial(self.read_to, Memory(content), item, start)
            self._verifier.check(item, expected, lambda: (content,), again)
        return content

    def check(
        self,
        item: StoredObject,
        headers: Mapping[str, str] | None,
        content: Callable[[], Iterable[Buffer]],
        read_again: Callable[[], object],
    ) -> None:
        """Compare a whole object that `read_to` wrote elsewhere; raise `DataError` if it differs after reading again.

        ``headers`` are what `read_to` returned.
        """
        expected = self._verifier.checksum(item, headers, md5=True)
        self._verifier.check(item, expected, content, read_again)

    def object_check(self, item: StoredObject) -> ObjectCheck:
        """Return what compares an object that is read in parts."""

        def parts() -> Iterator[Buffer]:
            for start in range(0, item.size, CHUNK_BYTES):
                yield self.read(item, start, min(start + CHUNK_BYTES, item.size))

        def ask() -> Checksum | None:
            return self._verifier.checksum(item, None, md5=self._compares_md5(item))

        return ObjectCheck(item, self._verifier, ask, parts)

    def _compares_md5(self, item: StoredObject) -> bool:
        """Return whether a stream's bytes are worth an MD5: over TLS each record is authenticated on its way."""
        return not self._bucket(s3.parse(item.uri).bucket).is_encrypted

    def _headers(self, item: StoredObject) -> Mapping[str, str]:
        """Return what HeadObject tells of an object's content."""
        asked = _asked(item)
        bucket = self._bucket(asked.location.bucket)
        if bucket.gets is not None and bucket.works:
            with suppress(UnexpectedAnswerError):
                return bucket.gets.head(asked.location.key, total=item.size, etag=item.version)
        found, told = self._patiently(lambda: self._s3.head(item.uri, checksum=True))
        if item.version not in ("", found.etag):
            raise s3.changed(asked)
        headers: Mapping[str, str] = told["ResponseMetadata"]["HTTPHeaders"]
        return headers

    def read_to(self, target: Target, item: StoredObject, start: int) -> Mapping[str, str] | None:
        """Fill ``target`` with an object's bytes from ``start`` on; raise as `read` does.

        Return the headers that tell of the content where the whole object was asked for and S3 answered.
        """
        asked = _asked(item)
        done, headers = self._fetched(asked, target, start)
        if done < target.size:
            try:
                headers = self._resume(asked, target, start, done) or headers
            except PlatformError as error:
                if (told := _told(asked, error)) is error:
                    # An error that is its own cause is a chain without an end.
                    raise
                raise told from error
        return headers

    def _fetched(self, item: s3.S3Object, target: Target, start: int) -> Answer:
        """Read the fast way."""
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
        """Read the rest through boto3; where the connection breaks again, what has come stays."""
        headers: Mapping[str, str] | None = None

        def tell(found: Mapping[str, str]) -> None:
            nonlocal headers
            headers = found

        def advance() -> None:
            nonlocal done
            for chunk in self._s3.stream(item, start + done, start + target.size, tell):
                if len(chunk) > target.size - done:
                    raise s3.changed(item)
                target.put(done, chunk)
                done += len(chunk)
            if done != target.size:
                raise DataError(
                    f"{item.location}: the connection to the S3 endpoint broke: it was closed after {done} of "
                    f"{target.size} bytes; retry, and check the network to it"
                ) from ConnectionResetError()

        self._patiently(advance, lambda: done)
        return headers

    def _patiently(self, action: Callable[[], _T], progress: Callable[[], int] = lambda: 0) -> _T:
        """Retry while what fails may pass; raise the last error after some time without progress.

        A thread whose result is not wanted any more stops to retry (`targets.reading_while`).
        """
        pause, before, began = FIRST_PAUSE, progress(), time.monotonic()
        attempts = 0
        while True:
            require_wanted()
            attempts += 1
            try:
                done = action()
            except PlatformError as error:
                if progress() != before:
                    pause, before, began = FIRST_PAUSE, progress(), time.monotonic()
                patience = self._patience if self._answered else min(self._patience, FIRST_PATIENCE)
                if not s3_errors.is_transient(error):
                    raise
                waited = time.monotonic() - began
                if waited + pause > patience:
                    raise _after_retries(error, attempts, waited) from error.__cause__
                # Jitter: many threads that were throttled at once do not come back at once.
                sleep_while_wanted(pause * random.uniform(0.5, 1))  # noqa: S311 - no secret
                pause = min(pause * 2, LONGEST_PAUSE)
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


def _asked(item: StoredObject) -> s3.S3Object:
    return s3.S3Object(s3.parse(item.uri), item.size, item.version)


def _after_retries(error: PlatformError, attempts: int, seconds: float) -> PlatformError:
    """Return an error that also tells how often and how long was retried without progress."""
    if attempts == 1:
        return error
    return type(error)(f"{error} (tried {attempts} times, {seconds:.0f} s without progress)")


@dataclass
class _Bucket:
    """One bucket, and whether it can be read the fast way."""

    gets: SignedGets | None
    #: Whether the connection to it is TLS.
    is_encrypted: bool
    works: bool = False
    failures: int = 0


def _told(item: s3.S3Object, error: PlatformError) -> PlatformError:
    """Say what an error means for an object that was there when it was listed."""
    code = s3_errors.code_of(error)
    if code == "PreconditionFailed":
        return s3.changed(item)
    if isinstance(error, DataNotFoundError) and code != "NoSuchBucket":
        return DataNotFoundError(
            f"{item.location}: the object was deleted while the job read its channel; "
            "let nothing change a job's input until the job has ended"
        )
    return error
