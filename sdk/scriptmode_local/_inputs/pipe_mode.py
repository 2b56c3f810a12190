"""Pipe mode: a producer process for each channel and host streams the data through FIFOs while the hosts train."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Callable

from scriptmode._core.spec.host_values import ChannelProgress
from scriptmode._core.spec.job_failure import Failure
from scriptmode_local._data import framing, large_objects, listing, pipes, prefetch
from scriptmode_local._data.shared_counters import create_counters
from scriptmode_local._inputs.file_mode import HostChannel, add_channel_to_errors, channels_in_mode

if TYPE_CHECKING:
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._data.large_objects import Bytes
    from scriptmode_local._data.stores import Stores
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._system.forked_tasks import ForkedTask, Tasks


class PipeProducers:
    """The producers of a job; the process that creates them must have no threads, because it forks."""

    def __init__(
        self, job: JobRequest, sandboxes: Sequence[Sandbox], stores: Stores, spool: Path, tasks: Tasks
    ) -> None:
        streams = channels_in_mode(job, sandboxes, "Pipe")
        self._stores = stores
        self._streams = {stream: create_counters(2) for stream in streams}
        self._spool = spool
        self._tasks = tasks
        self._fifos: dict[HostChannel, pipes.Fifos] = {}
        self._producers: dict[HostChannel, ForkedTask] = {}

    def check(self) -> None:
        """Raise `DataError` for a channel whose first object cannot be found."""
        for source in {stream.source: None for stream in self._streams}:
            # The order does not matter here, and shuffling would read the complete list.
            whole = source._replace(shuffle_seed=None)
            with add_channel_to_errors(source):
                next(listing.pieces(whole, self._stores.store_of, epoch=0, host=0, count=1))

    def create_fifos(self) -> None:
        """Create the FIFOs of the first epoch, which must exist before the hosts start."""
        for stream in self._streams:
            self._fifos[stream] = pipes.Fifos(stream.path)
            self._fifos[stream].create(0)

    def start(self) -> None:
        """Start a producer for each FIFO."""
        for stream, counters in self._streams.items():
            self._producers[stream] = self._tasks.start(
                partial(self._feed, stream, counters), f"the writer of {stream.label}", stays=True
            )

    def failure(self) -> Failure | None:
        """Return why a producer ended, which none should do; None while all run."""
        for stream, producer in self._producers.items():
            if producer.poll():
                return Failure(f"Data download failed: {stream.host}: {producer.error}", host=stream.host)
        return None

    def progress(self) -> list[ChannelProgress]:
        """Return the number of bytes streamed of each channel to each host that opened it."""
        return [
            ChannelProgress(stream.source.name, "Pipe", sent, epoch=opened - 1)
            for stream, (opened, sent) in self._streams.items()
            if opened
        ]

    def _feed(self, stream: HostChannel, counters: memoryview) -> None:
        with add_channel_to_errors(stream.source):
            pipes.feed(self._fifos[stream], partial(self._stream, stream), counters)

    def _stream(self, stream: HostChannel, epoch: int, waiting: Callable[[], None]) -> Generator[Bytes, None, None]:
        """Yield the bytes of an epoch; ``waiting`` is called repeatedly while no data arrives."""
        source, store_of, spool = stream.source, self._stores.store_of, self._spool
        pieces = listing.pieces(source, store_of, epoch=epoch, host=stream.index, count=stream.count)
        if not (source.is_gzipped or source.is_wrapped):
            yield from large_objects.stream(store_of, pieces, waiting=waiting)
            return
        yield from framing.frame(
            prefetch.prefetch(store_of, pieces, waiting=waiting),
            is_gzipped=source.is_gzipped,
            is_wrapped=source.is_wrapped,
            spool=spool,
            manifest=source.uri if source.attribute_names else None,
        )


def unread_warnings(job: JobRequest, sandboxes: Sequence[Sandbox], read: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield a host and a line for its log for each of its channels that no host opened; ``read`` has those opened."""
    for stream in channels_in_mode(job, sandboxes, "Pipe"):
        if stream.source.name not in read:
            fifo = pipes.fifo(stream.path, 0)
            message = f"channel {stream.source.name!r} is in Pipe mode, and nothing on {stream.host} opened {fifo}"
            yield (
                stream.host,
                f"{message}; read it, give it input_mode='File' for a directory of files, or leave it out",
            )
