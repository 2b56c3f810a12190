"""Gathers what is seen of a job while it is followed, in room that does not grow with its log."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from scriptmode.display.downsampled_series import DownsampledSeries
from scriptmode.display.formatting import truncate
from scriptmode.display.snapshot import (
    ChannelStatus,
    HostStatus,
    JobSnapshot,
    MetricSummary,
    Observations,
    create_snapshot,
)
from scriptmode.errors import DataError
from scriptmode.platforms.base import ENDED, host_names
from scriptmode.spec.metric_definitions import Definition, parse_definitions
from scriptmode.terminal_text import render_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from scriptmode.platforms.base import ChannelProgress, LogEvent

#: Of a host's last line so many characters are of use.
LINE_CHARACTERS = 500
#: Number of characters kept of a host's last line.
KEPT_CHARACTERS = 64 * 1024
#: Seconds over which a rate is taken, and before which there is none.
_RATE_SECONDS, _LEAST_RATE_SECONDS = 10.0, 0.4


class Collector:
    """What was seen of one job. Lines are taken as they pass, and not read again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.description: Mapping[str, Any] | None = None
        #: Told by the hosts' names once they are known.
        self.roles: Mapping[str, str] = {}
        #: What was found to be wrong and is not told yet.
        self.problems: list[str] = []
        self._definitions: list[tuple[Definition, MetricByHost]] | None = None
        #: Metrics that were found to take too long.
        self._off: set[str] = set()
        self._last: dict[str, str] = {}
        self._count = 0
        self._rates = ChannelRates()

    def take(self, event: LogEvent) -> None:
        """Take one line of the log."""
        self._count += 1
        # Of a long line its end: what a progress bar drew last.
        self._last[event.host] = event.message[-KEPT_CHARACTERS:]
        for definition, series in self._definitions or ():
            for value in definition.values(event.message):
                series.add(value, event.host)
            if definition.trouble and definition.name not in self._off:
                self._off.add(definition.name)
                self.problems.append(definition.trouble)

    def describe(self, description: Mapping[str, Any]) -> None:
        """Take a description of the job."""
        self.description = description
        if self._definitions is None:
            found = [self._compiled(name, regex) for name, regex in parse_definitions(description)]
            self._definitions = [(each, MetricByHost()) for each in found if each is not None]

    def progress(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Take how far the data is at ``now``, a monotonic clock's seconds."""
        self._rates.take(progress, now)

    def view(self, now: datetime) -> JobSnapshot:
        """Give the job as it is known at the time ``now``."""
        order = host_names(self.description or {})
        is_over = self.description is not None and self.description["TrainingJobStatus"] in ENDED
        seen = Observations(
            tuple(self._hosts()),
            self._rates.data(over=is_over),
            tuple(series.values(each.name, order) for each, series in self._definitions or () if series),
            self._count,
        )
        return (
            JobSnapshot(self.name, seen=seen)
            if self.description is None
            else create_snapshot(self.description, now, seen)
        )

    def _compiled(self, name: str, regex: str) -> Definition | None:
        try:
            return Definition(name, regex)
        except DataError as error:
            self.problems.append(str(error))
            return None

    def _hosts(self) -> list[HostStatus]:
        names = dict.fromkeys([*host_names(self.description or {}), *self._last])
        lines = {name: truncate(render_line(line), LINE_CHARACTERS) for name, line in self._last.items()}
        return [HostStatus(name, self.roles.get(name, ""), lines.get(name)) for name in names]


class MetricByHost:
    """A metric's values, those of each host apart: two hosts' losses in turn are no course of either."""

    def __init__(self) -> None:
        self._of: dict[str, DownsampledSeries] = {}

    def add(self, value: float, host: str | None) -> None:
        """Take one more value of a host, ``None`` where nobody knows whose it is."""
        self._of.setdefault(host or "", DownsampledSeries()).add(value)

    def __bool__(self) -> bool:
        """Say whether any host has values."""
        return bool(self._of)

    def values(self, name: str, order: Sequence[str]) -> MetricSummary:
        """Give the values of the first host in the job's order that has any; one must have some."""
        host = next((each for each in order if each in self._of), next(iter(self._of)))
        series = self._of[host]
        return MetricSummary(name, series.count, series.last, series.points(), host if len(self._of) > 1 else "")


class ChannelRates:
    """How fast the channels' data comes, over the last seconds."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        self._now: Sequence[ChannelProgress] = ()

    def take(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Take how far every channel is at ``now``."""
        found = tuple(progress)
        for each in found:
            samples = self._samples.setdefault(each.channel, deque())
            samples.append((now, each.done))
            # The first one that is kept is older than the window, or the only one.
            while len(samples) > 2 and samples[1][0] < now - _RATE_SECONDS:  # noqa: PLR2004
                samples.popleft()
        self._now = found

    def data(self, *, over: bool = False) -> tuple[ChannelStatus, ...]:
        """Give every channel with its rate and the seconds that are left of it, unless nothing comes any more."""
        return tuple(ChannelStatus(each) if over else self._of(each) for each in self._now)

    def _of(self, progress: ChannelProgress) -> ChannelStatus:
        samples = self._samples[progress.channel]
        (began, before), (now, done) = samples[0], samples[-1]
        complete = progress.total is not None and done >= progress.total
        if complete or now - began < _LEAST_RATE_SECONDS:
            return ChannelStatus(progress)
        # What was staged may be begun anew.
        rate = max(0.0, (done - before) / (now - began))
        left = (progress.total - done) / rate if progress.total is not None and rate > 0 else None
        return ChannelStatus(progress, rate, left)
