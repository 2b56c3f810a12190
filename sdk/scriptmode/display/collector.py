"""Snapshots of a job that is followed, built from its log lines and descriptions.

Memory is bounded: of a host the last line is kept, of a metric `MAX_POINTS` means, of a channel the samples of the last
seconds.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

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
from scriptmode.spec.metric_definitions import Definition
from scriptmode.terminal_text import render_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from scriptmode.failure import Failure
    from scriptmode.platforms.base import ChannelProgress, LogEvent
    from scriptmode.spec.job_description import JobDescription

#: Number of characters shown of a host's last line.
LINE_CHARACTERS = 500
#: Number of characters kept of a host's last line.
KEPT_CHARACTERS = 64 * 1024
#: Seconds over which a rate is measured, and after which the first one is known.
_RATE_SECONDS, _LEAST_RATE_SECONDS = 10.0, 0.4


class Collector:
    """What was observed of one job. Lines are counted as they pass, and not read again."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.description: JobDescription | None = None
        #: Why the job failed, once it has.
        self.failure: Failure | None = None
        #: By the hosts' names, once they are known.
        self.roles: Mapping[str, str] = {}
        #: Problems that were found and not shown yet.
        self.problems: list[str] = []
        self._definitions: list[tuple[Definition, MetricByHost]] | None = None
        #: Metrics whose expressions took too long and are not searched for any more.
        self._off: set[str] = set()
        self._last: dict[str, str] = {}
        self._count = 0
        self._rates = ChannelRates()

    def add_event(self, event: LogEvent) -> None:
        """Record one line of the log."""
        self._count += 1
        # The end of a long line: what a progress bar drew last.
        self._last[event.host] = event.message[-KEPT_CHARACTERS:]
        for definition, series in self._definitions or ():
            for value in definition.values(event.message):
                series.add(value, event.host)
            if definition.problem and definition.name not in self._off:
                self._off.add(definition.name)
                self.problems.append(definition.problem)

    def set_description(self, description: JobDescription) -> None:
        """Replace the job's description."""
        self.description = description
        if self._definitions is None:
            found = [self._compiled(name, regex) for name, regex in description.job.algorithm.metric_definitions]
            self._definitions = [(each, MetricByHost()) for each in found if each is not None]

    def add_progress(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``, in seconds of a monotonic clock."""
        self._rates.add(progress, now)

    def snapshot(self, now: datetime) -> JobSnapshot:
        """Return what is known of the job at the time ``now``."""
        order = self.description.hosts if self.description else ()
        is_over = self.description is not None and self.description.has_ended
        observed = Observations(
            tuple(self._hosts()),
            self._rates.statuses(over=is_over),
            tuple(series.summary(each.name, order) for each, series in self._definitions or () if series),
            self._count,
        )
        return (
            JobSnapshot(self.name, observed=observed)
            if self.description is None
            else create_snapshot(self.description, now, observed, self.failure)
        )

    def _compiled(self, name: str, regex: str) -> Definition | None:
        try:
            return Definition(name, regex)
        except DataError as error:
            self.problems.append(str(error))
            return None

    def _hosts(self) -> list[HostStatus]:
        names = dict.fromkeys([*(self.description.hosts if self.description else ()), *self._last])
        lines = {name: truncate(render_line(line), LINE_CHARACTERS) for name, line in self._last.items()}
        return [HostStatus(name, self.roles.get(name, ""), lines.get(name)) for name in names]


class MetricByHost:
    """A metric's values, a series for each host: the losses of two hosts in turn are the curve of neither."""

    def __init__(self) -> None:
        self._hosts: dict[str, DownsampledSeries] = {}

    def add(self, value: float, host: str | None) -> None:
        """Add a value of a host; ``None`` where the host is unknown."""
        self._hosts.setdefault(host or "", DownsampledSeries()).add(value)

    def __bool__(self) -> bool:
        """Return whether any host has values."""
        return bool(self._hosts)

    def summary(self, name: str, order: Sequence[str]) -> MetricSummary:
        """Return the values of the first host in ``order`` that has any. At least one host must have some."""
        host = next((each for each in order if each in self._hosts), next(iter(self._hosts)))
        series = self._hosts[host]
        return MetricSummary(name, series.count, series.last, series.points(), host if len(self._hosts) > 1 else "")


class ChannelRates:
    """The rates at which the channels' data arrived in the last `_RATE_SECONDS`."""

    def __init__(self) -> None:
        self._samples: dict[str, deque[tuple[float, int]]] = {}
        self._latest: Sequence[ChannelProgress] = ()

    def add(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``."""
        found = tuple(progress)
        for each in found:
            samples = self._samples.setdefault(each.channel, deque())
            samples.append((now, each.done))
            # The first sample that is kept is older than the window, or the only one.
            while len(samples) > 2 and samples[1][0] < now - _RATE_SECONDS:  # noqa: PLR2004
                samples.popleft()
        self._latest = found

    def statuses(self, *, over: bool = False) -> tuple[ChannelStatus, ...]:
        """Return every channel with its rate and its remaining seconds; without them if the job is ``over``."""
        return tuple(ChannelStatus(each) if over else self._status(each) for each in self._latest)

    def _status(self, progress: ChannelProgress) -> ChannelStatus:
        samples = self._samples[progress.channel]
        (began, before), (now, done) = samples[0], samples[-1]
        complete = progress.total is not None and done >= progress.total
        if complete or now - began < _LEAST_RATE_SECONDS:
            return ChannelStatus(progress)
        # Not negative: staging may start again from 0.
        rate = max(0.0, (done - before) / (now - began))
        left = (progress.total - done) / rate if progress.total is not None and rate > 0 else None
        return ChannelStatus(progress, rate, left)
