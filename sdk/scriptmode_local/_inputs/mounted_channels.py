"""Channels that are mounted: FastFile mode and file systems.

Where mounts are impossible, FastFile channels are copied and read-only file systems are linked, with a line in the log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from scriptmode._core.spec.inputs import FileSystemInput
from scriptmode._core.spec.job_failure import Failure
from scriptmode.errors import DataError
from scriptmode_local._data import listing, mounts
from scriptmode_local._inputs.file_mode import HostChannel, add_channel_to_errors, channels_in_mode
from scriptmode_local._inputs.fuse_mount import FuseMount
from scriptmode_local._opt_ml.opt_ml import Sandbox, channel_hosts
from scriptmode_local._system import file_systems

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.text.messages import Problem
    from scriptmode_local._data.fast_file import ObjectTree
    from scriptmode_local._data.stores import Stores
    from scriptmode_local._system.forked_tasks import Tasks

    #: Writes a line to a host's log, given the host's name and the line.
    Say = Callable[[str, str], None]


class ChannelMounts:
    """The mounts of a job; the process that creates them must have no threads, because it forks."""

    def __init__(
        self, job: JobRequest, sandboxes: Sequence[Sandbox], folders: Mapping[str, str] | None, tasks: Tasks
    ) -> None:
        """Find the channels to mount; ``folders``: those of file systems by ID, None if the hosts mount them."""
        self._folders = folders or {}
        self._tasks = tasks
        self._mounts: dict[HostChannel, FuseMount] = {}
        self._fast = channels_in_mode(job, sandboxes, "FastFile")
        self._systems = [
            (sandbox.host, sandbox.channel(channel.name), channel.source)
            for channel in job.channels
            if isinstance(channel.source, FileSystemInput) and folders is not None
            for sandbox, _, _ in channel_hosts(job, channel, sandboxes)
        ]

    def begin(self, stores: Stores, spool: Path, say: Say, obstacle: Problem | None = None) -> frozenset[str]:
        """Start every mount; return the input modes whose channels must be copied. Raises `DataError`.

        ``stores`` must have no open connections, which children would share. ``say`` writes a line to a host's log for
        a channel that is not mounted; ``obstacle`` is a known reason why FUSE mounts are impossible.
        """
        for host, path, system in self._systems:
            if problem := file_systems.provide_folder(system, self._folders, path):
                say(host, problem)
        if self._fast and (obstacle := obstacle or mounts.mount_obstacle(spool)):
            for mounted in self._fast:
                name = mounted.source.name
                say(mounted.host, f"channel {name!r} is in FastFile mode, but was copied as in File mode: {obstacle}")
            return frozenset({"File", "FastFile"})
        for mounted in self._fast:
            make = partial(_objects, mounted, stores)
            name = f"the FastFile server of {mounted.label}"
            self._mounts[mounted] = FuseMount(make, mounted.path, self._tasks, name)
        return frozenset({"File"})

    def is_ready_or_failed(self) -> bool:
        """Return whether every mount is in place, or one has failed."""
        return self.failure() is not None or all(mount.is_up for mount in self._mounts.values())

    def failure(self) -> Failure | None:
        """Return why a mount failed, disappeared or could not be read; None without a failure."""
        for mounted, mount in self._mounts.items():
            mount.poll()
            if failure := mount.error or next(iter(mount.unreadable), None):
                channel, text = f"channel {mounted.source.name!r}", str(failure)
                problem = text if text.startswith(channel) else f"{channel}: {text}"
                return Failure(f"Data download failed: {mounted.host}: {problem}", host=mounted.host)
        return None

    def end(self) -> list[str]:
        """Remove every mount; return a message for each that stays."""
        problems = []
        for mount in self._mounts.values():
            try:
                mount.end()
            except DataError as error:  # noqa: PERF203 - the other mounts are removed nevertheless
                problems.append(str(error))
        self._mounts.clear()
        return problems


def _objects(mounted: HostChannel, opened: Stores) -> ObjectTree:
    from scriptmode_local._data.fast_file import ObjectTree

    with add_channel_to_errors(mounted.source):
        entries = listing.entries(mounted.source, opened.store_of, epoch=0, host=mounted.index, count=mounted.count)
        return ObjectTree(entries, opened.store_of)
