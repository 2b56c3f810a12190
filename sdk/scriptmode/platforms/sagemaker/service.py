"""Amazon SageMaker through boto3; every error of the service leaves as one of ours."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from scriptmode.errors import (
    CredentialsError,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    RequestError,
    SpecError,
)
from scriptmode.job import ENDED
from scriptmode.platforms import LogEvent, PlatformDefaults
from scriptmode.s3 import S3

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.spec import TrainingJobSpec

_LOG_GROUP = "/aws/sagemaker/TrainingJobs"
_ROLE = re.compile(r"arn:aws[a-z-]*:iam::(\d{12}):role/.+")
#: CloudWatch usually has a line within this time.
_TAIL_SECONDS = 2.0
_T = TypeVar("_T")


class SageMakerPlatform:
    """Training jobs of one account and region: those of ``session``, by default boto3's own settings.

    boto3 is imported by the first call that needs the service.
    """

    poll_seconds = 5.0

    def __init__(self, session: Any = None) -> None:
        self._session = session
        self._clients: dict[str, Any] = {}

    def check(self, spec: TrainingJobSpec) -> None:
        """Raise `SpecError` for a job that Amazon SageMaker has no image, role or data for."""
        if spec.algorithm.image_uri is None:
            raise SpecError(
                f"image_uri is missing; instance type {spec.resources.types[0]!r} is of Amazon SageMaker, whose hosts "
                "start from an image in Amazon ECR (finding one by framework_version is not supported yet)"
            )
        if spec.role is None:
            raise SpecError("role is missing; give the ARN of the IAM role that the training job takes on")
        _account(spec.role)
        for what, uri in _places(spec):
            if uri is not None and uri.startswith("file://"):
                raise SpecError(f"{what} is {uri!r}, a place of this machine; Amazon SageMaker needs it in S3")

    def defaults(self, role: str | None) -> PlatformDefaults:
        """Name the default bucket of the role's account and the session's region, without a call."""
        region = self._region()
        bucket = f"s3://sagemaker-{region}-{_account(role)}"
        return PlatformDefaults(role, region, bucket, f"{bucket}/scriptmode/source")

    def put_source(self, archive: bytes, uri: str) -> None:
        """Upload the archive unless the object is there already: its name holds its digest."""
        store = S3(self._call(uri, lambda: self._client("s3")))
        if not store.exists(uri):
            store.upload_bytes(archive, uri)

    def create(self, request: Mapping[str, Any]) -> str:
        """Call CreateTrainingJob."""
        name = str(request["TrainingJobName"])
        return str(self._call(name, lambda: self._client("sagemaker").create_training_job(**request))["TrainingJobArn"])

    def describe(self, name: str) -> dict[str, Any]:
        """Call DescribeTrainingJob."""
        return dict(self._call(name, lambda: self._client("sagemaker").describe_training_job(TrainingJobName=name)))

    def stop(self, name: str) -> None:
        """Call StopTrainingJob; a job that ended is left as it is."""
        if self.describe(name)["TrainingJobStatus"] not in ENDED:
            self._call(name, lambda: self._client("sagemaker").stop_training_job(TrainingJobName=name))

    def log_events(self, name: str, *, follow: bool) -> Iterator[LogEvent]:
        """Read the job's CloudWatch log streams, one a host; with ``follow`` until the job ended."""
        tokens: dict[str, str] = {}
        ended = False
        while True:
            was_over, ended = ended, self.describe(name)["TrainingJobStatus"] in ENDED
            for stream in self._streams(name):
                yield from self._stream_events(stream, tokens)
            # CloudWatch is a little behind: what a job said last is looked for once more.
            if was_over or not follow:
                return
            time.sleep(_TAIL_SECONDS if ended else self.poll_seconds)

    def _streams(self, name: str) -> list[str]:
        def read() -> list[str]:
            pages = self._client("logs").get_paginator("describe_log_streams")
            found = pages.paginate(logGroupName=_LOG_GROUP, logStreamNamePrefix=f"{name}/")
            return [stream["logStreamName"] for page in found for stream in page["logStreams"]]

        try:
            return self._call(name, read)
        except JobNotFoundError:  # no job of this account has logged yet: there is no log group
            return []

    def _stream_events(self, stream: str, tokens: dict[str, str]) -> Iterator[LogEvent]:
        host = stream.rsplit("/", 1)[-1].rpartition("-")[0]
        while True:
            arguments = {"logGroupName": _LOG_GROUP, "logStreamName": stream, "startFromHead": True}
            if stream in tokens:
                arguments["nextToken"] = tokens[stream]
            page = self._log_page(stream, arguments)
            for event in page["events"]:
                yield LogEvent(host, event["message"])
            if page["nextForwardToken"] == tokens.get(stream):
                return
            tokens[stream] = page["nextForwardToken"]

    def _log_page(self, stream: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return self._call(stream, lambda: dict(self._client("logs").get_log_events(**arguments)))

    def _region(self) -> str:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if self._session is not None or not region:
            region = self._call("", lambda: self._boto_session().region_name)
        if not region:
            raise CredentialsError("no AWS region is set; set AWS_DEFAULT_REGION or run 'aws configure'")
        return str(region)

    def _boto_session(self) -> Any:
        if self._session is None:
            import boto3

            self._session = boto3.Session()
        return self._session

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self._boto_session().client(service, region_name=self._region())
        return self._clients[service]

    def _call(self, name: str, call: Callable[[], _T]) -> _T:
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, ParamValidationError

        try:
            return call()
        except ClientError as error:
            raise _translated(name, error.response["Error"]) from error
        except ParamValidationError as error:
            raise RequestError(f"training job {name}: {error}") from error
        except NoCredentialsError as error:
            raise CredentialsError(
                "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run 'aws configure'"
            ) from error
        except BotoCoreError as error:
            raise PlatformError(f"Amazon SageMaker could not be reached: {error}") from error

    def list(self) -> list[dict[str, Any]]:
        """Call ListTrainingJobs for every page."""

        def read() -> list[dict[str, Any]]:
            pages = self._client("sagemaker").get_paginator("list_training_jobs").paginate(SortBy="CreationTime")
            return [job for page in pages for job in page["TrainingJobSummaries"]]

        return self._call("", read)


def _account(role: str | None) -> str:
    """Give the account of a role's ARN; raise `SpecError` for what is none."""
    found = _ROLE.fullmatch(role or "")
    if found is None:
        raise SpecError(
            f"role {role!r} is no role ARN; give 'arn:aws:iam::<account>:role/<name>' "
            "(looking a name up is not supported yet)"
        )
    return found.group(1)


def _places(spec: TrainingJobSpec) -> list[tuple[str, str | None]]:
    """Name every place a job reads from or writes to."""
    inputs = [(f"channel {each.name!r}", getattr(each.source, "s3_data", None)) for each in spec.channels]
    output = spec.output
    return [
        *inputs,
        ("output_path", output.path),
        ("code_location", output.code_location),
        ("checkpoint_s3_uri", output.checkpoint_uri),
        ("source_dir", spec.script.source_dir if spec.script else None),
    ]


def _translated(name: str, error: Mapping[str, Any]) -> PlatformError:
    code, message = error.get("Code", ""), error.get("Message", "")
    text = f"training job {name}: {message} ({code})"
    if code == "ResourceInUse":
        return JobExistsError(f"training job {name} exists already; give another job_name, or none")
    if code in ("ResourceNotFound", "ResourceNotFoundException") or (
        code == "ValidationException" and re.search(r"not (find|found)", message)
    ):
        return JobNotFoundError(text)
    if code == "ValidationException":
        return RequestError(text)
    if code in ("AccessDeniedException", "ExpiredTokenException", "UnrecognizedClientException"):
        return CredentialsError(f"{text}; check the credentials and their permissions")
    return PlatformError(text)
