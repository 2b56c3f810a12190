"""Verify that the downloaded bytes are the object's: by S3's checksums, else by an ETag that is an MD5.

Independent of the HTTP client: it gets response headers and bytes. What is compared, the cheapest first:

* The checksum of the whole object that S3 keeps (Checking object integrity, S3 user guide). It costs a request. A
  composite one, of its parts' checksums ("-3" at its end), cannot be compared.
* The ETag of an object that was stored in one part is its content's MD5, unless it is encrypted with a key of KMS or
  of the client's; then it looks the same (Object, S3 API), and HeadObject names the encryption. An ETag of that form
  that differs from the bytes is damage in every other case. Of an object of at most `MOST_MD5_BYTES` it is compared
  first.

TLS authenticates each record: a stream over it is compared with no MD5, and one of small objects not at all.

A range of an object alone cannot be verified; its length and ETag are checked where it is read.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Callable, NamedTuple, Protocol, runtime_checkable

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from scriptmode._core.aws.s3_body import Body
    from scriptmode_local._data.object_store import Buffer, StoredObject

    #: Continues a CRC with more bytes.
    CrcFunction = Callable[[Buffer, int], int]

#: S3's algorithms, the cheapest first: 18 GB/s for the first two with awscrt, 1.0 to 1.7 GB/s for the others, one core.
ALGORITHMS = ("crc64nvme", "crc32c", "crc32", "sha1", "sha256")
MD5 = "md5"
#: An MD5 of this size takes as long as a HeadObject: 1.6 s of CPU for a GB, 1.5 ms for the request.
MOST_MD5_BYTES = 1024 * 1024
_CRC_BYTES = {"crc64nvme": 8, "crc32c": 4, "crc32": 4}
_MD5_ETAG = re.compile(r'"([0-9a-f]{32})"')


class Checksum(NamedTuple):
    """The checksum of a whole object."""

    algorithm: str
    #: As in the response: base64, an MD5 in hexadecimal digits.
    value: str


class Digest:
    """Computes a checksum of bytes that come in order, by an algorithm that `checksum` named."""

    def __init__(self, algorithm: str) -> None:
        import hashlib

        self._algorithm = algorithm
        self._crc_function = _crc_function(algorithm)
        self._crc = 0
        # Detects damage; no secret depends on it.
        self._hash = None if self._crc_function else hashlib.new(algorithm, usedforsecurity=False)

    def update(self, data: Buffer) -> None:
        """Add more bytes."""
        if self._hash is not None:
            self._hash.update(data)
        elif self._crc_function is not None:
            self._crc = self._crc_function(data, self._crc)

    def value(self) -> str:
        """Return the checksum so far, written as `Checksum.value`."""
        if self._hash is None:
            digest = self._crc.to_bytes(_CRC_BYTES[self._algorithm], "big")
        elif self._algorithm == MD5:
            return self._hash.hexdigest()
        else:
            digest = self._hash.digest()
        return binascii.b2a_base64(digest, newline=False).decode()


@cache
def _crc_function(algorithm: str) -> CrcFunction | None:
    """Return the function of a CRC; ``None`` where it is not installed, and for hashes."""
    if algorithm == "crc32":
        return zlib.crc32
    if algorithm not in _CRC_BYTES:
        return None
    try:
        # The standard library has no other CRC, and Python is too slow for one.
        from awscrt import checksums
    except ImportError:
        return None
    function: CrcFunction | None = getattr(checksums, algorithm, None)
    return function


def digest_of(algorithm: str, content: Iterable[Buffer]) -> str:
    """Return the checksum of bytes that come in order."""
    computed = Digest(algorithm)
    for data in content:
        computed.update(data)
    return computed.value()


def checksum(headers: Mapping[str, str], etag: str) -> Checksum | None:
    """Return the checksum of an object, ``None`` where its response has none that can be compared.

    ``headers`` are those of a response for the whole object, their names in lower case.
    """
    for algorithm in ALGORITHMS:
        value = headers.get(f"x-amz-checksum-{algorithm}", "")
        if value and "-" not in value and (algorithm not in _CRC_BYTES or _crc_function(algorithm)):
            return Checksum(algorithm, value)
    simple = _MD5_ETAG.fullmatch(etag)
    return None if simple is None or _is_encrypted(headers) else Checksum(MD5, simple[1])


def _is_encrypted(headers: Mapping[str, str]) -> bool:
    """Return whether an object's ETag is not an MD5 because of its encryption (Object, S3 API)."""
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    return has_own_key or headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")


