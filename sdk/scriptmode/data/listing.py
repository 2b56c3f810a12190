"""What a channel's URI stands for: the objects a host gets as files, and the pieces it gets through a pipe."""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, TypeVar
from urllib.parse import unquote

from scriptmode.aws import s3
from scriptmode.data import augmented_manifests, file_uris, manifests
from scriptmode.data.object_store import StoredObject
from scriptmode.data.sharding import Shard, shard_records
from scriptmode.data.targets import reading_while
from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from scriptmode.data.channel_source import ChannelSource
    from scriptmode.data.object_store import ObjectStore, Piece

#: Objects that a manifest names are looked up by so many threads, and so many ahead of the reader.
LOOKING = 16
AHEAD = 64

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")


class Entry(NamedTuple):
    """An object of a channel and its path below the channel's folder."""

    stored: StoredObject
    name: str


def entries(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], *, epoch: int, host: int, count: int, spool: Path
) -> Iterator[Entry]:
    """Yield what the host ``host`` of ``count`` gets of an S3Prefix or a ManifestFile in an epoch, as it is listed.

    ``store_of`` gives the store of a URI; ``spool`` is a folder that takes what is to be shuffled. Raises `DataError`
    and its kinds, for a name that is no path too.
    """
    deal = Shard(epoch, host, count, source.is_sharded, source.shuffle_seed, spool)
    if source.data_type == "ManifestFile":
        yield from _of_manifest(source, store_of, deal)
        return
    start = str(file_uris.file_path(source.uri)) if file_uris.is_file(source.uri) else _key(source.uri)
    for stored in _of_prefix(source, store_of, deal):
        yield Entry(stored, channel_name(start, _key(stored.uri)))


def pieces(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], *, epoch: int, host: int, count: int, spool: Path
) -> Iterator[Piece]:
    """Yield what a pipe sends to the host ``host`` of ``count`` in an epoch, as it is listed; else as `entries`."""
    deal = Shard(epoch, host, count, source.is_sharded, source.shuffle_seed, spool)
    if source.data_type == "AugmentedManifestFile":
        yield from _of_augmented_manifest(source, store_of, deal)
    elif source.data_type == "ManifestFile":
        prefix, found = _named(source, store_of, deal)
        yield from _looked_up(lambda name: _find(source, store_of, prefix + name), found, prefix)
    else:
        yield from _of_prefix(source, store_of, deal)


def channel_name(prefix: str, key: str) -> str:
    """Give an object's path below its channel: its key after the prefix, and never less than the key's last part.

    Where the prefix ends within a name (``data/part`` for ``data/part-1.csv``) that name is kept whole.
    """
    rest = key[len(prefix) :]
    if rest.startswith("/") and prefix:
        name = rest[1:]
    elif prefix.endswith("/") or not prefix:
        name = rest
    else:
        name = prefix.rpartition("/")[2] + rest
    if any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name:
        raise DataError(f"the key {key!r} cannot be a file's path; rename the object")
    return name


def _of_prefix(source: ChannelSource, store_of: Callable[[str], ObjectStore], deal: Shard) -> Iterator[StoredObject]:
    why = "there is nothing in it" if file_uris.is_file(source.uri) else "no object's key begins with it"
    found = _some(store_of(source.uri).objects(source.uri), source, why)
    return map(StoredObject._make, shard_records(found, deal))


def _of_manifest(source: ChannelSource, store_of: Callable[[str], ObjectStore], deal: Shard) -> Iterator[Entry]:
    prefix, found = _named(source, store_of, deal)

    def entry(name: str) -> Entry:
        stored = _find(source, store_of, prefix + name)
        return Entry(stored, channel_name(_start(prefix, stored), _key(stored.uri)))

    return _looked_up(entry, found, prefix)


def _named(source: ChannelSource, store_of: Callable[[str], ObjectStore], deal: Shard) -> tuple[str, Iterator[str]]:
    prefix, found = manifests.names(source.uri, store_of(source.uri))
    return prefix, shard_records(_some(found, source, "the manifest names no object"), deal)


def _of_augmented_manifest(
    source: ChannelSource, store_of: Callable[[str], ObjectStore], deal: Shard
) -> Iterator[Piece]:
    names = source.attribute_names
    if not names:
        raise DataError(f"{source.uri}: nothing of the augmented manifest is asked for; give AttributeNames")
    found = _some(manifests.lines(source.uri, store_of(source.uri)), source, "the augmented manifest has no line")

    def of_line(line: Any) -> list[Piece]:
        return augmented_manifests.AugmentedManifestLine(source.uri, *line).pieces(names, store_of)

    lines = shard_records(found, deal)
    each = _in_order(of_line, lines) if augmented_manifests.has_references(names) else map(of_line, lines)
    return itertools.chain.from_iterable(each)


def _find(source: ChannelSource, store_of: Callable[[str], ObjectStore], uri: str) -> StoredObject:
    try:
        return store_of(uri).find(uri)
    except DataError as error:
        raise type(error)(f"{source.uri}: it names {error}") from error


def _looked_up(look: Callable[[str], _Found], names: Iterable[str], prefix: str) -> Iterator[_Found]:
    # This machine's disk answers sooner than a thread.
    return map(look, names) if file_uris.is_file(prefix) else _in_order(look, names)


def _in_order(look: Callable[[_Given], _Found], given: Iterable[_Given]) -> Iterator[_Found]:
    """Look up ahead of the reader, with threads; results, and the first error, come in the order of what was given."""
    pool = ThreadPoolExecutor(LOOKING, thread_name_prefix="look-up")
    closed = Event()
    waiting: deque[Future[_Found]] = deque()

    def work(each: _Given) -> _Found:
        with reading_while(lambda: not closed.is_set()):
            return look(each)

    try:
        for begun in _begun(pool, work, given):
            waiting.append(begun)
            # Every thread has something to do before the first is given; then one is given for each that is begun.
            if len(waiting) == AHEAD or (len(waiting) > LOOKING and waiting[0].done()):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        closed.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _begun(
    pool: ThreadPoolExecutor, work: Callable[[_Given], _Found], given: Iterable[_Given]
) -> Iterator[Future[_Found]]:
    """Begin one after another; what fails in ``given`` stands in the line, too."""
    try:
        for each in given:
            yield pool.submit(work, each)
    except Exception as error:  # noqa: BLE001 - raised where the reader comes to it
        broken: Future[_Found] = Future()
        broken.set_exception(error)
        yield broken


def _some(found: Iterable[_Found], source: ChannelSource, why: str) -> Iterator[_Found]:
    """Pass records on; raise `DataError` when there is none at all."""
    rest = iter(found)
    for first in rest:
        yield first
        break
    else:
        raise DataError(f"{source.uri}: {why}")
    yield from rest


def _start(prefix: str, stored: StoredObject) -> str:
    """Give a manifest's prefix as it stands in the key of what was found below it."""
    if not file_uris.is_file(prefix):
        return _key(prefix)
    # Whether a URI is percent-encoded is told by the whole of it (`file_uris.file_path`), not by the prefix.
    rest = prefix[len(file_uris.SCHEME) :]
    rest = rest[rest.find("/") :]
    written, decoded = str(Path(rest)), str(Path(unquote(rest)))
    return written if _key(stored.uri).startswith(written) else decoded


def _key(uri: str) -> str:
    """Give an object's key, or a file's path, as the URI has it."""
    return uri[len(file_uris.SCHEME) :] if file_uris.is_file(uri) else s3.parse_s3_uri(uri).key
