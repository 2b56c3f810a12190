"""Which part of a channel's records a host gets, and in which order: shuffled anew each epoch, then dealt out."""

from __future__ import annotations

import itertools
import json
import os
import random
import tempfile
from array import array
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import IO, TYPE_CHECKING, Any

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_LENGTH = Struct("<I")
#: Most records come back with one read of this many bytes.
_USUAL_RECORD = 512


@dataclass(frozen=True)
class Shard:
    """One host's place in one epoch."""

    epoch: int
    #: This host's index among the hosts that get the records, and how many those are.
    host: int
    count: int
    is_sharded: bool
    seed: int | None
    #: The folder of a temporary file without a name that holds what is shuffled.
    spool: Path


def shard_records(records: Iterable[Any], deal: Shard) -> Iterator[Any]:
    """Yield the records of one host, in order; every host must be given the same ones.

    A record is a value that JSON can hold; a shuffled tuple comes back as a list. Without a seed records stream;
    shuffled, they lie in a temporary file, and 8 bytes of each in memory. Raises `DataError` when there is no space.
    """
    if deal.seed is not None:
        return _shuffled(records, deal)
    if deal.is_sharded:
        return itertools.islice(records, deal.host, None, deal.count)
    return iter(records)


def _shuffled(records: Iterable[Any], deal: Shard) -> Iterator[Any]:
    with _temporary(deal.spool) as file:
        offsets = _write(records, file, deal.spool)
        # A text as the seed: two whole numbers would have to be made one, and some pairs would then be the same.
        random.Random(f"{deal.seed} {deal.epoch}").shuffle(offsets)  # noqa: S311 - no secret
        for offset in offsets[deal.host :: deal.count] if deal.is_sharded else offsets:
            yield json.loads(_read(file.fileno(), offset))


def _write(records: Iterable[Any], file: IO[bytes], spool: Path) -> array[int]:
    offsets = array("Q")
    offset = 0
    # Each record passes here: what is raised below comes from the file, for `records` raises errors of ours only.
    with _full(spool):
        for record in records:
            text = json.dumps(record).encode()
            file.write(_LENGTH.pack(len(text)) + text)
            offsets.append(offset)
            offset += _LENGTH.size + len(text)
        file.flush()
    return offsets


def _read(descriptor: int, offset: int) -> bytes:
    begin = os.pread(descriptor, _USUAL_RECORD, offset)
    (length,) = _LENGTH.unpack_from(begin)
    if length <= len(begin) - _LENGTH.size:
        return begin[_LENGTH.size : _LENGTH.size + length]
    return os.pread(descriptor, length, offset + _LENGTH.size)


@contextmanager
def _temporary(spool: Path) -> Iterator[IO[bytes]]:
    with _full(spool):
        file = tempfile.TemporaryFile(dir=spool, buffering=1024 * 1024)  # noqa: SIM115 - closed below
    with file:
        yield file


@contextmanager
def _full(spool: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DataError(
            f"{str(spool)!r} cannot hold the list that is to be shuffled: {error.strerror or error}; free space there"
        ) from error
