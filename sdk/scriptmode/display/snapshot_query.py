"""One look at a job that nobody follows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from scriptmode import messages
from scriptmode.display.collector import ChannelRates, MetricByHost
from scriptmode.display.follower import find_roles
from scriptmode.display.snapshot import HostStatus, JobSnapshot, MetricSummary, Observations, create_snapshot
from scriptmode.errors import ScriptmodeError
from scriptmode.platforms.base import FAILED, host_names, is_on_this_machine
from scriptmode.spec.metric_definitions import parse_definitions

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from scriptmode.platforms.base import Metric, Platform

_T = TypeVar("_T")
#: Of a log that is looked through before a card is shown: about a second's.
_MOST_LOG_BYTES = 5_000_000


def query_snapshot(name: str, platform: Platform) -> tuple[JobSnapshot, list[str], dict[str, str]]:
    """Give a job as it is now, what could not be learned of it, and, of one that failed, where its log is.

    Raises what `Platform.describe` raises; whatever else cannot be learned is a sentence.
    """
    notes: list[str] = []

    def asked(call: Callable[[], _T], instead: _T) -> _T:
        try:
            return call()
        except ScriptmodeError as error:
            notes.append(str(error))
            return instead

    description = platform.describe(name)
    rates = ChannelRates()
    rates.take(asked(lambda: platform.progress(name), ()), time.monotonic())
    known = find_roles(description)
    hosts = tuple(HostStatus(host, known.get(host, "")) for host in host_names(description))
    metrics: tuple[MetricSummary, ...] = ()
    if large := asked(lambda: _large_log(description, platform), 0):
        notes.append(
            f"the log has {messages.format_bytes(large)}, and no metrics were looked for in it: job.metrics() does"
        )
    else:
        metrics = _summarize_metrics(asked(lambda: platform.metrics(description), []), host_names(description))
    view = create_snapshot(description, platform.clock.wall_time(), Observations(hosts, rates.data(), metrics))
    empty: dict[str, str] = {}
    places = asked(lambda: platform.log_locations(name), empty) if view.status == FAILED else empty
    return view, notes, places


def _large_log(description: Mapping[str, Any], platform: Platform) -> int:
    """Give the bytes of a log on this machine that a job's metrics are to be found in, if they are many; else 0."""
    if not parse_definitions(description) or not is_on_this_machine(description):
        return 0
    logs = map(Path, platform.log_locations(str(description["TrainingJobName"])).values())
    size = sum(log.stat().st_size for log in logs if log.is_file())
    return size if size > _MOST_LOG_BYTES else 0


def _summarize_metrics(metrics: Iterable[Metric], order: Sequence[str]) -> tuple[MetricSummary, ...]:
    found: dict[str, MetricByHost] = {}
    for metric in metrics:
        found.setdefault(metric.name, MetricByHost()).add(metric.value, metric.host)
    return tuple(series.values(name, order) for name, series in found.items())
