"""Whether the bytes that came are the object's: by S3's checksums, else by an ETag that is an MD5.

Independent of the HTTP client: it is given response headers and bytes. What is compared, the cheapest first:

* The checksum of the whole object that S3 keeps (Checking object integrity, S3 user guide). S3 returns it where a whole
  object is asked for. One that was composed of its parts' checksums ("-3" at its end) cannot be compared.
* The ETag of an object that was stored in one part is its content's MD5, unless it is encrypted with a key of KMS or
  of the client's; then it looks the same (Object, S3 API). Some stores that are not S3 write other ETags.

Of parts of an object alone nothing can be compared; their ranges, lengths and ETags are checked where they are read.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Callable, NamedTuple, Protocol, runtime_checkable

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from scriptmode.data.object_store import Buffer, StoredObject

    #: Continues a CRC with more bytes.
    CrcFunction = Callable[[Buffer, int], int]

#: S3's algorithms, the cheapest first: 18 GB/s for the first two with awscrt, 1.0 to 1.7 GB/s for the others, one core.
ALGORITHMS = ("crc64nvme", "crc32c", "crc32", "sha1", "sha256")
MD5 = "md5"
_CRC_BYTES = {"crc64nvme": 8, "crc32c": 4, "crc32": 4}
_MD5_ETAG = re.compile(r'"([0-9a-f]{32})"')


class Checksum(NamedTuple):
    """The checksum of a whole object."""

    algorithm: str
    #: As the response says it: base64, an MD5 in hexadecimal digits.
    value: str


class Digest(Protocol):
    """Computes a checksum of bytes that come in order."""

    def update(self, data: Buffer, /) -> None:
        """Take more bytes."""

    def value(self) -> str:
        """Return the checksum so far, written as `Checksum.value`."""


class _Crc:
    def __init__(self, function: CrcFunction, size: int) -> None:
        self._function = function
        self._size = size
        self._crc = 0

    def update(self, data: Buffer, /) -> None:
        self._crc = self._function(data, self._crc)

    def value(self) -> str:
        return base64.b64encode(self._crc.to_bytes(self._size, "big")).decode()


class _Hash:
    def __init__(self, algorithm: str) -> None:
        self._algorithm = algorithm
        # Damaged bytes are told from whole ones; no secret depends on it.
        self._hash = hashlib.new(algorithm, usedforsecurity=False)

    def update(self, data: Buffer, /) -> None:
        self._hash.update(data)

    def value(self) -> str:
        return self._hash.hexdigest() if self._algorithm == MD5 else base64.b64encode(self._hash.digest()).decode()


@cache
def _crc_function(algorithm: str) -> CrcFunction | None:
    """Return what computes a CRC; ``None`` where it is not installed."""
    if algorithm == "crc32":
        return zlib.crc32
    try:
        # The standard library has no other CRC, and Python is too slow for one.
        from awscrt import checksums
    except ImportError:
        return None
    function: CrcFunction | None = getattr(checksums, algorithm, None)
    return function


def digest(algorithm: str) -> Digest:
    """Return a new digest of an algorithm that `checksum` named."""
    function = _crc_function(algorithm) if algorithm in _CRC_BYTES else None
    return _Hash(algorithm) if function is None else _Crc(function, _CRC_BYTES[algorithm])


def digest_of(algorithm: str, content: Iterable[Buffer]) -> str:
    """Return the checksum of bytes that come in order."""
    computed = digest(algorithm)
    for data in content:
        computed.update(data)
    return computed.value()


def checksum(headers: Mapping[str, str], etag: str) -> Checksum | None:
    """Return what an object's bytes can be compared with, ``None`` where there is nothing.

    ``headers`` are those of a response for the whole object, their names in lower case.
    """
    for algorithm in ALGORITHMS:
        value = headers.get(f"x-amz-checksum-{algorithm}", "")
        if value and "-" not in value and (algorithm not in _CRC_BYTES or _crc_function(algorithm)):
            return Checksum(algorithm, value)
    has_own_key = "x-amz-server-side-encryption-customer-algorithm" in headers
    is_encrypted = has_own_key or headers.get("x-amz-server-side-encryption", "").startswith("aws:kms")
    simple = _MD5_ETAG.fullmatch(etag)
    return None if simple is None or is_encrypted else Checksum(MD5, simple[1])


class Verifier:
    """Compares what one store's objects are read as; safe to share between threads.

    ``ask`` returns the headers of a response about an object (HeadObject).
    """

    def __init__(self, ask: Callable[[StoredObject], Mapping[str, str]]) -> None:
        self._ask = ask
        #: An object's ETag was its MD5 once; or it was not though the same bytes came twice.
        self._are_md5s = False
        self._are_others = False

    def checksum(self, item: StoredObject, headers: Mapping[str, str] | None, *, md5: bool) -> Checksum | None:
        """Return what an object can be compared with; where no response told of the whole, the store is asked.

        ``md5`` says whether an ETag is worth its MD5, which costs 1.6 s of CPU for a GB.
        """
        found = checksum(self._ask(item) if headers is None else headers, item.version)
        if found is not None and found.algorithm == MD5 and (self._are_others or not md5):
            return None
        return found

    def check(
        self,
        item: StoredObject,
        expected: Checksum | None,
        content: Callable[[], Iterable[Buffer]],
        read_again: Callable[[], object],
    ) -> None:
        """Raise `DataError` unless ``content`` is the object's; where it is not, ``read_again`` once."""
        if expected is None or self._matches(expected, first := digest_of(expected.algorithm, content())):
            return
        read_again()
        second = digest_of(expected.algorithm, content())
        if not self._matches(expected, second) and not self._is_no_md5(expected, first, second):
            raise _damaged(item, expected, second, ", twice")

    def require_end(
        self, item: StoredObject, expected: Checksum, found: str, content: Callable[[], Iterable[Buffer]]
    ) -> None:
        """Raise `DataError` where ``found``, of bytes that were handed on, is not what was expected."""
        if self._matches(expected, found):
            return
        # Where MD5s were seen, or the checksum is none, there is no doubt.
        doubtful = expected.algorithm == MD5 and not self._are_md5s
        if not doubtful or not self._is_no_md5(expected, found, digest_of(MD5, content())):
            raise _damaged(item, expected, found, "")

    def _matches(self, expected: Checksum, found: str) -> bool:
        if found != expected.value:
            return False
        self._are_md5s = self._are_md5s or expected.algorithm == MD5
        return True

    def _is_no_md5(self, expected: Checksum, first: str, second: str) -> bool:
        """Return whether the same bytes came twice, and no ETag of this store was an MD5 yet: it is something else."""
        if expected.algorithm != MD5 or first != second or self._are_md5s:
            return False
        self._are_others = True
        return True


