"""List what a host gets of a channel: objects as files (`entries`), or pieces through a pipe (`pieces`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Callable, NamedTuple, TypeVar
from urllib.parse import unquote

from scriptmode._core.aws.s3_uris import parse_s3_uri
from scriptmode._core.text.messages import Problem
from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_local._data.object_store import ObjectStore, Piece, StoredObject, require_any, require_objects
from scriptmode_local._data.sharding import Shard, shard_records

if TYPE_CHECKING:
    from scriptmode_local._data.channel_source import ChannelSource

#: How many of the objects that a manifest names are looked up ahead of the consumer.
LOOKUP_WINDOW = 64

_Given = TypeVar("_Given")
_Record = TypeVar("_Record")


class Entry(NamedTuple):
    """An object of a channel and its path below the channel's directory."""

    stored: StoredObject
    name: str


def entries(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], *, epoch: int, host: int, count: int
) -> Iterator[Entry]:
    """Yield the objects that host ``host`` of ``count`` gets of an S3Prefix or a ManifestFile in an epoch.

    They are yielded while they are listed. ``store_of`` returns the store of a URI. Raises `DataError` and
    its subclasses, for a name that cannot be a path too.
    """
    shard = Shard(epoch, host, count, source.is_sharded, source.shuffle_seed)
    if source.data_type == "ManifestFile":
        prefix, named = _of_manifest(source, store_of, shard)
        for stored in named:
            yield Entry(stored, channel_name(_key_prefix(prefix, stored), _key(stored.uri)))
        return
    start = str(file_uris.file_path(source.uri)) if file_uris.is_file(source.uri) else _key(source.uri)
    for stored in _of_prefix(source, store_of, shard):
        yield Entry(stored, channel_name(start, _key(stored.uri)))


def pieces(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], *, epoch: int, host: int, count: int
) -> Iterator[Piece]:
    """Yield the pieces that a pipe sends to host ``host`` of ``count`` in an epoch; else as `entries`."""
    shard = Shard(epoch, host, count, source.is_sharded, source.shuffle_seed)
    if source.data_type == "AugmentedManifestFile":
        yield from _of_augmented_manifest(source, store_of, shard)
    elif source.data_type == "ManifestFile":
        _, named = _of_manifest(source, store_of, shard)
        yield from named
    else:
        yield from _of_prefix(source, store_of, shard)


def channel_name(prefix: str, key: str) -> str:
    """Return an object's path below its channel: its key after the prefix, at least the last component of the key.

    Where the prefix ends within a component (``data/part`` for ``data/part-1.csv``) that component is kept whole.
    """
    rest = key[len(prefix) :]
    if rest.startswith("/") and prefix:
        name = rest[1:]
    elif prefix.endswith("/") or not prefix:
        name = rest
    else:
        name = prefix.rpartition("/")[2] + rest
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise DataError(f"the key {key!r} cannot be a file's path", advice="rename the object")
    return name


def _of_prefix(source: ChannelSource, store_of: Callable[[str], ObjectStore], shard: Shard) -> Iterator[StoredObject]:
    objects = require_objects(source, store_of(source.uri))
    return shard_records(objects, shard)


def _of_manifest(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], shard: Shard
) -> tuple[str, Iterator[StoredObject]]:
    """Return the prefix of a manifest, and the objects that it names."""
    from scriptmode_local._data import manifests

    prefix, names = manifests.names(source.uri, store_of(source.uri))
    named = shard_records(require_any(names, source, Problem("the manifest names no object", "name one")), shard)
    is_slow = not file_uris.is_file(prefix)
    return prefix, _look_up(lambda name: _find(source, store_of, prefix + name), named, is_slow=is_slow)


def _of_augmented_manifest(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], shard: Shard
) -> Iterator[Piece]:
    from scriptmode_local._data import augmented_manifests, manifests

    names = source.attribute_names
    if not names:
        raise DataError(
            f"{source.uri}: the channel has no AttributeNames, which an augmented manifest needs", advice="add them"
        )
    numbered = require_any(
        manifests.lines(source.uri, store_of(source.uri)),
        source,
        Problem("the augmented manifest has no line", "write a line for each record"),
    )

    lines = shard_records(numbered, shard)
    has_references = any(name.endswith(augmented_manifests.REFERENCE) for name in names)
    pieces = _look_up(
        lambda line: augmented_manifests.line_pieces(source.uri, *line, names, store_of), lines, is_slow=has_references
    )
    return itertools.chain.from_iterable(pieces)


def _find(source: ChannelSource, store_of: Callable[[str], ObjectStore], uri: str) -> StoredObject:
    try:
        return store_of(uri).find(uri)
    except DataError as error:
        what = f"{source.uri}: it names {error.message}"
        raise type(error)(what, argument=error.argument, advice=error.advice) from error


def _look_up(look: Callable[[_Given], _Record], given: Iterable[_Given], *, is_slow: bool) -> Iterator[_Record]:
    # A file is found sooner than a thread is started.
    if not is_slow:
        return map(look, given)
    from scriptmode_local._data.prefetch import ordered_prefetch

    return ordered_prefetch(iter(given), look, budget=LOOKUP_WINDOW)


def _key_prefix(prefix: str, stored: StoredObject) -> str:
    """Return a manifest's prefix as the key of an object below it begins."""
    if not file_uris.is_file(prefix):
        return _key(prefix)
    # Only the whole URI shows whether it is percent-encoded (`file_uris.file_path`), not its prefix.
    rest = prefix[len(file_uris.SCHEME) :]
    rest = rest[rest.find("/") :]
    written, decoded = str(Path(rest)), str(Path(unquote(rest)))
    return written if _key(stored.uri).startswith(written) else decoded


def _key(uri: str) -> str:
    """Return an object's key, or a file's path, as the URI has it."""
    return uri[len(file_uris.SCHEME) :] if file_uris.is_file(uri) else parse_s3_uri(uri).key
