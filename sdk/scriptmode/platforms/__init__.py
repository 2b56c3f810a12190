"""What a training platform is: five verbs over the service's own shapes, and a place for the source archive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scriptmode.errors import JobNotFoundError, PlatformError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.spec import TrainingJobSpec

#: Each host a plain process of this machine.
LOCAL_PROCESS = "local_process"
#: Each host a container of this machine, without and with GPUs (names of the SageMaker SDK).
LOCAL_CONTAINER = ("local", "local_gpu")


@dataclass(frozen=True)
class LogEvent:
    """One line of one host's log, without its line end."""

    host: str
    message: str


@dataclass(frozen=True)
class PlatformDefaults:
    """What a request says where the caller said nothing. URIs carry no trailing slash."""

    role: str | None
    region: str
    output_path: str
    code_location: str


class Platform(Protocol):
    """A training service. Every method raises only `scriptmode.errors`."""

    #: Seconds between two looks at a job that is waited for.
    poll_seconds: float

    def defaults(self, role: str | None) -> PlatformDefaults:
        """Give the platform's defaults for a caller's role."""

    def check(self, spec: TrainingJobSpec) -> None:
        """Raise `SpecError` for a spec that this platform cannot run; no side effect, no call."""

    def put_source(self, archive: bytes, uri: str) -> None:
        """Store a source archive at ``uri``, below the code location; the same archive is stored once."""

    def create(self, request: Mapping[str, Any]) -> str:
        """Start a training job from a CreateTrainingJob request; return its ARN."""

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeTrainingJob's response; raise `JobNotFoundError`."""

    def stop(self, name: str) -> None:
        """Ask a job to stop: SIGTERM, the platform's grace, SIGKILL. A job that ended is left as it is."""

    def log_events(self, name: str, *, follow: bool) -> Iterator[LogEvent]:
        """Yield the job's log lines, each host's in order; with ``follow`` until the job ended."""

    def list(self) -> list[dict[str, Any]]:
        """Return TrainingJobSummary objects, newest first."""


def for_instance_types(instance_types: tuple[str, ...]) -> Platform:
    """Choose the platform that a job's instance types name; raise `SpecError` for what cannot run yet."""
    kinds = {_kind(instance_type) for instance_type in instance_types}
    if len(kinds) > 1:
        raise SpecError(f"instance types {', '.join(map(repr, instance_types))} belong to different platforms; use one")
    if kinds == {LOCAL_PROCESS}:
        from scriptmode.platforms.local import LocalPlatform

        return LocalPlatform()
    from scriptmode.platforms.sagemaker import SageMakerPlatform

    return SageMakerPlatform()


def holding(job_name: str) -> Platform:
    """Find the platform that has a training job: this machine, else Amazon SageMaker; raise `JobNotFoundError`."""
    from scriptmode.platforms.local import LocalPlatform
    from scriptmode.platforms.sagemaker import SageMakerPlatform

    here, cloud = LocalPlatform(), SageMakerPlatform()
    try:
        here.describe(job_name)
    except JobNotFoundError as not_here:
        try:
            cloud.describe(job_name)
        except JobNotFoundError as error:
            raise JobNotFoundError(f"{not_here}; nor has Amazon SageMaker one ({error})") from error
        except PlatformError as error:
            raise JobNotFoundError(f"{not_here}. Amazon SageMaker could not be asked: {error}") from error
        return cloud
    return here


def _kind(instance_type: str) -> str:
    if instance_type == LOCAL_PROCESS:
        return LOCAL_PROCESS
    if instance_type in LOCAL_CONTAINER:
        raise SpecError(
            f"instance_type {instance_type!r} runs each host as a container, which this version cannot do; "
            f"use {LOCAL_PROCESS!r}: each host a plain process of this machine"
        )
    if instance_type.startswith("ml."):
        return "sagemaker"
    raise SpecError(
        f"instance_type {instance_type!r} is neither {LOCAL_PROCESS!r} nor an Amazon SageMaker type, "
        "such as 'ml.p3.2xlarge'"
    )
