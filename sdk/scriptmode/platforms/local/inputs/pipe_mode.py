"""What serves a job's inputs while its hosts train: a process for each channel in Pipe mode and each host."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Callable

from scriptmode.data import framing, listing, pipes, prefetch
from scriptmode.data.channel_source import input_mode, parse_channel
from scriptmode.platforms.base import ChannelProgress
from scriptmode.platforms.local.inputs.file_mode import named
from scriptmode.platforms.local.system.forked_tasks import Chore
from scriptmode.platforms.opt_ml import receivers

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from pathlib import Path

    from scriptmode.data.channel_source import ChannelSource
    from scriptmode.data.object_store import Buffer
    from scriptmode.data.stores import Stores
    from scriptmode.platforms.opt_ml import Sandbox


@dataclass(frozen=True)
class Feed:
    """One channel's stream to one host, the ``index``-th of the ``count`` that the channel is for."""

    host: str
    source: ChannelSource
    place: Path
    index: int
    count: int

    def stream(
        self, epoch: int, opened: Stores, spool: Path, waiting: Callable[[], None]
    ) -> Generator[Buffer, None, None]:
        """Give an epoch's bytes; ``waiting`` is called now and then while none come."""
        pieces = listing.pieces(
            self.source, opened.store_of, epoch=epoch, host=self.index, count=self.count, spool=spool
        )
        yield from framing.frame(
            prefetch.prefetch(opened.store_of, pieces, waiting=waiting),
            is_gzipped=self.source.is_gzipped,
            is_wrapped=self.source.is_wrapped,
            spool=spool,
            manifest=self.source.uri if self.source.attribute_names else None,
        )


class Feeding:
    """The producers of a job; the process that makes them must have no threads."""

    def __init__(self, feeds: Sequence[Feed], stores: Stores, spool: Path, lock: int) -> None:
        self._stores = stores
        self._feeds = {feed: pipes.Gauge() for feed in feeds}
        self._spool = spool
        self._lock = lock
        self._fifos: dict[Feed, pipes.Fifos] = {}
        self._producers: dict[Feed, Chore] = {}

    @property
    def pids(self) -> list[int]:
        """The producers' process numbers."""
        return [producer.pid for producer in self._producers.values()]

    def check(self) -> None:
        """Raise `DataError` for a channel whose first object cannot be found."""
        for source in {feed.source: None for feed in self._feeds}:
            # The order does not matter, and shuffling would read the whole list.
            whole = replace(source, shuffle_seed=None)
            with named(source):
                next(listing.pieces(whole, self._stores.store_of, epoch=0, host=0, count=1, spool=self._spool))

    def make(self) -> None:
        """Make the first FIFOs: they are there before the hosts start."""
        for feed in self._feeds:
            self._fifos[feed] = pipes.Fifos(feed.place)
            self._fifos[feed].make(0)

    def start(self) -> None:
        """Start a producer for each FIFO."""
        for feed, gauge in self._feeds.items():
            self._producers[feed] = Chore(partial(self._feed, feed, gauge), self._lock, stays=True)

    def broken(self) -> str:
        """Say why one of the streams ended that should not have; "" as long as none did."""
        for feed, producer in self._producers.items():
            if producer.poll():
                return f"ClientError: Data download failed: {feed.host}: {producer.error}"
        return ""

    def progress(self) -> list[ChannelProgress]:
        """Give how much of each channel went to its hosts, of those that one opened."""
        found: dict[str, ChannelProgress] = {}
        for feed, gauge in self._feeds.items():
            if gauge.opened:
                name = feed.source.name
                before = found.get(name, ChannelProgress(name, "Pipe", 0, epoch=0))
                epoch = max(before.epoch or 0, gauge.opened - 1)
                found[name] = replace(before, done=before.done + gauge.sent, epoch=epoch)
        return list(found.values())

    def unread(self) -> Iterator[tuple[str, str]]:
        """Give a line for the log of each host whose channel nothing on any host opened."""
        read = {feed.source.name for feed, gauge in self._feeds.items() if gauge.opened}
        for feed in self._feeds:
            if feed.source.name not in read:
                fifo = pipes.fifo(feed.place, 0)
                said = f"channel {feed.source.name!r} is in Pipe mode, and nothing on {feed.host} opened {fifo}"
                yield feed.host, f"{said}; read it, give it input_mode='File' for a folder of files, or leave it out"

    def _feed(self, feed: Feed, gauge: pipes.Gauge) -> None:
        with named(feed.source):
            stream = partial(feed.stream, opened=self._stores, spool=self._spool)
            pipes.feed(self._fifos[feed], lambda epoch, waiting: stream(epoch, waiting=waiting), gauge)


def feeds_of(request: Mapping[str, Any], sandboxes: Sequence[Sandbox]) -> list[Feed]:
    """Give every channel in Pipe mode for every host that it is for."""
    found = []
    for channel in request.get("InputDataConfig", ()):
        if input_mode(request, channel) != "Pipe":
            continue
        source = parse_channel(request, channel)
        hosts = receivers(request, channel, sandboxes)
        for index, sandbox in enumerate(hosts):
            found.append(Feed(sandbox.host, source, sandbox.channel(source.name), index, len(hosts)))
    return found
