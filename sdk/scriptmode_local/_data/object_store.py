"""The `ObjectStore` protocol, and the values of the data path: stored objects, pieces of a stream, chunks. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, Union

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A larger object is read in chunks of this size, several at a time.
CHUNK_BYTES = 8 * 1024 * 1024

#: Bytes that are passed on without a copy.
Buffer = Union[bytes, bytearray, memoryview]


class StoredObject(NamedTuple):
    """One object as it was when it was listed."""

    #: ``s3://bucket/key`` or ``file:///path``, as it is written and never percent-encoded.
    uri: str
    #: Bytes.
    size: int
    #: Changes with the content: an ETag, or a file's identity; "" where the store has none.
    version: str = ""


class Literal(NamedTuple):
    """A piece whose bytes are known already: an attribute's JSON text; ``uri`` is that of its manifest."""

    data: bytes
    uri: str = ""


#: A pipe sends pieces one after another; RecordIO wraps each.
Piece = Union[StoredObject, Literal]


class Chunk(NamedTuple):
    """Consecutive bytes of a piece; an empty piece is one empty chunk."""

    data: Buffer
    #: Whether the piece ends with it.
    ends: bool
    #: The URI of its piece, for messages.
    uri: str


class ObjectStore(Protocol):
    """A store of objects. Safe to share between threads; raises only `scriptmode.errors.DataError` and its kinds."""

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        """Yield each object whose URI has the prefix, in the order of the UTF-8 bytes of keys; no folder markers."""

    def find(self, uri: str) -> StoredObject:
        """Return the object of exactly that URI; raise `DataNotFoundError`."""

    def read(self, item: StoredObject, start: int, end: int) -> Sequence[Buffer]:
        """Return all bytes from ``start`` up to ``end``, in buffers; raise `DataError` where the object was changed."""
