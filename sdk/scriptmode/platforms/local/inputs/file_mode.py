"""File mode: a job's inputs, copied once into its folder and linked into every host's channel folders.

The copy stands between the script and the user's files: whatever a script does to its input, the originals stay as
they are. Hosts share the copy through hard links, so more hosts cost no more space; the shared files are read-only, so
one host does not write into another's input by accident (a script run by root can). Each host's folders are its own:
files added, removed or replaced there are seen nowhere else.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.data import listing, sharding, staging
from scriptmode.data.channel_source import input_mode, parse_channel
from scriptmode.errors import DataError, PlatformError
from scriptmode.platforms.opt_ml import channel_sandboxes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from scriptmode.data.channel_source import ChannelSource
    from scriptmode.data.stores import Stores
    from scriptmode.platforms.opt_ml import Sandbox

    #: Told the number of a channel, and how many bytes of how many of it are there.
    Report = Callable[[int, int, int], None]


def stage_channels(
    request: Mapping[str, Any],
    sandboxes: Sequence[Sandbox],
    stores: Stores,
    folder: Path,
    *,
    report: Report,
    modes: Collection[str] = ("File",),
) -> None:
    """Fill every host's channels of these input modes; ``folder`` holds the copies.

    Raise `DataError` naming channel, URI and cause.
    """
    copies: dict[tuple[str, str], tuple[Path, list[str]]] = {}
    for number, channel in enumerate(request.get("InputDataConfig", ())):
        if input_mode(request, channel) not in modes or "S3DataSource" not in channel["DataSource"]:
            continue
        source = parse_channel(request, channel)
        key = source.data_type, source.uri
        with add_channel_to_errors(source):
            if key not in copies:
                place = folder / str(len(copies))
                copies[key] = place, _fetched(source, stores, place, partial(report, number))
            _distribute(source, channel_sandboxes(request, channel, sandboxes), *copies[key])


@contextmanager
def add_channel_to_errors(source: ChannelSource) -> Iterator[None]:
    """Say of which channel it is that something cannot be read; an ``OSError`` becomes a `DataError`."""
    try:
        yield
    except (PlatformError, OSError) as error:
        # The URI is said once, whether the error says it or not.
        said = str(error) if str(error).startswith(f"{source.uri}: ") else f"{source.uri}: {error}"
        kind = type(error) if isinstance(error, PlatformError) else DataError
        raise kind(f"channel {source.name!r}, {said}") from error


def _fetched(source: ChannelSource, stores: Stores, place: Path, report: Callable[[int, int], None]) -> list[str]:
    """Copy everything a channel names into ``place``; give the names in order."""
    place.mkdir(parents=True)
    whole = replace(source, is_sharded=False, shuffle_seed=None)
    found = listing.entries(whole, stores.store_of, epoch=0, host=0, count=1, spool=place)
    return staging.fetch(found, place, report, stores=stores)


def _distribute(source: ChannelSource, hosts: Sequence[Sandbox], copies: Path, names: Sequence[str]) -> None:
    seed = source.shuffle_seed if source.is_sharded else None
    for index, sandbox in enumerate(hosts):
        shard = sharding.Shard(0, index, len(hosts), source.is_sharded, seed, copies)
        _link(sharding.shard_records(names, shard), copies, sandbox.channel(source.name))


def _link(names: Iterable[str], copies: Path, channel: Path) -> None:
    channel.mkdir(parents=True, exist_ok=True)
    made = {channel}
    for name in names:
        target = channel / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        os.link(copies / name, target)
