"""The content of the fake's AWS account."""

from __future__ import annotations

import gzip
import io
import tarfile
import threading
from collections.abc import Mapping
from typing import Any

from scriptmode.testing._fake_clock import FakeClock
from scriptmode.testing._fake_job import FakeJob
from scriptmode.testing._job_life import Life
from scriptmode.testing._service_calls import Call, Fault


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
