"""The fake's Amazon CloudWatch: the operations of `scriptmode serve` on the metrics of the fake's training jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scriptmode.serve.metric_operations import Metrics, MetricValue
from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.service_calls import Operation


class FakeMetrics:
    """The operations on metrics."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        served = Metrics(self, lambda: account.clock.wall_time().timestamp(), expires=True).operations
        names = {"get_metric_data": "GetMetricData", "get_metric_statistics": "GetMetricStatistics"}
        self.operations: dict[str, Operation] = {method: served[name] for method, name in names.items()}

    def values(self, name: str) -> Mapping[str, Sequence[MetricValue]]:
        """Return the values of a job's metrics so far."""
        job = self._account.jobs.get(name)
        if job is None:
            return {}
        created = self._account.clock.wall_time(job.created).timestamp()
        return {
            metric: [MetricValue(created + point.second, point.value) for point in points]
            for metric, points in job.points(self._account.clock.now()).items()
        }
