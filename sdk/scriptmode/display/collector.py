"""Snapshots of a job that is followed, built from its log lines and descriptions.

Memory is bounded: of a host the last line is kept, of a metric `MAX_POINTS` means, of a channel the samples of the last
seconds.

The line that a host has not ended yet, such as a progress bar, is observed at intervals. What it shows replaces the
host's last line, and its values of metrics are provisional: the values of the ended line replace them, and they form a
curve only until a line with the metric has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scriptmode.core.spec.job_description import JobDescription
from scriptmode.core.spec.job_failure import Failure
from scriptmode.core.spec.metric_definitions import Definition, MetricFinder
from scriptmode.core.spec.service_values import ChannelProgress, HostActivity, LogEvent
from scriptmode.core.text.terminal_text import last_frame, render_line
from scriptmode.display.downsampled_series import DownsampledSeries
from scriptmode.display.formatting import truncate
from scriptmode.display.snapshot import ChannelStatus, HostStatus, JobSnapshot, MetricSummary, create_snapshot
from scriptmode.errors import DataError

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
        self._finder: MetricFinder | None = None
        #: In the order in which they are shown.
        self._metrics: dict[str, MetricByHost] = {}
        #: Metrics whose expressions took too long and are not searched for any more.
        self._off: set[str] = set()
        self._last: dict[str, str] = {}
        self._activity: Mapping[str, HostActivity] = {}
        self._unfinished: dict[str, UnfinishedLine] = {}
        self._count = 0
        self._rates = ChannelRates()

    def add_event(self, event: LogEvent) -> None:
        """Record one line of the log."""
        self._count += 1
        # The end of a long line: what a progress bar drew last.
        self._last[event.host] = event.message[-KEPT_CHARACTERS:]
        self._unfinished.pop(event.host, None)
        for series in self._metrics.values():
            series.drop_provisional(event.host)
        for name, value in self._found(self._finder.find(event.message) if self._finder else ()):
            self._metrics.setdefault(name, MetricByHost()).add(value, event.host)

    def set_activity(self, activity: Mapping[str, HostActivity]) -> None:
        """Replace what the hosts do now."""
        self._activity = activity
        before = self._unfinished
        self._unfinished = {host: UnfinishedLine.parse(each.line) for host, each in activity.items() if each.line}
        for host, line in self._unfinished.items():
            if host not in before or line.frame != before[host].frame:
                for name, value in self._found(self._finder.find_in_frame(line.frame) if self._finder else ()):
                    self._metrics.setdefault(name, MetricByHost()).add_provisional(value, host)

    def set_description(self, description: JobDescription) -> None:
        """Replace the job's description."""
        self.description = description
        if self._finder is None:
            found = [self._compiled(name, regex) for name, regex in description.job.algorithm.metric_definitions]
            self._finder = MetricFinder([each for each in found if each is not None])
            self._metrics = {each.name: MetricByHost() for each in self._finder.definitions}

    def add_progress(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``, in seconds of a monotonic clock."""
        self._rates.add(progress, now)

    def snapshot(self, now: datetime) -> JobSnapshot:
        """Return what is known of the job at the time ``now``."""
        order = self.description.hosts if self.description else ()
        is_over = self.description is not None and self.description.has_ended
        known = self.description
        return replace(
            create_snapshot(known, now, self.failure) if known else JobSnapshot(self.name),
            hosts=tuple(self._hosts()),
            channels=self._rates.statuses(over=is_over),
            metrics=tuple(series.summary(name, order) for name, series in self._metrics.items() if series),
            lines=self._count,
        )

    def _found(self, values: Iterable[tuple[str, float]]) -> Iterator[tuple[str, float]]:
        """Yield the values that are found, and record a problem with an expression once."""
        yield from values
        for each in self._finder.definitions if self._finder else ():
            if each.problem and each.name not in self._off:
                self._off.add(each.name)
                self.problems.append(each.problem)

    def _compiled(self, name: str, regex: str) -> Definition | None:
        try:
            return Definition(name, regex)
        except DataError as error:
            self.problems.append(str(error))
            return None

    def _hosts(self) -> list[HostStatus]:
        known = self.description.hosts if self.description else ()
        names = dict.fromkeys([*known, *self._last, *self._unfinished])
        return [
            HostStatus(name, self.roles.get(name, ""), self._line(name), self._activity.get(name, HostActivity()))
            for name in names
        ]

    def _line(self, host: str) -> str | None:
        """Return the line that a host is writing, else its last one."""
        if host in self._unfinished and self._unfinished[host].shown:
            return truncate(self._unfinished[host].shown, LINE_CHARACTERS)
        return truncate(render_line(self._last[host]), LINE_CHARACTERS) if host in self._last else None


@dataclass(frozen=True)
class UnfinishedLine:
    """A line that has not ended: what a terminal shows of it, and its last frame."""

    shown: str
    frame: str

    @classmethod
    def parse(cls, text: str) -> UnfinishedLine:
        """Parse a line as the host wrote it."""
        return cls(render_line(text).strip(), last_frame(text))


class MetricByHost:
    """A metric's values, a series for each host: the losses of two hosts in turn are the curve of neither."""

    def __init__(self) -> None:
        self._hosts: dict[str, DownsampledSeries] = {}
        #: The values in lines that have not ended.
        self._provisional: dict[str, DownsampledSeries] = {}

    def add(self, value: float, host: str | None) -> None:
        """Add a value of a host; ``None`` where the host is unknown."""
        self._hosts.setdefault(host or "", DownsampledSeries()).add(value)

    def add_provisional(self, value: float, host: str) -> None:
        """Add a value in a line that the host has not ended."""
        self._provisional.setdefault(host, DownsampledSeries()).add(value)

    def drop_provisional(self, host: str) -> None:
        """Drop the provisional values of a host: its line has ended."""
        self._provisional.pop(host, None)

    def __bool__(self) -> bool:
        """Return whether any host has values."""
        return bool(self._hosts or self._provisional)

    def summary(self, name: str, order: Sequence[str]) -> MetricSummary:
        """Return the values of the first host in ``order`` that has any. At least one host must have some.

        The last value may be provisional. The points are not, unless all are: each restart of a progress bar would be a
        step of the curve.
        """
        hosts = dict.fromkeys([*self._hosts, *self._provisional])
        host = next((each for each in order if each in hosts), next(iter(hosts)))
        parts = [part[host] for part in (self._hosts, self._provisional) if host in part]
        return MetricSummary(name, parts[0].count, parts[-1].last, parts[0].points(), host if len(hosts) > 1 else "")


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
