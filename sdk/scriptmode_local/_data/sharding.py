"""Sharding: which of a channel's records a host gets, and in which order.

Records are shuffled again for each epoch where there is a seed, then divided among the hosts where they are sharded.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

_Record = TypeVar("_Record")


@dataclass(frozen=True)
class Shard:
    """One host's share of one epoch."""

    epoch: int
    #: This host's index among the hosts that get the records, and their number.
    host: int
    count: int
    is_sharded: bool
    seed: int | None


def shard_records(records: Iterable[_Record], shard: Shard) -> Iterator[_Record]:
    """Yield the records of one host, in order; each host must pass the same records.

    Without a seed records stream; shuffled, all of them are in memory.
    """
    if shard.seed is not None:
        return _shuffled(records, shard)
    if shard.is_sharded:
        return itertools.islice(records, shard.host, None, shard.count)
    return iter(records)


def _shuffled(records: Iterable[_Record], shard: Shard) -> Iterator[_Record]:
    shuffled = list(records)
    # A string as the seed: two integers would have to be combined, and some pairs would give the same seed.
    random.Random(f"{shard.seed} {shard.epoch}").shuffle(shuffled)  # noqa: S311 - no secret
    yield from shuffled[shard.host :: shard.count] if shard.is_sharded else shuffled
