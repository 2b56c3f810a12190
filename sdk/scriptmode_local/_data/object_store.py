"""The `ObjectStore` protocol, and values: stored objects, pieces of a stream, chunks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, Union

from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataNotFoundError
from scriptmode_local._data import file_uris

if TYPE_CHECKING:
    from scriptmode_local._data.channel_source import ChannelSource

_Record = TypeVar("_Record")

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


def require_data(source: ChannelSource, store: ObjectStore) -> None:
    """Raise `DataError` unless a prefix has an object, or the manifest exists; reads no content."""
    if source.data_type == "S3Prefix":
        next(require_objects(source, store))
    else:
        store.find(source.uri)


def require_objects(source: ChannelSource, store: ObjectStore) -> Iterator[StoredObject]:
    """Yield the objects of a prefix; raise `DataNotFoundError` if there are none."""
    why = Problem("no object's key begins with it", "upload the data, or correct the URI")
    if file_uris.is_file(source.uri):
        why = Problem("there is nothing in it", "put files into it, or name another directory")
    return require_any(store.objects(source.uri), source, why)


def require_any(records: Iterable[_Record], source: ChannelSource, why: Problem) -> Iterator[_Record]:
    """Yield the records; raise `DataNotFoundError` if there are none."""
    rest = iter(records)
    for first in rest:
        yield first
        break
    else:
        raise DataNotFoundError(f"{source.uri}: {why.text}", advice=why.advice)
    yield from rest