class Verifier:
    """The comparison of one store's objects with their checksums; safe to share between threads.

    ``head`` returns the headers of a response about an object (HeadObject).
    """

    def __init__(self, head: Callable[[StoredObject], Mapping[str, str]]) -> None:
        self._head = head
        #: Whether HeadObject called an object encrypted: it is asked first then, for the ETags look like MD5s.
        self._has_encrypted = False

    def checksum(self, item: StoredObject, *, thorough: bool) -> Checksum | None:
        """Return the checksum of an object; the store is asked for it unless an MD5 costs less.

        ``thorough``: whether an MD5, and that request of an object of at most `MOST_MD5_BYTES`, are worth their cost.
        """
        by_etag = checksum({}, item.version)
        if item.size <= MOST_MD5_BYTES:
            if not thorough:
                return None
            if by_etag is not None and not self._has_encrypted:
                return by_etag
        stored = self._stored_checksum(item)
        return None if stored is not None and stored.algorithm == MD5 and not thorough else stored

    def check(
        self,
        item: StoredObject,
        expected: Checksum | None,
        content: Callable[[], Iterable[Buffer]],
        read_again: Callable[[], object],
    ) -> None:
        """Raise `DataError` unless ``content`` has the checksum; ``read_again`` is called once before."""
        if expected is None:
            return
        if digest_of(expected.algorithm, content()) != expected.value:
            stored = self._stored_checksum(item) if expected.algorithm == MD5 else expected
            if stored != expected:
                self.check(item, stored, content, read_again)
                return
            read_again()
            if (second := digest_of(expected.algorithm, content())) != expected.value:
                raise _damaged(item, expected, second, ", twice")

    def require_end(
        self, item: StoredObject, expected: Checksum, digest: str, content: Callable[[], Iterable[Buffer]]
    ) -> None:
        """Raise `DataError` where ``digest``, of bytes that were passed on already, is not the expected value.

        ``content`` reads the object once more: where it has another checksum than its ETag, these bytes must have it,
        and be those that were passed on.
        """
        if digest == expected.value:
            return
        stored = self._stored_checksum(item) if expected.algorithm == MD5 else expected
        if stored is None:
            return
        if stored == expected:
            raise _damaged(item, expected, digest, "")
        passed_on, compared = Digest(expected.algorithm), Digest(stored.algorithm)
        for data in content():
            passed_on.update(data)
            compared.update(data)
        if (passed_on.value(), compared.value()) != (digest, stored.value):
            raise _damaged(item, stored, compared.value(), "")

    def _stored_checksum(self, item: StoredObject) -> Checksum | None:
        """Return the checksum that HeadObject gives; None for an encrypted object without one."""
        headers = self._head(item)
        self._has_encrypted = self._has_encrypted or _is_encrypted(headers)
        return checksum(headers, item.version)


@dataclass(eq=False)
class ObjectCheck:
    """The comparison of an object that is read in chunks, which may come in any order.

    A chunk is kept until all before it have come. The thread that adds the next one adds it to the digest, with the
    kept ones after it. ``ask`` returns the checksum, ``content`` reads the object once more.
    """

    item: StoredObject
    verifier: Verifier
    ask: Callable[[], Checksum | None]
    content: Callable[[], Iterable[Buffer]]
    #: Set where the object differs from its checksum.
    error: DataError | None = None
    _adding: Lock = field(default_factory=Lock, init=False)
    _expected: Checksum | None = field(default=None, init=False)
    _digest: Digest | None = field(default=None, init=False)
    _offset: int = field(default=0, init=False)
    _kept: dict[int, Sequence[Buffer]] = field(default_factory=dict, init=False)
    _ended: bool = field(default=False, init=False)

    def add(self, start: int, data: Sequence[Buffer]) -> None:
        """Add the buffers of a chunk; raise `DataError` where it completes the object and the checksum differs."""
        with self._adding:
            if (expected := self._wanted()) is not None:
                self._kept[start] = data
                self._advance(expected)

    def is_needed(self) -> bool:
        """Return whether more bytes are compared; the store is asked for the checksum at first."""
        with self._adding:
            return self._wanted() is not None

    def stop(self) -> None:
        """Stop comparing: not all of the object will be read. Never waits."""
        self._ended = True
        self._kept.clear()

    def _wanted(self) -> Checksum | None:
        if self._expected is None and not self._ended:
            self._expected = self.ask()
            self._ended = self._expected is None
            self._digest = Digest(self._expected.algorithm) if self._expected else None
        return None if self._ended else self._expected

    def _advance(self, expected: Checksum) -> None:
        while self._digest is not None and (data := self._kept.pop(self._offset, None)) is not None:
            for buffer in data:
                self._digest.update(buffer)
                self._offset += len(buffer)
        if self._digest is not None and self._offset == self.item.size:
            self._ended = True
            try:
                self.verifier.require_end(self.item, expected, self._digest.value(), self.content)
            except DataError as error:
                self.error = error
                raise


@runtime_checkable
class Verifying(Protocol):
    """A store whose objects have checksums."""

    def object_check(self, item: StoredObject) -> ObjectCheck:
        """Return the check of an object that is read in chunks."""

    def open(self, item: StoredObject, start: int, end: int, waiting: Callable[[], None]) -> Body | None:
        """Return bytes of an object as they come, unverified; None where `ObjectStore.read` must read them."""


def _damaged(item: StoredObject, expected: Checksum, digest: str, times: str) -> DataError:
    name = expected.algorithm.upper()
    declared = f"the ETag is {item.version}" if expected.algorithm == MD5 else f"S3 has {expected.value}"
    return DataError(
        f"{item.uri}: the downloaded bytes are not the object's: their {name} is {digest}, but {declared}{times}",
        advice="start the job again, and upload the object again if that fails too",
    )
