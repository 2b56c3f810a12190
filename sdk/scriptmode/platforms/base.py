"""What a training platform is: the service's verbs over its own shapes, and places for source and model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from scriptmode.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from scriptmode.clock import Clock
    from scriptmode.spec.training_job import TrainingJobSpec

#: Each host a plain process of this machine.
LOCAL_PROCESS = "local_process"
#: Each host a container of this machine, without and with GPUs (names of the SageMaker SDK).
LOCAL_GPU = "local_gpu"
LOCAL_CONTAINER = ("local", LOCAL_GPU)
COMPLETED, FAILED, STOPPED = "Completed", "Failed", "Stopped"
ENDED = frozenset({COMPLETED, FAILED, STOPPED})
#: Fields of CreateTrainingJobRequest that DescribeTrainingJobResponse does not have.
NOT_DESCRIBED = frozenset({"Tags", "SessionChainingConfig"})
#: What the service describes where the request was silent.
DESCRIBED_DEFAULTS: dict[str, Any] = {
    "EnableNetworkIsolation": False,
    "EnableInterContainerTrafficEncryption": False,
    "EnableManagedSpotTraining": False,
}
STATUSES = ("InProgress", "Stopping", COMPLETED, FAILED, STOPPED)


@dataclass(frozen=True)
class LogEvent:
    """One line of one host's log, without its line end; one of more than 1 MiB comes in pieces.

    ``continues`` says that the host's next event goes on with the same line.
    """

    host: str
    message: str
    continues: bool = False


@dataclass(frozen=True)
class JobFilter:
    """Which training jobs to list: those that satisfy everything said. ``limit`` counts jobs, newest first."""

    name_contains: str | None = None
    status: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.status is not None and self.status not in STATUSES:
            raise SpecError(f"status is {self.status!r}; give one of {', '.join(STATUSES)}")
        if self.limit is not None and (not isinstance(self.limit, int) or self.limit < 1):
            raise SpecError(f"limit is {self.limit!r}; give a whole number of at least 1")
        if self.name_contains is not None and not isinstance(self.name_contains, str):
            raise SpecError(f"name_contains is {self.name_contains!r}; give a part of the name")
        for name in ("created_after", "created_before"):
            moment = getattr(self, name)
            if moment is not None and not hasattr(moment, "tzinfo"):
                raise SpecError(f"{name} is {moment!r}; give a datetime with a time zone")
            if moment is not None and moment.tzinfo is None:
                raise SpecError(
                    f"{name} is {moment!r}, without a time zone; give for example {moment.isoformat()}+00:00"
                )

    def takes(self, summary: Mapping[str, Any]) -> bool:
        """Say whether a TrainingJobSummary is one of them, ``limit`` aside."""
        return (
            (self.name_contains is None or self.name_contains in summary["TrainingJobName"])
            and (self.status is None or self.status == summary["TrainingJobStatus"])
            and (self.created_after is None or summary["CreationTime"] > self.created_after)
            and (self.created_before is None or summary["CreationTime"] < self.created_before)
        )


ANY_JOB = JobFilter()


@dataclass(frozen=True)
class Metric:
    """One value of a job's metric. ``timestamp`` and ``host`` are ``None`` where the platform does not keep them."""

    name: str
    value: float
    timestamp: datetime | None = None
    host: str | None = None


@dataclass(frozen=True)
class ChannelProgress:
    """How far a channel's data is: staged before training in File mode, or streamed since, to all its hosts, in Pipe.

    ``done`` and ``total`` are bytes; ``total`` is ``None`` where nobody knows it. ``epoch`` counts from 0.
    """

    channel: str
    mode: str
    done: int
    total: int | None = None
    epoch: int | None = None


@dataclass(frozen=True)
class PlannedHost:
    """What one host of a job would find, were it started: its root folder, the files there, its variables.

    ``files`` are the contents of the platform's own, by their names below ``base_dir``. ``python`` is the interpreter
    of a host that is a process of this machine, and "" for every other.
    """

    instance_type: str
    base_dir: str
    files: Mapping[str, Any]
    variables: Mapping[str, str]
    python: str = ""


