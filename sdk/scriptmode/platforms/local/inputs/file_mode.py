"""File mode: a job's inputs, copied once and hard-linked into the channel directories of every host of the machine.

The copy protects the user's files from the script. Hosts share it through hard links, so more hosts need no more space;
the shared files are read-only, so a host does not change another's input by accident (a script run by root can). Each
host has its own directories: files added, removed or replaced there are visible to that host alone. Where hosts are on
several machines, files of the file system that these share are not copied: links to them take the place of the copies.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

from scriptmode.core.text.messages import problem_of
from scriptmode.data import file_uris, listing, sharding, staging
from scriptmode.data.channel_source import source_of
from scriptmode.errors import DataError, PlatformError
from scriptmode.platforms.opt_ml import channel_hosts

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from scriptmode.core.spec.job_request import JobRequest
    from scriptmode.data.channel_source import ChannelSource
    from scriptmode.data.shared_counters import NamedCounters
    from scriptmode.data.stores import Stores
    from scriptmode.platforms.opt_ml import ChannelHost, Sandbox


class Progress(Protocol):
    """What is told of the copying, by the index of a channel."""

    #: For each channel what its objects were compared with.
    verification: Sequence[NamedCounters]

    def report(self, channel: int, done: int, total: int) -> None:
        """Set the bytes that are copied, and their total."""

    def repeat(self, channel: int, first: int) -> None:
        """Set the progress of a channel whose copies are those of ``first``."""


def stage_channels(
    job: JobRequest,
    sandboxes: Sequence[Sandbox],
    stores: Stores,
    area: staging.StagingArea,
    *,
    progress: Progress,
    modes: Collection[str] = ("File",),
) -> None:
    """Copy the channels of these input modes to each of ``sandboxes``, the job's or those of one machine.

    ``area`` gets the copies. Raises `DataError` naming channel, URI and cause.
    """
    copies: dict[tuple[str, str, bool], tuple[Path, list[str]]] = {}
    first: dict[tuple[str, str, bool], int] = {}
    for number, channel in enumerate(job.channels):
        source = source_of(job, channel)
        hosts = channel_hosts(job, channel, sandboxes)
        if source is None or source.mode not in modes or not hosts:
            continue
        # One host of several machines: what other hosts get is not copied to this machine.
        is_shard = source.is_sharded and len(hosts) == 1
        key = source.data_type, source.uri, is_shard
        stores.on_verification = progress.verification[number].add
        with add_channel_to_errors(source):
            if first.setdefault(key, number) != number:
                progress.repeat(number, first[key])
            else:
                copy = area.folder / str(len(copies))
                found = _entries(source, stores, copy, hosts[0] if is_shard else None)
                if area.links_files and file_uris.is_file(source.uri):
                    copies[key] = copy, staging.link(found, copy)
                else:
                    copies[key] = copy, staging.fetch(found, copy, partial(progress.report, number), stores=stores)
            _distribute(source, hosts, *copies[key], is_shard=is_shard)


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


def _entries(
    source: ChannelSource, stores: Stores, folder: Path, shard_of: ChannelHost | None
) -> Iterator[listing.Entry]:
    """Return the objects of a channel, or of one host's shard of it, in order; ``folder`` is created for spools."""
    folder.mkdir(parents=True)
    if shard_of is None:
        source = replace(source, is_sharded=False, shuffle_seed=None)
    position, total = (0, 1) if shard_of is None else shard_of[1:]
    return listing.entries(source, stores.store_of, epoch=0, host=position, count=total, spool=folder)


def _distribute(
    source: ChannelSource, hosts: Sequence[ChannelHost], copies: Path, names: Sequence[str], *, is_shard: bool
) -> None:
    is_sharded = source.is_sharded and not is_shard
    seed = source.shuffle_seed if is_sharded else None
    for sandbox, position, total in hosts:
        shard = sharding.Shard(0, position, total, is_sharded, seed, copies)
        _link(sharding.shard_records(names, shard), copies, sandbox.channel(source.name))


def _link(names: Iterable[str], copies: Path, channel: Path) -> None:
    channel.mkdir(parents=True, exist_ok=True)
    made = {channel}
    for name in names:
        target = channel / name
        if target.parent not in made:
            target.parent.mkdir(parents=True, exist_ok=True)
            made.add(target.parent)
        os.link(copies / name, target, follow_symlinks=False)
