"""The content of the fake's AWS account: jobs and objects, the calls that reached it, and faults of calls."""

from __future__ import annotations

import gzip
import io
import tarfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Callable

from scriptmode.testing._fake_clock import FakeClock
from scriptmode.testing._fake_job import FakeJob
from scriptmode.testing._job_life import Life
from scriptmode_serve._operations.aws_json import ApiError

Operation = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True)
class Call:
    """One call that reached the fake.

    Attributes:
        service: Service, such as ``logs``.
        operation: boto3's name of the method, such as ``get_log_events``.
        arguments: Arguments of the call, copied.
    """

    service: str
    operation: str
    arguments: Mapping[str, Any]


class ServiceError(ApiError):
    """An error response of a service.

    The caller gets it like from boto3: as botocore's ``ClientError``, or the service's subclass for the code.

    Args:
        code: Error code, such as ``ThrottlingException``.
        message: Message of the error.
        status: Status of the HTTP response.
    """


@dataclass
class Fault:
    """Calls of an operation that fail: ``times`` calls, after ``after`` successful ones.

    ``error`` creates the exception from the endpoint's URL. With ``answer_lost`` the operation is still executed.
    """

    operation: str
    error: Callable[[str], BaseException]
    times: int
    after: int
    service: str | None = None
    answer_lost: bool = False

    def meets(self, service: str, operation: str) -> bool:
        """Return whether a call is one that fails, and count it."""
        if operation != self.operation or self.service not in (None, service) or self.times < 1:
            return False
        if self.after > 0:
            self.after -= 1
            return False
        self.times -= 1
        return True


def deep_copy(value: Any) -> Any:
    """Copy dicts and lists, so that changes of one do not change the other; other values are not copied."""
    if isinstance(value, Mapping):
        return {key: deep_copy(content) for key, content in value.items()}
    if isinstance(value, (list, tuple)):
        return [deep_copy(content) for content in value]
    return value


class FakeAccount:
    """One AWS account in one Region: its buckets and objects, roles, quotas and training jobs.

    The attributes are described in `FakeSageMaker`.
    """

    def __init__(self, region_name: str, account: str, clock: FakeClock) -> None:
        self.region_name = region_name
        self.calls: list[Call] = []
        self.faults: list[Fault] = []
        self.account = account
        self.clock = clock
        self.buckets: dict[str, str] = {f"sagemaker-{region_name}-{account}": account}
        self.roles: dict[str, str] = {}
        self.sagemaker_config: dict[str, Any] | None = {}
        self.caller_arn = f"arn:{self._partition}:iam::{account}:user/fake"
        self.quotas: dict[str, int] = {}
        self.lives: list[Life] = []
        self.default_life = Life()
        self.log_delay = 0.0
        self.page_lines = 10_000
        self.empty_log_pages = 0
        self.jobs: dict[str, FakeJob] = {}
        #: One call at a time.
        self.lock = threading.RLock()
        self._objects: dict[str, bytes] = {}

    @property
    def objects(self) -> dict[str, bytes]:
        """The objects in S3: ``s3://bucket/key`` to bytes. A test may change them."""
        with self.lock:
            self.settle()
        return self._objects

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account and Region."""
        return f"arn:{self._partition}:{service}:{self.region_name}:{self.account}:{resource}"

    @property
    def _partition(self) -> str:
        if self.region_name.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region_name.startswith("us-gov-") else "aws"

    def settle(self) -> None:
        """Store the models of the jobs that have ended since."""
        now = self.clock.now()
        for job in self.jobs.values():
            if not job.model_is_stored and job.has_model(now):
                job.model_is_stored = True
                self._objects.update(_model_objects(job))


def _model_objects(job: FakeJob) -> Mapping[str, bytes]:
    model = job.life.model
    place = job.model_uri
    if isinstance(model, bytes):
        return {f"{place}model.tar.gz" if place.endswith("/") else place: model}
    if place.endswith("/"):
        return {place + path: content for path, content in model.items()}
    return {place: _archive(model)}


def _archive(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as zipped, tarfile.open(fileobj=zipped, mode="w") as archive:
        for path, content in files.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
