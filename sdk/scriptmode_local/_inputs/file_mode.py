"""File mode: a job's inputs, copied once and hard-linked into the channel directories of every host of the machine.

The copy protects the user's files from the script. Hosts share it through hard links, so more hosts need no more space;
the shared files are read-only, so a host does not change another's input by accident (a script run by root can). Each
host has its own directories: files added, removed or replaced there are visible to that host alone. Where hosts are on
several machines, files of the file system that these share are not copied: links to them take the place of the copies.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._core.text.messages import problem_of
from scriptmode.errors import DataError, PlatformError
from scriptmode_local._data import file_uris, listing, sharding, staging
from scriptmode_local._data.channel_source import ChannelSource, source_of
from scriptmode_local._data.shared_counters import create_counters
from scriptmode_local._opt_ml.opt_ml import ChannelHost, Sandbox, channel_hosts

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._data.stores import Stores


class StagingProgress:
    """Number of staged bytes of each channel in shared memory: the child that stages writes it, its parent reads it."""

    def __init__(self, job: JobRequest) -> None:
        self._channels = [(channel.name, job.input_mode(channel)) for channel in job.channels]
        # For each channel the bytes staged and their total.
        self._numbers = create_counters(max(1, 2 * len(self._channels)))

    def report(self, channel: int, done: int, total: int) -> None:
        """Set the progress of a channel, the bytes that are copied and their total."""
        self._numbers[2 * channel], self._numbers[2 * channel + 1] = done, total

    def repeat(self, channel: int, first: int) -> None:
        """Set the progress of a channel whose copies are those of ``first``."""
        self.report(channel, self._numbers[2 * first], self._numbers[2 * first + 1])

    def progress(self) -> list[ChannelProgress]:
        """Return the progress of every channel whose staging began."""
        numbers = zip(self._channels, self._numbers[::2], self._numbers[1::2])
        return [ChannelProgress(*channel, done, total) for channel, done, total in numbers if total]


def stage_channels(
    job: JobRequest,
    sandboxes: Sequence[Sandbox],
    stores: Stores,
    area: staging.StagingArea,
    *,
    progress: StagingProgress,
    modes: Collection[str] = ("File",),
) -> None:
    """Copy the channels of these input modes to each of ``sandboxes``, the job's or those of one machine.

    ``area`` gets the copies. Raises `DataError` naming channel, URI and cause.
    """
    # For each kind of copies the first channel that has them, their directory and their names.
    copies: dict[tuple[str, str, bool], tuple[int, Path, list[str]]] = {}
    for number, channel in enumerate(job.channels):
        source = source_of(job, channel)
        hosts = channel_hosts(job, channel, sandboxes)
        if source is None or source.mode not in modes or not hosts:
            continue
        # One host of several machines: what other hosts get is not copied to this machine.
        is_shard = source.is_sharded and len(hosts) == 1
        key = source.data_type, source.uri, is_shard
        with add_channel_to_errors(source):
            if key in copies:
                progress.repeat(number, copies[key][0])
            else:
                copy = area.folder / str(len(copies))
                entries = _entries(source, stores, hosts[0] if is_shard else None)
                linked = area.links_files and file_uris.is_file(source.uri)
                report = partial(progress.report, number)
                names = staging.link(entries, copy) if linked else staging.fetch(entries, copy, report, stores=stores)
                copies[key] = number, copy, names
            _distribute(source, hosts, *copies[key][1:], is_shard=is_shard)


@dataclass(frozen=True, eq=False)
class HostChannel:
    """A channel of one host, the ``index``-th of the ``count`` hosts that the channel is for."""

    host: str
    path: Path
    source: ChannelSource
    index: int
    count: int

    @property
    def label(self) -> str:
        """The channel as text for messages."""
        return f"channel {self.source.name!r} on {self.host}"


def channels_in_mode(job: JobRequest, sandboxes: Sequence[Sandbox], mode: str) -> list[HostChannel]:
    """Return every channel in an input mode for every host that it is for."""
    return [
        HostChannel(sandbox.host, sandbox.channel(source.name), source, index, count)
        for channel in job.channels
        if (source := source_of(job, channel)) and source.mode == mode
        for sandbox, index, count in channel_hosts(job, channel, sandboxes)
    ]


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


def _entries(source: ChannelSource, stores: Stores, shard_of: ChannelHost | None) -> Iterator[listing.Entry]:
    """Return the objects of a channel, or of one host's shard of it, in order."""
    if shard_of is None:
        source = source._replace(is_sharded=False, shuffle_seed=None)
    position, total = (0, 1) if shard_of is None else shard_of[1:]
    return listing.entries(source, stores.store_of, epoch=0, host=position, count=total)


def _distribute(
    source: ChannelSource, hosts: Sequence[ChannelHost], copies: Path, names: Sequence[str], *, is_shard: bool
) -> None:
    is_sharded = source.is_sharded and not is_shard
    seed = source.shuffle_seed if is_sharded else None
    for sandbox, position, total in hosts:
        shard = sharding.Shard(0, position, total, is_sharded, seed)
        _link(sharding.shard_records(names, shard), copies, sandbox.channel(source.name))


def _link(names: Iterable[str], copies: Path, channel: Path) -> None:
    make_directory = cache(partial(Path.mkdir, parents=True, exist_ok=True))
    make_directory(channel)
    for name in names:
        make_directory((channel / name).parent)
        os.link(copies / name, channel / name, follow_symlinks=False)
