"""An Amazon SageMaker in memory, where a boto3 session would stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scriptmode.testing.fake_account import FakeAccount
from scriptmode.testing.fake_client import FakeClient
from scriptmode.testing.fake_clock import FakeClock
from scriptmode.testing.fake_cloudwatch import FakeMetrics
from scriptmode.testing.fake_cloudwatch_logs import FakeLogs
from scriptmode.testing.fake_iam import FakeIdentity, FakeRoles
from scriptmode.testing.fake_s3 import FakeObjects, FakeS3Client
from scriptmode.testing.fake_training_jobs import FakeTrainingJobs
from scriptmode.testing.service_calls import THROTTLED, Call, Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.testing.fake_client import Operation
    from scriptmode.testing.job_life import Life


class FakeSageMaker(FakeAccount):
    """An AWS account with training jobs that live their lives over a fake clock; stands in for a boto3 session.

    Give it to ``Estimator(sagemaker_session=...)``. ``calls`` has every call that reached a service, in order.
    Without ``clock``, it has a `FakeClock` of its own.
    """

    def __init__(
        self, region_name: str = "us-west-2", account: str = "123456789012", clock: FakeClock | None = None
    ) -> None:
        super().__init__(region_name, account, FakeClock() if clock is None else clock)
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self._operations: dict[str, Mapping[str, Operation]] = {
            "cloudwatch": FakeMetrics(self).operations,
            "iam": FakeRoles(self).operations,
            "logs": FakeLogs(self).operations,
            "s3": FakeObjects(self).operations,
            "sagemaker": FakeTrainingJobs(self).operations,
            "sts": FakeIdentity(self).operations,
        }

    def __repr__(self) -> str:
        return f"FakeSageMaker(region_name={self.region_name!r}, account={self.account!r})"

    def client(self, service_name: str, region_name: str | None = None, **settings: Any) -> Any:
        """Return a client of a service, as ``boto3.Session.client`` does; ``settings`` only appear in its ``meta``."""
        if service_name not in self._operations:
            raise NotImplementedError(
                f"the fake session has no service {service_name!r}; there is {', '.join(self._operations)}"
            )
        made = FakeS3Client if service_name == "s3" else FakeClient
        return made(service_name, self._operations[service_name], self, {"region_name": region_name, **settings})

    def expect(self, *lives: Life) -> None:
        """Set the lives of the next training jobs, in the order of their creation."""
        self.lives.extend(lives)

    def limit(self, instance_type: str, instances: int) -> None:
        """Set the quotas of an instance type: for training jobs, and, counted apart, for spot training jobs."""
        self.quotas[instance_type] = instances

    def throttle(self, operation: str, times: int = 3, service: str | None = None, *, after: int = 0) -> None:
        """Raise ``ThrottlingException`` from ``times`` calls of an operation, after ``after`` successful calls."""
        self.fault(operation, THROTTLED, times, service=service, after=after)

    def disconnect(
        self, operation: str, times: int = 1, service: str | None = None, *, after: int = 0, answer_lost: bool = False
    ) -> None:
        """Raise a connection error from ``times`` calls of an operation, after ``after`` successful calls.

        With ``answer_lost`` the call does reach it and is done, but the connection closes before the answer.
        """

        def error(url: str) -> BaseException:
            from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

            failure: BaseException = (ConnectionClosedError if answer_lost else EndpointConnectionError)(
                endpoint_url=url
            )
            return failure

        self._add(Fault(operation, error, times, after, service, answer_lost))

    def fault(
        self, operation: str, error: BaseException, times: int = 1, *, service: str | None = None, after: int = 0
    ) -> None:
        """Raise ``error`` from ``times`` calls of an operation, after ``after`` successful calls.

        A `ServiceError` reaches the caller as botocore's ``ClientError``; anything else is raised as it is.
        """
        self._add(Fault(operation, lambda _url: error, times, after, service))

    def _add(self, fault: Fault) -> None:
        names = [fault.service] if fault.service is not None else list(self._operations)
        known = sorted({name for service in names for name in self._operations.get(service, ())})
        if fault.operation not in known:
            raise ValueError(
                f"operation {fault.operation!r} of {fault.service or 'any service'} is not one of the fake's; "
                f"give one of {', '.join(known) or 'the services ' + ', '.join(self._operations)}"
            )
        self.faults.append(fault)
