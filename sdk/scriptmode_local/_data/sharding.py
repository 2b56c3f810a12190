"""Sharding: which of a channel's records a host gets, and in which order.

Records are shuffled again for each epoch where there is a seed, then divided among the hosts where they are sharded.
"""

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
#: Bytes that are read at once: enough for most records.
_USUAL_RECORD = 512


@dataclass(frozen=True)
class Shard:
    """One host's share of one epoch."""

    epoch: int
    #: This host's index among the hosts that get the records, and their number.
    host: int
    count: int
    is_sharded: bool
    seed: int | None
    #: The directory of an unnamed temporary file for the records that are shuffled.
    spool: Path


def shard_records(records: Iterable[Any], shard: Shard) -> Iterator[Any]:
    """Yield the records of one host, in order; each host must pass the same records.

    A record is a value that JSON can hold; a shuffled tuple comes back as a list. Without a seed records stream;
    shuffled, they are written to a temporary file, and 8 bytes of each are in memory. Raises `DataError` when the disk
    is full.
    """
    if shard.seed is not None:
        return _shuffled(records, shard)
    if shard.is_sharded:
        return itertools.islice(records, shard.host, None, shard.count)
    return iter(records)


def _shuffled(records: Iterable[Any], shard: Shard) -> Iterator[Any]:
    with _translate_full_disk(shard.spool):
        file = tempfile.TemporaryFile(dir=shard.spool, buffering=1024 * 1024)  # noqa: SIM115 - closed below
    with file:
        offsets = _write(records, file, shard.spool)
        # A string as the seed: two integers would have to be combined, and some pairs would give the same seed.
        random.Random(f"{shard.seed} {shard.epoch}").shuffle(offsets)  # noqa: S311 - no secret
        for offset in offsets[shard.host :: shard.count] if shard.is_sharded else offsets:
            yield json.loads(_read(file.fileno(), offset))


def _write(records: Iterable[Any], file: IO[bytes], spool: Path) -> array[int]:
    offsets = array("Q")
    offset = 0
    # An OSError below comes from the file: `records` raises errors of ours only.
    with _translate_full_disk(spool):
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
def _translate_full_disk(spool: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"the list to shuffle cannot be written to {str(spool)!r}: {error.strerror or error}"
        raise DataError(what, advice="free some space there") from error
