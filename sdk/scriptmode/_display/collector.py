"""Snapshots of a job, built from its log lines and descriptions.

Memory is bounded: of a host the last line is kept, of a metric `MAX_POINTS` values, of a channel the samples of the
last seconds.

The line that a host has not ended yet, such as a progress bar, is observed at intervals. What it shows replaces the
host's last line, and its values of metrics are provisional: the values of the ended line replace them, and they form a
curve only until a line with the metric has ended.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from scriptmode._core.spec.host_values import ChannelProgress, HostActivity
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.job_failure import Failure
from scriptmode._core.spec.metric_definitions import Definition, MetricFinder
from scriptmode._core.spec.service_values import LogEvent
from scriptmode._display.formatting import format_channel, format_usage, truncate
from scriptmode._display.snapshot import JobSnapshot, MetricSummary, Row, create_snapshot
from scriptmode.errors import DataError
from scriptmode_runtime._terminal_line import last_frame, render_line

#: Number of characters shown of a host's last line, and of those that are kept.
LINE_CHARACTERS, KEPT_CHARACTERS = 500, 64 * 1024
#: Seconds over which a rate is measured, and after which the first one is known.
_RATE_SECONDS, _LEAST_RATE_SECONDS = 10.0, 0.4
#: Number of points that are kept at most; after the first halving half as many at least.
MAX_POINTS = 120


class DownsampledSeries:
    """Values of one metric as they arrive, of which points of a sparkline are kept.

    The points are every n-th value, and the last one. When there are `MAX_POINTS`, every second one is dropped, and n
    doubles.
    """

    def __init__(self) -> None:
        self.last = math.nan
        self._count = 0
        self._points: list[float] = []
        self._step = 1

    def add(self, value: float) -> None:
        """Add a value."""
        if self._count % self._step == 0 and math.isfinite(value):
            self._points.append(value)
        self._count += 1
        self.last = value
        if len(self._points) == MAX_POINTS:
            del self._points[1::2]
            self._step *= 2

    def points(self) -> tuple[float, ...]:
        """Return the points."""
        is_kept = (self._count - 1) % self._step == 0 or not math.isfinite(self.last)
        return tuple(self._points if is_kept else [*self._points, self.last])


#: Series of values by host and metric.
_Values = defaultdict[str, defaultdict[str, DownsampledSeries]]


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
        #: The values of each metric by host: the losses of two hosts in turn are the curve of neither.
        self._ended: _Values = defaultdict(partial(defaultdict, DownsampledSeries))
        #: Those in lines that have not ended.
        self._provisional: _Values = defaultdict(partial(defaultdict, DownsampledSeries))
        self._last: dict[str, str] = {}
        self._activity: Mapping[str, HostActivity] = {}
        self._unfinished: dict[str, str] = {}
        self._count = 0
        self._progress: Sequence[ChannelProgress] = ()
        #: Of each channel the seconds and the bytes, from the last one before the time over which a rate is measured.
        self._samples: defaultdict[str, deque[tuple[float, int]]] = defaultdict(deque)

    def add_event(self, event: LogEvent) -> None:
        """Record one line of the log."""
        self._count += 1
        # The end of a long line: what a progress bar drew last.
        self._last[event.host] = event.message[-KEPT_CHARACTERS:]
        self._unfinished.pop(event.host, None)
        self._provisional.pop(event.host, None)
        for name, value in self._finder.find(event.message):
            self.add_value(name, value, event.host)

    def add_value(self, name: str, value: float, host: str | None) -> None:
        """Record a metric's value of a host; ``None`` where the host is unknown."""
        self._ended[host or ""][name].add(value)

    def set_activity(self, activity: Mapping[str, HostActivity]) -> None:
        """Replace what the hosts do now."""
        self._activity, before = activity, self._unfinished
        self._unfinished = {host: doing.line for host, doing in activity.items() if doing.line}
        for host, line in self._unfinished.items():
            if line != before.get(host):
                for name, value in self._finder.find_in_frame(last_frame(line)):
                    self._provisional[host][name].add(value)

    def set_description(self, description: JobDescription) -> None:
        """Replace the job's description; the first one defines the metrics."""
        if self.description is None:
            definitions = description.job.algorithm.metric_definitions
            self._finder = MetricFinder([metric for row in definitions for metric in self._compile(*row)])
        self.description = description

    def add_progress(self, progress: Iterable[ChannelProgress], now: float) -> None:
        """Record the progress of every channel at ``now``, in seconds of a monotonic clock."""
        channels = tuple(progress)
        for channel in channels:
            samples = self._samples[channel.channel]
            samples.append((now, channel.done))
            while len(samples) > 2 and samples[1][0] < now - _RATE_SECONDS:  # noqa: PLR2004
                samples.popleft()
        # Last: another thread may draw meanwhile.
        self._progress = channels

    def snapshot(self, now: datetime) -> JobSnapshot:
        """Return what is known of the job at the time ``now``."""
        known = self.description
        hosts = known.hosts if known else ()
        return replace(
            create_snapshot(known, now, self.failure) if known else JobSnapshot(self.name),
            hosts=tuple(map(self._host, dict.fromkeys([*hosts, *self._last, *self._unfinished]))),
            channels=tuple(map(self._channel, self._progress)),
            metrics=tuple(self._metrics(hosts)),
            lines=self._count,
            notes=(*self._errors, *(metric.problem for metric in self._finder.definitions if metric.problem)),
        )

    def _channel(self, progress: ChannelProgress) -> Row:
        """Return a channel with its rate, unless it is complete or the job is over."""
        (began, before), (now, done) = self._samples[progress.channel][0], self._samples[progress.channel][-1]
        is_over = self.description is not None and self.description.has_ended
        is_complete = progress.total is not None and done >= progress.total
        is_known = not is_over and not is_complete and now - began >= _LEAST_RATE_SECONDS
        # Not negative: staging may start again from 0.
        rate = max(0.0, (done - before) / (now - began)) if is_known else None
        return Row(progress.channel, format_channel(progress, rate))

    def _metrics(self, order: Sequence[str]) -> Iterator[MetricSummary]:
        """Yield each metric with the values of the first host that has any.

        The last value may be provisional. The points are not, unless all are: each restart of a progress bar would be a
        step of the curve.
        """
        hosts: defaultdict[str, list[str]] = defaultdict(list)
        for host in dict.fromkeys([*order, *self._ended, *self._provisional]):
            for name in {**self._ended.get(host, {}), **self._provisional.get(host, {})}:
                hosts[name].append(host)
        defined = [metric.name for metric in self._finder.definitions if metric.name in hosts]
        for name in dict.fromkeys([*defined, *hosts]):
            host, *others = hosts[name]
            parts = [part[host][name] for part in (self._ended, self._provisional) if name in part.get(host, {})]
            yield MetricSummary(name, parts[-1].last, parts[0].points(), host if others else "")

    def _compile(self, name: str, regex: str) -> Iterator[Definition]:
        try:
            yield Definition(name, regex)
        except DataError as error:
            self._errors.append(str(error))

    def _host(self, name: str) -> Row:
        """Return a host with the line that it is writing, else its last one."""
        line = render_line(self._unfinished.get(name, "")).strip() or render_line(self._last.get(name, ""))
        activity = self._activity.get(name, HostActivity())
        facts = filter(None, (self.roles.get(name), format_usage(activity), activity.silence))
        return Row(name, " \u00b7 ".join(facts), truncate(line, LINE_CHARACTERS))