class ObjectCheck:
    """Compares an object that is read in parts from its beginning to its end, which may come in any order.

    Each thread that brings a part takes it into the digest, with those after it that came before. A part is kept until
    all before it are there. ``ask`` returns the checksum, ``content`` reads the object once more.
    """

    def __init__(
        self,
        item: StoredObject,
        verifier: Verifier,
        ask: Callable[[], Checksum | None],
        content: Callable[[], Iterable[Buffer]],
    ) -> None:
        self._item = item
        self._verifier = verifier
        self._ask = ask
        self._content = content
        self._taking = Lock()
        self._expected: Checksum | None = None
        self._digest: Digest | None = None
        self._offset = 0
        self._kept: dict[int, Buffer] = {}
        self._ended = False
        #: Why the object is not what S3 has, once that is known.
        self.error: DataError | None = None

    def add(self, start: int, data: Buffer) -> None:
        """Take a part; raise `DataError` when it was the last that lacked and the object is not what S3 has."""
        with self._taking:
            if self._ended:
                return
            if self._expected is None:
                self._expected = self._ask()
                if self._expected is None:
                    self._ended = True
                    return
                self._digest = digest(self._expected.algorithm)
            self._kept[start] = data
            self._advance(self._expected)

    def stop(self) -> None:
        """Compare nothing: not all of the object will be read. Never waits."""
        self._ended = True
        self._kept.clear()

    def _advance(self, expected: Checksum) -> None:
        while self._digest is not None and (data := self._kept.pop(self._offset, None)) is not None:
            self._digest.update(data)
            self._offset += len(data)
        if self._digest is not None and self._offset == self._item.size:
            self._ended = True
            try:
                self._verifier.require_end(self._item, expected, self._digest.value(), self._content)
            except DataError as error:
                self.error = error
                raise


@runtime_checkable
class Verifying(Protocol):
    """A store whose objects have checksums."""

    def object_check(self, item: StoredObject) -> ObjectCheck:
        """Return what compares an object that is read in parts."""


def _damaged(item: StoredObject, expected: Checksum, found: str, how_often: str) -> DataError:
    name = expected.algorithm.upper()
    said = f"the ETag is {item.version}" if expected.algorithm == MD5 else f"S3 has {expected.value}"
    return DataError(
        f"{item.uri}: the bytes that came are not the object's: their {name} is {found} where {said}{how_often}; "
        "start the job again, and store the object anew if it happens again"
    )
