"""Values of metrics in the logs of training jobs, with the times of their lines."""

from __future__ import annotations

import threading
from datetime import datetime

from scriptmode._core.spec.job_request import JobRequest
from scriptmode._core.spec.metric_definitions import Definition, LogPositions, MetricFinder
from scriptmode.errors import JobNotFoundError
from scriptmode_local import LocalPlatform
from scriptmode_serve._operations.log_pages import Line
from scriptmode_serve._operations.log_times import KnownTimes
from scriptmode_serve._operations.metric_operations import MetricValue, last_values

#: Jobs whose values are kept in memory.
_MOST_JOBS = 200


class _JobValues:
    """The values of one job's metrics by their names, as far as its logs were read."""

    def __init__(self, job: JobRequest) -> None:
        self.finder = MetricFinder([Definition(name, regex) for name, regex in job.algorithm.metric_definitions])
        self.positions = LogPositions()
        self.offsets: dict[str, int] = {}
        self.values: dict[str, list[MetricValue]] = {metric.name: [] for metric in self.finder.definitions}

    def add(self, host: str, line: Line) -> None:
        """Add the values of one line of a host's log."""
        self.positions.read_heading(host, line.text)
        if values := list(self.finder.find(line.text)):
            position = self.positions.find(host, line.text)
            for metric, value in values:
                self.values.setdefault(metric, []).append(MetricValue(line.time / 1000, value, host, *position))


class JobMetrics:
    """The metrics of the training jobs of a platform."""

    def __init__(self, platform: LocalPlatform, times: KnownTimes) -> None:
        self._platform = platform
        self._times = times
        self._lock = threading.Lock()
        self._known: dict[tuple[str, datetime | None], _JobValues] = {}

    def final_values(self, name: str) -> list[dict[str, object]]:
        """Return the last value of each metric of a job, as DescribeTrainingJob has them."""
        try:
            return last_values(self.values(name))
        except (JobNotFoundError, FileNotFoundError):
            return []

    def values(self, name: str) -> dict[str, list[MetricValue]]:
        """Return the values of a job's metrics by their names; read what its logs have more than at the last call.

        Raises `JobNotFoundError`, `UnreadableJobError`, and ``FileNotFoundError`` for a job that is deleted meanwhile.
        """
        description = self._platform.describe(name)
        with self._lock:
            key = name, description.created
            known = self._known.pop(key, None) or _JobValues(description.job)
            self._known[key] = known
            while len(self._known) > _MOST_JOBS:
                self._known.pop(next(iter(self._known)))
            for host, log in self._times.logs(description) if known.finder.definitions else ():
                for line in log.forwards(known.offsets.get(host, 0)):
                    known.offsets[host] = line.end
                    known.add(host, line)
            return {metric: list(values) for metric, values in known.values.items() if values}
