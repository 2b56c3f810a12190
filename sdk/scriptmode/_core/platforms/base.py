"""The protocols of a training platform, which takes and returns the values of `scriptmode._core.spec`.

A platform is a training service: it answers CreateTrainingJob, DescribeTrainingJob and the rest. A job is a value here;
lists, tuning jobs and the response of a description have Amazon SageMaker's shapes. There are two,
``platforms.sagemaker`` and ``platforms.local``; ``platforms.registry`` chooses between them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from scriptmode._core.machine.clock import Clock
    from scriptmode._core.spec import service_values
    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import TrainingJobSpec


class Platform(Protocol):
    """A training service. Its methods raise only errors of `scriptmode.errors`."""

    @property
    def poll_seconds(self) -> float:
        """Seconds between two requests for the state of a job that a caller waits for."""

    @property
    def clock(self) -> Clock:
        """The clock that measures waiting."""

    @property
    def region(self) -> str:
        """The AWS Region that jobs run in, or are told to run in."""

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in what the caller left out: role, output path, code location, image, defaults of a configuration file.

        Raises `SpecError` for a spec that this platform cannot run. The service is asked only for a role's ARN.
        """

    def validate(self, request: JobRequest | Mapping[str, Any]) -> None:
        """Raise `RequestError` listing all reasons why the service would refuse a request, also one as JSON."""

    def planned_hosts(self, request: JobRequest) -> dict[str, service_values.PlannedHost]:
        """Return the environment that each host of a request would have, in the order of the hosts; no side effect.

        A port, which is chosen when the job starts, is 0; a secret, which is made then, is ``******``.
        """

    def put_source(self, archive: bytes, uri: str, *, kms_key: str | None = None, role: str | None = None) -> None:
        """Store a source archive at ``uri``, below the code location; leave one that is stored already as it is.

        ``kms_key`` encrypts it; ``role`` is the ARN of the job's role.
        """

    def create(self, request: JobRequest) -> str:
        """Start a training job; return its ARN."""

    def describe(self, name: str) -> JobDescription:
        """Return the description of a job; raise `JobNotFoundError`."""

    def tags(self, description: JobDescription) -> dict[str, str]:
        """Return the tags of a described job, which DescribeTrainingJob does not return."""

    def stop(self, name: str) -> None:
        """Request that a job stop: SIGTERM, the platform's grace period, SIGKILL. A job that ended is left as it is."""

    def log_events(
        self, name: str, *, follow: bool, on_description: Callable[[JobDescription], None] | None = None
    ) -> Iterator[service_values.LogEvent]:
        """Yield the lines of the hosts' logs; with ``follow`` until the job ended, telling ``on_description``."""

    def metrics(self, description: JobDescription) -> list[service_values.Metric]:
        """Return all values of a described job's metrics up to now, those of each metric in order of time."""

    def host_folders(self, name: str) -> dict[str, Path]:
        """Return the directories that are ``/opt/ml`` of hosts, by host; those of this machine that (still) exist."""

    def progress(self, name: str) -> tuple[service_values.ChannelProgress, ...]:
        """Return the progress of the data of a job's channels, where it is known; raise `JobNotFoundError`."""

    def log_locations(self, name: str) -> dict[str, str]:
        """Return where the log of each host that has one is, by host: a path, or CloudWatch's log group and stream."""

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the object ``uri``, or all objects below that prefix, into ``folder``; return the files written."""

    def list(self, which: service_values.JobFilter) -> list[dict[str, Any]]:
        """Return TrainingJobSummary objects, newest first."""

    def failure(self, description: JobDescription) -> Failure | None:
        """Return the recorded failure of a described job; ``None`` where none was recorded."""

    def activity(self, name: str) -> dict[str, service_values.HostActivity]:
        """Return what each host does now, by host, as far as it is known; raise `JobNotFoundError`."""

    def events(self, name: str) -> tuple[service_values.JobEvent, ...]:
        """Return what a job lost and did again so far, as far as it is known; raise `JobNotFoundError`."""

    def queue_position(self, name: str) -> int:
        """Return the position of a job in the queue, from 1 on; 0 for a job that does not wait."""

    def with_settings_of(self, name: str) -> Platform:
        """Return the platform for a copy of one of its jobs, with the settings that its description lacks."""

    def planned_script(self, request: JobRequest) -> str:
        """Return the batch script of a job; "" for a job that needs none."""

    @property
    def tuning(self) -> TuningService:
        """Its tuning jobs."""


class TuningService(Protocol):
    """The tuning jobs of a platform, in the service's shapes. Its methods raise only errors of `scriptmode.errors`."""

    def validate(self, request: Mapping[str, Any]) -> None:
        """Raise `RequestError` with all reasons why a CreateHyperParameterTuningJob request would be refused."""

    def create(self, request: Mapping[str, Any]) -> str:
        """Start a tuning job from a CreateHyperParameterTuningJob request; return its ARN."""

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeHyperParameterTuningJob's response; raise `JobNotFoundError`."""

    def stop(self, name: str) -> None:
        """Request that a tuning job and its training jobs stop. One that ended is left as it is."""

    def training_jobs(self, name: str) -> list[dict[str, Any]]:
        """Return the HyperParameterTrainingJobSummary objects of a tuning job, in the order of their creation."""
