"""Snapshots of a job, built from its log lines and descriptions.

Memory is bounded: of a host the last line is kept, of a metric `MAX_POINTS` values, of a channel the samples of the
last seconds.

The line that a host has not ended yet, such as a progress bar, is observed at intervals. What it shows replaces the
host's last line, and its values of metrics are provisional: the values of the ended line replace them, and they form a
curve only until a line with the metric has ended.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
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
        self._finder = MetricFinder(())
        #: Errors of the metrics' expressions.
        self._errors: list[str] = []
        #: In the order in which they are shown.
        self._metrics: defaultdict[str, MetricByHost] = defaultdict(MetricByHost)
        self._last: dict[str, str] = {}
        self._activity: Mapping[str, HostActivity] = {}
        self._unfinished: dict[str, str] = {}
        self._count = 0
        self._rates = ChannelRates()

    @property
    def problems(self) -> list[str]:
        """Metrics whose expressions are wrong, or took too long and are not searched for any more."""
        return [*self._errors, *(each.problem for each in self._finder.definitions if each.problem)]

    def add_event(self, event: LogEvent) -> None:
        """Record one line of the log."""
        self._count += 1
        # The end of a long line: what a progress bar drew last.
        self._last[event.host] = event.message[-KEPT_CHARACTERS:]
        self._unfinished.pop(event.host, None)
        for metric in self._metrics.values():
            metric.provisional.pop(event.host, None)
        for name, value in self._finder.find(event.message):
            self.add_value(name, value, event.host)

    def add_value(self, name: str, value: float, host: str | None) -> None:
        """Record a metric's value of a host; ``None`` where the host is unknown."""
        self._metrics[name].ended[host or ""].add(value)

    def set_activity(self, activity: Mapping[str, HostActivity]) -> None:
        """Replace what the hosts do now."""
        self._activity, before = activity, self._unfinished
        self._unfinished = {host: each.line for host, each in activity.items() if each.line}
        for host, line in self._unfinished.items():
            if line != before.get(host):
                for name, value in self._finder.find_in_frame(last_frame(line)):
                    self._metrics[name].provisional[host].add(value)

    def set_description(self, description: JobDescription) -> None:
        """Replace the job's description; the first one defines the metrics."""
        if self.description is None:
            found = description.job.algorithm.metric_definitions
            self._finder = MetricFinder([each for one in found for each in self._compile(*one)])
            self._metrics.update({each.name: MetricByHost() for each in self._finder.definitions})
        self.description = description

    def add_progress(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``, in seconds of a monotonic clock."""
        self._rates.add(progress, now)

    def snapshot(self, now: datetime) -> JobSnapshot:
        """Return what is known of the job at the time ``now``."""
        known = self.description
        hosts = known.hosts if known else ()
        return replace(
            create_snapshot(known, now, self.failure) if known else JobSnapshot(self.name),
            hosts=tuple(map(self._host, dict.fromkeys([*hosts, *self._last, *self._unfinished]))),
            channels=self._rates.statuses(over=known is not None and known.has_ended),
            metrics=tuple(metric.summary(name, hosts) for name, metric in self._metrics.items() if metric),
            lines=self._count,
        )

    def _compile(self, name: str, regex: str) -> Iterator[Definition]:
        try:
            yield Definition(name, regex)
        except DataError as error:
            self._errors.append(str(error))

    def _host(self, name: str) -> HostStatus:
        """Return a host with the line that it is writing, else its last one."""
        line = render_line(self._unfinished.get(name, "")).strip() or render_line(self._last.get(name, ""))
        activity = self._activity.get(name, HostActivity())
        return HostStatus(name, self.roles.get(name, ""), truncate(line, LINE_CHARACTERS), activity)


class MetricByHost:
    """A metric's values, a series for each host: the losses of two hosts in turn are the curve of neither."""

    def __init__(self) -> None:
        self.ended: defaultdict[str, DownsampledSeries] = defaultdict(DownsampledSeries)
        #: The values in lines that have not ended.
        self.provisional: defaultdict[str, DownsampledSeries] = defaultdict(DownsampledSeries)

    def __bool__(self) -> bool:
        """Return whether any host has values."""
        return bool(self.ended or self.provisional)

    def summary(self, name: str, order: Sequence[str]) -> MetricSummary:
        """Return the values of the first host in ``order`` that has any. At least one host must have some.

        The last value may be provisional. The points are not, unless all are: each restart of a progress bar would be a
        step of the curve.
        """
        hosts = dict.fromkeys([*self.ended, *self.provisional])
        host = next((each for each in order if each in hosts), next(iter(hosts)))
        parts = [part[host] for part in (self.ended, self.provisional) if host in part]
        return MetricSummary(name, parts[0].count, parts[-1].last, parts[0].points(), host if len(hosts) > 1 else "")


class ChannelRates:
    """The rates at which the channels' data arrived in the last `_RATE_SECONDS`."""

    def __init__(self) -> None:
        self._samples: defaultdict[str, deque[tuple[float, int]]] = defaultdict(deque)
        self._latest: Sequence[ChannelProgress] = ()

    def add(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``."""
        self._latest = tuple(progress)
        for each in self._latest:
            samples = self._samples[each.channel]
            samples.append((now, each.done))
            # The first sample that is kept is older than the window, or the only one.
            while len(samples) > 2 and samples[1][0] < now - _RATE_SECONDS:  # noqa: PLR2004
                samples.popleft()

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
