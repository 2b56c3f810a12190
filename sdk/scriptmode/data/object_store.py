"""What the rooms of the data path hand to each other: stored objects, pieces of a stream, chunks of bytes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Union

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A larger object is read in parts of this size, several at a time.
CHUNK_BYTES = 8 * 1024 * 1024

#: What is read without being copied.
Buffer = Union[bytes, bytearray, memoryview]


class StoredObject(NamedTuple):
    """One object as it was when it was listed."""

    #: ``s3://bucket/key`` or ``file:///path``, as it is written and never percent-encoded.
    uri: str
    #: Bytes.
    size: int
    #: What changes when the content changes: an ETag, or a file's identity; "" where the store tells none.
    version: str = ""


class Literal(NamedTuple):
    """A piece whose bytes are known already: an attribute's JSON text; ``uri`` is the manifest it stands in."""

    data: bytes
    uri: str = ""


#: What a pipe sends one after another; RecordIO wraps each of them.
Piece = Union[StoredObject, Literal]


class Chunk(NamedTuple):
    """Consecutive bytes of a piece; an empty piece is one empty chunk."""

    data: Buffer
    #: Whether the piece ends with it.
    ends: bool
    #: The piece it is of, for messages.
    uri: str


class ObjectStore(Protocol):
    """Where objects lie. Safe to share between threads; raises only `scriptmode.errors.DataError` and its kinds."""

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield every object whose URI begins so, in the order of its key's UTF-8 bytes; never a folder's mark."""

    def find(self, uri: str) -> StoredObject:
        """Give the object of exactly that URI; raise `DataNotFoundError`."""

    def read(self, item: StoredObject, start: int, end: int) -> Buffer:
        """Give all bytes from ``start`` up to ``end``; raise `DataError` when the object is another by now."""
