"""File mode: a job's inputs, copied once into its directory and hard-linked into the channel directories of every host.

The copy protects the user's files from the script. Hosts share it through hard links, so more hosts need no more space;
the shared files are read-only, so a host does not change another's input by accident (a script run by root can). Each
host has its own directories: files added, removed or replaced there are visible to that host alone.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Callable

from scriptmode.data import listing, sharding, staging
from scriptmode.data.channel_source import source_of
from scriptmode.errors import DataError, PlatformError
from scriptmode.messages import problem_of
from scriptmode.platforms.opt_ml import channel_sandboxes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from scriptmode.data.channel_source import ChannelSource
    from scriptmode.data.stores import Stores
    from scriptmode.platforms.opt_ml import Sandbox
    from scriptmode.spec.job_request import JobRequest

    #: Called with the index of a channel, the bytes that are copied, and their total.
    Report = Callable[[int, int, int], None]


def stage_channels(
    job: JobRequest,
    sandboxes: Sequence[Sandbox],
    stores: Stores,
    folder: Path,
    *,
    report: Report,
    modes: Collection[str] = ("File",),
) -> None:
    """Copy the channels of these input modes to every host; ``folder`` holds the copies.

    Raises `DataError` naming channel, URI and cause.
    """
    copies: dict[tuple[str, str], tuple[Path, list[str]]] = {}
    for number, channel in enumerate(job.channels):
        source = source_of(job, channel)
        if source is None or source.mode not in modes:
            continue
        key = source.data_type, source.uri
        with add_channel_to_errors(source):
            if key not in copies:
                copy = folder / str(len(copies))
                copies[key] = copy, _fetch(source, stores, copy, partial(report, number))
            _distribute(source, channel_sandboxes(job, channel, sandboxes), *copies[key])


@contextmanager
def add_channel_to_errors(source: ChannelSource) -> Iterator[None]:
    """Add channel and URI to errors of reading it; an ``OSError`` becomes a `DataError`."""
    try:
        yield
    except (PlatformError, OSError) as error:
        problem = problem_of(error)
        # Some errors begin with the URI already.
        text = problem.text if problem.text.startswith(f"{source.uri}: ") else f"{source.uri}: {problem.text}"
        kind = type(error) if isinstance(error, PlatformError) else DataError
        raise kind(
            f"channel {source.name!r}, {text}", argument=problem.argument or None, advice=problem.advice
        ) from error


def _fetch(source: ChannelSource, stores: Stores, folder: Path, report: Callable[[int, int], None]) -> list[str]:
    """Copy all objects of a channel into ``folder``; return their names in order."""
    folder.mkdir(parents=True)
    whole = replace(source, is_sharded=False, shuffle_seed=None)
    found = listing.entries(whole, stores.store_of, epoch=0, host=0, count=1, spool=folder)
    return staging.fetch(found, folder, report, stores=stores)


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
