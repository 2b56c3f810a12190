"""A fake Amazon SageMaker in memory, in place of a boto3 session: it answers the calls of botocore's own clients."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from scriptmode.testing._fake_account import Call, FakeAccount, Fault, Operation, ServiceError, deep_copy
from scriptmode.testing._fake_clock import FakeClock
from scriptmode.testing._fake_cloudwatch_logs import FakeLogs
from scriptmode.testing._fake_job import FakeJob
from scriptmode.testing._fake_s3 import FakeObjects, Transfers
from scriptmode.testing._job_life import Life
from scriptmode_serve._http.other_services import describe_role
from scriptmode_serve._operations.aws_json import ApiError, NotServedError, not_found_error
from scriptmode_serve._operations.metric_operations import Metrics, MetricValue
from scriptmode_serve._operations.paging import list_tags, list_training_jobs
from scriptmode_serve._operations.quotas import require_quotas
from scriptmode_serve._operations.request_errors import check_training_job, name_used_error, status_error, validate

_OK = 200
#: The key of a call's arguments in botocore's context of the call.
_ARGUMENTS = "arguments of the fake's operation"
#: No file and no profile of this machine: a place in the file, a variable, the value and its conversion.
_VARIABLES = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
    "ignore_configured_endpoint_urls": (None, None, True, None),
}
#: Sessions of botocore create one client at a time.
_CREATING = threading.Lock()


class FakeSageMaker(FakeAccount):
    """An AWS account with training jobs on a fake clock, in place of a boto3 session.

    Pass it to ``Estimator(sagemaker_session=...)``.

    Args:
        region_name: Region of the account.
        account: Number of the account.
        clock: Clock of the jobs, by default a new `FakeClock`.

    Attributes:
        calls: Every `Call` that reached a service, in order.
        buckets: Owner's account by the name of a bucket. Buckets that only ``objects`` mentions are the account's own.
        roles: ARN by the name of an IAM role.
        sagemaker_config: Content of the SageMaker config file as a dict; ``None`` to read this machine's.
        caller_arn: ARN that STS returns for the session's credentials.
        quotas: Most instances in use at once by instance type, for training jobs and separately for spot training jobs.
        lives: Lives of the next training jobs, in order; see `expect`.
        default_life: Life of all other training jobs.
        log_delay: Seconds until CloudWatch Logs has a log line.
        page_lines: Maximum number of log lines in one response.
        empty_log_pages: Number of responses with a new token and without lines before each response with lines.
    """

    def __init__(
        self, region_name: str = "us-west-2", account: str = "123456789012", clock: FakeClock | None = None
    ) -> None:
        super().__init__(region_name, account, FakeClock() if clock is None else clock)
        metrics = Metrics(self._metrics, lambda: self.clock.wall_time().timestamp(), expires=True)
        self._operations: dict[str, Mapping[str, Operation]] = {
            # Those of `scriptmode serve` on metrics and logs.
            "cloudwatch": _by_method(metrics.operations),
            "iam": {"get_role": self._get_role},
            "logs": _by_method(FakeLogs(self).operations),
            "s3": FakeObjects(self).operations,
            "sagemaker": {
                "create_training_job": self._create,
                "describe_training_job": self._describe,
                "list_tags": self._list_tags,
                "list_training_jobs": self._list,
                "stop_training_job": self._stop,
                "update_training_job": self._update,
            },
            "sagemaker-runtime": {},
            "sts": {
                "get_caller_identity": lambda _: {"UserId": "AIDAFAKE", "Account": self.account, "Arn": self.caller_arn}
            },
        }

    def __repr__(self) -> str:
        return f"FakeSageMaker(region_name={self.region_name!r}, account={self.account!r})"

    def client(self, service_name: str, region_name: str | None = None, **settings: object) -> Any:
        """Create a client of a service, like ``boto3.Session.client``.

        Args:
            service_name: ``cloudwatch``, ``iam``, ``logs``, ``s3``, ``sagemaker`` or ``sts``, or
                ``sagemaker-runtime``, which has no operations.
            region_name: Region in the client's ``meta``, by default the session's.
            settings: Other arguments of boto3.

        Returns:
            A client of botocore, whose operations validate their arguments like boto3.

        Raises:
            NotImplementedError: The fake does not have the service.
        """
        if service_name not in self._operations:
            known = ", ".join(self._operations)
            raise NotImplementedError(f"the fake session has no service {service_name!r}; it has {known}")
        keys = {"aws_access_key_id": "fake", "aws_secret_access_key": "fake"}
        given = {**keys, "region_name": region_name or self.region_name, **settings}
        with _CREATING:
            client = _session().create_client(service_name, **given)
        # Nothing is tried again: a fault is what is left after botocore's own retries.
        client.meta.events.register("provide-client-params", self._receive)
        client.meta.events.register("before-call", self._answer)
        return client

    def _receive(self, params: Mapping[str, Any], model: Any, context: dict[str, object], **_: object) -> None:
        """Keep the arguments of a call, which botocore checks and changes before it calls `_answer`."""
        service, method = _names(model)
        if method not in self._operations[service]:
            known = ", ".join(sorted(self._operations[service])) or "no operations"
            raise NotImplementedError(f"the fake {service!r} client has no {method!r}; it has {known}")
        context[_ARGUMENTS] = deep_copy(params)

    def _answer(self, model: Any, params: Mapping[str, Any], context: Mapping[str, Any], **_: object) -> Any:
        """Return the response of a call: botocore calls no service."""
        from botocore.awsrequest import AWSResponse

        call, url = Call(*_names(model), context[_ARGUMENTS]), params["url"]
        try:
            status, answer = _OK, self._call(call, url, _with_seconds(model, call.arguments))
        except NotServedError as error:
            raise NotImplementedError(f"the fake {call.service!r} client: {error.message}") from None
        except ApiError as error:
            status, answer = error.status, {"Error": {"Code": error.code, "Message": error.message}}
        metadata = {"RequestId": "00000000-0000-0000-0000-000000000000", "HTTPStatusCode": status, "HTTPHeaders": {}}
        return AWSResponse(url, status, {}, None), {**answer, "ResponseMetadata": {**metadata, "RetryAttempts": 0}}

    def _call(self, call: Call, url: str, sent: Mapping[str, Any]) -> Mapping[str, Any]:
        with self.lock:
            self.settle()
            self.calls.append(call)
            fault = next((fault for fault in self.faults if fault.meets(call.service, call.operation)), None)
            if fault is not None and not fault.answer_lost:
                raise fault.error(url)
            answer = self._operations[call.service][call.operation](sent)
            if fault is not None:
                raise fault.error(url)
            return answer

    def _create(self, request: Mapping[str, Any]) -> dict[str, object]:
        validate("CreateTrainingJobRequest", request)
        check_training_job(request)
        name = request["TrainingJobName"]
        if name in self.jobs:
            raise name_used_error(self.jobs[name].arn)
        arn = self.arn("sagemaker", f"training-job/{name}")
        life = self.lives[0] if self.lives else self.default_life
        job = FakeJob(request, life, self.clock, arn=arn)
        now = self.clock.now()
        in_progress = [other.request for other in self.jobs.values() if not other.ended(now)]
        require_quotas(request, in_progress, self.quotas)
        del self.lives[:1]
        self.jobs[name] = job
        return {"TrainingJobArn": arn}

    def _describe(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        return self._job(arguments).description(self.clock.now())

    def _stop(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        job = self._job(arguments)
        now = self.clock.now()
        if job.ended(now):
            raise status_error(job.status(now))
        job.stop(now)
        return {}

    def _update(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        job = self._job(arguments)
        for name, value in arguments.items():
            job.request[name] = {**job.request.get(name, {}), **value} if isinstance(value, Mapping) else value
        return {"TrainingJobArn": job.arn}

    def _list(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        now = self.clock.now()
        return list_training_jobs([job.summary(now) for job in self.jobs.values()], arguments)

    def _list_tags(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        validate("ListTagsInput", arguments)
        for job in self.jobs.values():
            if job.arn == arguments["ResourceArn"]:
                tags = {tag["Key"]: tag["Value"] for tag in job.request.get("Tags", [])}
                return list_tags(tags, arguments)
        raise not_found_error()

    def _metrics(self, name: str) -> Mapping[str, Sequence[MetricValue]]:
        return self.jobs[name].metrics(self.clock.now()) if name in self.jobs else {}

    def _get_role(self, arguments: Mapping[str, Any]) -> dict[str, object]:
        name = arguments["RoleName"]
        if name not in self.roles:
            raise ServiceError("NoSuchEntity", f"The role with name {name} cannot be found.", 404)
        return {"Role": {**describe_role(self.roles[name]), "CreateDate": self.clock.start}}

    def _job(self, arguments: Mapping[str, Any]) -> FakeJob:
        job = self.jobs.get(arguments["TrainingJobName"])
        if job is None:
            raise not_found_error()
        return job

    def expect(self, *lives: Life) -> None:
        """Set the lives of the next training jobs.

        Args:
            lives: One life for each job, in the order of their creation.
        """
        self.lives.extend(lives)

    def throttle(self, operation: str, times: int = 3, service: str | None = None, *, after: int = 0) -> None:
        """Raise ``ThrottlingException`` from calls of an operation. Arguments and errors are those of `fault`."""
        self.fault(operation, ServiceError("ThrottlingException", "Rate exceeded"), times, service=service, after=after)

    def disconnect(
        self, operation: str, times: int = 1, service: str | None = None, *, after: int = 0, answer_lost: bool = False
    ) -> None:
        """Raise a connection error from calls of an operation. Other arguments and errors are those of `fault`.

        With ``answer_lost`` the operation is executed, and the connection is closed before its response.
        """

        def error(url: str) -> BaseException:
            from botocore.exceptions import ConnectionClosedError, EndpointConnectionError

            kind: type[BaseException] = ConnectionClosedError if answer_lost else EndpointConnectionError
            return kind(endpoint_url=url)  # type: ignore[call-arg]

        self._add(Fault(operation, error, times, after, service, answer_lost))

    def fault(
        self, operation: str, error: BaseException, times: int = 1, *, service: str | None = None, after: int = 0
    ) -> None:
        """Raise an error from calls of an operation.

        Args:
            operation: Name of the operation, such as ``describe_training_job``.
            error: A `ServiceError`, which the caller gets as botocore's ``ClientError``, or any other exception.
            times: Number of calls that fail.
            service: Service of the operation, by default any.
            after: Number of calls that succeed before.

        Raises:
            ValueError: The fake does not have the operation.
        """
        self._add(Fault(operation, lambda _url: error, times, after, service))

    def _add(self, fault: Fault) -> None:
        names = [fault.service] if fault.service is not None else list(self._operations)
        known = sorted({name for service in names for name in self._operations.get(service, ())})
        if fault.operation not in known:
            what = f"operation {fault.operation!r} of {fault.service or 'any service'} is not one of the fake's"
            raise ValueError(f"{what}; give one of {', '.join(known or self._operations)}")
        self.faults.append(fault)


def _names(model: Any) -> tuple[str, str]:
    """Return the service of an operation's model, and boto3's name of the method."""
    from botocore import xform_name

    return model.service_model.service_name, xform_name(model.name)


def _with_seconds(model: Any, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Return arguments whose times are seconds since the epoch, as boto3 sends them."""
    from botocore.utils import parse_to_aware_datetime

    times = {name for name in arguments if model.input_shape.members[name].type_name == "timestamp"}
    return {**arguments, **{name: parse_to_aware_datetime(arguments[name]).timestamp() for name in times}}


@cache
def _session() -> Any:
    """Return what creates the clients of all accounts: each reading of botocore's models takes some 0.2 s."""
    from botocore.session import Session

    session = Session(_VARIABLES)
    session.register("creating-client-class.s3", lambda base_classes, **_: base_classes.insert(0, Transfers))
    return session


def _by_method(operations: Mapping[str, Operation]) -> dict[str, Operation]:
    """Return operations by boto3's names of their methods."""
    from botocore import xform_name

    return {xform_name(name): operation for name, operation in operations.items()}
