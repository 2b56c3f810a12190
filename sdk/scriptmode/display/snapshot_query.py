"""One snapshot of a job that is not followed."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Callable, TypeVar

from scriptmode.core.handle.activity import find_activity, find_events
from scriptmode.core.handle.outcome import find_failure
from scriptmode.core.platforms.base import Platform
from scriptmode.core.spec.job_description import JobDescription
from scriptmode.core.spec.service_values import FAILED, HostActivity, JobEvent, Metric
from scriptmode.core.text import messages
from scriptmode.display.collector import ChannelRates, MetricByHost, UnfinishedLine
from scriptmode.display.follower import find_roles
from scriptmode.display.snapshot import HostStatus, JobSnapshot, MetricSummary, create_snapshot
from scriptmode.errors import ScriptmodeError

_T = TypeVar("_T")
#: Size of a log that is searched for metrics before a card is shown: about a second's work.
_MOST_LOG_BYTES = 5_000_000


def query_snapshot(
    name: str, platform: Platform, source_dir: str = ""
) -> tuple[JobSnapshot, list[str], dict[str, str]]:
    """Return a snapshot of a job, notes on what could not be queried, and the log locations of a failed job.

    Raises what `Platform.describe` raises; every other failure is a note.
    """
    notes: list[str] = []
    nothing: tuple[JobEvent, ...] = ()

    def query(call: Callable[[], _T], instead: _T) -> _T:
        try:
            return call()
        except ScriptmodeError as error:
            notes.append(str(error))
            return instead

    description = platform.describe(name)
    rates = ChannelRates()
    rates.add(query(lambda: platform.progress(name), ()), time.monotonic())
    roles = find_roles(description.job)
    idle: Mapping[str, HostActivity] = {}
    activity = query(lambda: find_activity(description, platform), idle)
    hosts = tuple(_host(host, roles.get(host, ""), activity.get(host, HostActivity())) for host in description.hosts)
    metrics: tuple[MetricSummary, ...] = ()
    if large := query(lambda: _large_log(description, platform), 0):
        notes.append(
            f"the log has {messages.format_bytes(large)}, and was not searched for metrics; job.metrics() searches it"
        )
    else:
        metrics = _summarize_metrics(query(lambda: platform.metrics(description), []), description.hosts)
    failure = find_failure(description, platform, source_dir)
    notes += [f"warning: {each}" for each in query(lambda: find_events(name, platform), nothing)]
    snapshot = create_snapshot(description, platform.clock.wall_time(), failure)
    snapshot = replace(snapshot, hosts=hosts, channels=rates.statuses(), metrics=metrics)
    empty: dict[str, str] = {}
    log_locations = query(lambda: platform.log_locations(name), empty) if snapshot.status == FAILED else empty
    return snapshot, notes, log_locations


def _host(name: str, role: str, activity: HostActivity) -> HostStatus:
    return HostStatus(name, role, UnfinishedLine.parse(activity.line).shown or None, activity)


def _large_log(description: JobDescription, platform: Platform) -> int:
    """Return the size of a log on this machine that would be searched for metrics, if it is too large; else 0."""
    job = description.job
    if not job.algorithm.metric_definitions or not job.resources.host_kind.is_local:
        return 0
    logs = map(Path, platform.log_locations(job.name).values())
    size = sum(log.stat().st_size for log in logs if log.is_file())
    return size if size > _MOST_LOG_BYTES else 0


def _summarize_metrics(metrics: Iterable[Metric], order: Sequence[str]) -> tuple[MetricSummary, ...]:
    found: dict[str, MetricByHost] = {}
    for metric in metrics:
        found.setdefault(metric.name, MetricByHost()).add(metric.value, metric.host)
    return tuple(series.summary(name, order) for name, series in found.items())