def instance_groups(description: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the instance groups of a described job or of a request; a job without any is one, of all its hosts."""
    resources = description.get("ResourceConfig") or {}
    return resources.get("InstanceGroups") or [resources]


def host_count(description: Mapping[str, Any]) -> int:
    """Give how many hosts a described job has, all its instance groups together."""
    return sum(int(group.get("InstanceCount", 1)) for group in instance_groups(description))


def host_names(description: Mapping[str, Any]) -> list[str]:
    """Give the names that a described job's hosts have, in order; none where it does not say how many there are."""
    if "ResourceConfig" not in description:
        return []
    return [f"algo-{number}" for number in range(1, host_count(description) + 1)]


def is_on_this_machine(description: Mapping[str, Any]) -> bool:
    """Say whether a described job's hosts are processes or containers of this machine."""
    return _instance_types(description) <= {LOCAL_PROCESS, *LOCAL_CONTAINER}


def is_of_processes(description: Mapping[str, Any]) -> bool:
    """Say whether each host of a described job is a plain process of this machine."""
    return _instance_types(description) == {LOCAL_PROCESS}


class Platform(Protocol):
    """A training service. Every method raises only `scriptmode.errors`."""

    #: Seconds between two looks at a job that is waited for.
    poll_seconds: float

    @property
    def clock(self) -> Clock:
        """The time that waiting goes by."""

    @property
    def region(self) -> str:
        """The AWS Region that jobs are told to be in."""

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in what the caller left to the platform: role, output path, code location, image, defaults of a file.

        Raises `SpecError` for a spec that this platform cannot run. Changes nothing anywhere; asks the platform only
        what neither the spec nor a setting tells (a role's ARN by its name).
        """

    def validate(self, request: Mapping[str, Any]) -> None:
        """Raise `RequestError` with everything for which the service would refuse a request; no call."""

    def planned_hosts(self, request: Mapping[str, Any]) -> dict[str, PlannedHost]:
        """Give what each host of a request would find, in their order. Nothing is stored, held or called.

        What is not chosen before the job starts is 0 (a port) or ``******`` (a secret).
        """

    def put_source(self, archive: bytes, uri: str, *, kms_key: str | None = None, role: str | None = None) -> None:
        """Store a source archive at ``uri``, below the code location; the same archive is stored once.

        ``kms_key`` encrypts it; ``role`` is the ARN of the job's role.
        """

    def create(self, request: Mapping[str, Any]) -> str:
        """Start a training job from a CreateTrainingJob request; return its ARN."""

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeTrainingJob's response; raise `JobNotFoundError`."""

    def tags(self, description: Mapping[str, Any]) -> dict[str, str]:
        """Return the tags of a described job, which DescribeTrainingJob does not tell."""

    def stop(self, name: str) -> None:
        """Ask a job to stop: SIGTERM, the platform's grace, SIGKILL. A job that ended is left as it is."""

    def log_events(
        self, name: str, *, follow: bool, on_description: Callable[[dict[str, Any]], None] | None = None
    ) -> Iterator[LogEvent]:
        """Yield the job's log lines, each host's in order; with ``follow`` until the job ended.

        ``on_description`` is given the job's description as often as following asks for it.
        """

    def metrics(self, description: Mapping[str, Any]) -> list[Metric]:
        """Return every value so far of a described job's metrics, each metric's in order of time."""

    def host_folders(self, name: str) -> dict[str, Path]:
        """Return the ``/opt/ml`` of each host of a job, by host, where that is a folder of this machine and (still) is.

        In the order of the hosts; raises `JobNotFoundError`.
        """

    def progress(self, name: str) -> tuple[ChannelProgress, ...]:
        """Return how far the data of a job's channels is, as far as that is known; raises `JobNotFoundError`."""

    def log_locations(self, name: str) -> dict[str, str]:
        """Return where the whole log of each host is, by host; only hosts that have one where they are found by asking.

        On this machine the path of a file, in Amazon SageMaker CloudWatch's log group and stream.
        """

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the object, or all objects below the prefix, ``uri`` into ``folder``; return the files written."""

    def list(self, which: JobFilter = ANY_JOB) -> list[dict[str, Any]]:
        """Return TrainingJobSummary objects, newest first."""


def _instance_types(description: Mapping[str, Any]) -> set[str]:
    """Give the hosts' instance types, "" for those that it does not tell."""
    return {str(group.get("InstanceType", "")) for group in instance_groups(description)}
