"""The fake's Amazon CloudWatch: the operations of `scriptmode serve` on the metrics of the fake's training jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scriptmode.testing._fake_account import FakeAccount
from scriptmode_serve._operations.metric_operations import Metrics, MetricValue


class FakeMetrics:
    """The operations on metrics."""

    def __init__(self, account: FakeAccount) -> None:
        self._account = account
        self.operations = Metrics(self, lambda: account.clock.wall_time().timestamp(), expires=True).operations

    def values(self, name: str) -> Mapping[str, Sequence[MetricValue]]:
        """Return the values of a job's metrics so far."""
        job = self._account.jobs.get(name)
        return {} if job is None else job.metrics(self._account.clock.now())
