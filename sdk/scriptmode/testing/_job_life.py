"""`Life`: what will happen to a training job, defined before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

Lines = Mapping[str, Sequence[tuple[float, str]]]
Points = Mapping[str, Sequence[tuple[float, float]]]
Files = Mapping[str, bytes]

#: SecondaryStatus of a job that goes on, with what the service says on entering it (DescribeTrainingJob).
MESSAGES = {
    "Pending": "Waiting for capacity",
    "Starting": "Launching requested ML instances",
    "LaunchingMLInstances": "Launching requested ML instances",
    "PreparingTrainingStack": "Preparing the training stack",
    "Downloading": "Downloading input data",
    "DownloadingTrainingImage": "Downloading the training image",
    "Training": "Training image download completed. Training in progress.",
    "Interrupted": "The managed spot instances were interrupted",
    "Restarting": "Restarting the training job",
    "Updating": "Updating the training job",
    "Uploading": "Uploading generated training model",
}
#: Phases in which a job has no hosts: neither training time nor MaxRuntimeInSeconds counts them.
WITHOUT_HOSTS = frozenset(
    {"Pending", "Starting", "LaunchingMLInstances", "PreparingTrainingStack", "Interrupted", "Restarting"}
)
ENDS = ("Completed", "Failed", "Stopped")
#: The reason that Amazon SageMaker gives when it has no instances of the type.
OUT_OF_CAPACITY = (
    "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different ML instance type."
)


@dataclass(frozen=True)
class Phase:
    """A part of a job's life.

    Attributes:
        status: SecondaryStatus.
        seconds: Duration.
        message: Message of the transition; ``""`` for the service's usual one.
    """

    status: str
    seconds: float
    message: str = ""

    def __post_init__(self) -> None:
        if self.status not in MESSAGES:
            raise ValueError(f"phase {self.status!r} is not a status of a job; give one of {', '.join(MESSAGES)}")


_BEGINNING = (Phase("Starting", 60), Phase("Downloading", 20))
_UPLOADING = Phase("Uploading", 10)


class Line(NamedTuple):
    """A line of one host's log."""

    #: Seconds after the job's creation at which it is written.
    second: float
    #: Text of the line.
    text: str


class Point(NamedTuple):
    """A value of a metric."""

    #: Seconds after the job's creation.
    second: float
    #: Value of the metric.
    value: float


@dataclass(frozen=True)
class Life:
    """Everything that will happen to a training job, unless a stop or a limit of its request ends it earlier.

    MaxRuntimeInSeconds counts the seconds in which the job has hosts: not the starting, nor the upload of the model.

    Attributes:
        phases: The parts of the life, in order.
        ends: The final TrainingJobStatus.
        secondary_status: The final SecondaryStatus, by default equal to ``ends``.
        failure_reason: The FailureReason of a life that ends in ``Failed``.
        logs: Lines by host (``algo-1``), each a `Line` or ``(second, text)``.
        metrics: Values by metric, each a `Point` or ``(second, value)``.
        model: Files of the model archive by their paths, or the bytes of the archive.
        stop_seconds: Duration of ``Stopping`` after a call that stops the job.

    Raises:
        ValueError: An argument has an invalid value, or a line or point is later than the end of the life.
    """

    phases: tuple[Phase, ...] = (*_BEGINNING, Phase("Training", 300), _UPLOADING)
    ends: str = "Completed"
    secondary_status: str | None = None
    failure_reason: str | None = None
    logs: Lines = field(default_factory=dict)
    metrics: Points = field(default_factory=dict)
    model: bytes | Files = field(default_factory=lambda: {"model.txt": b"a trained model\n"})
    stop_seconds: float = 30

    def __post_init__(self) -> None:
        if self.ends not in ENDS:
            raise ValueError(f"ends is {self.ends!r}; give one of {', '.join(ENDS)}")
        series: list[tuple[str, Sequence[Line | Point]]] = [*self.host_lines().items(), *self.metric_points().items()]
        for what, entry in ((what, entry) for what, entries in series for entry in entries):
            if entry.second > self.seconds:
                end = f"the life ends at second {self.seconds}; let a phase last longer"
                raise ValueError(f"{what!r} has {entry!r}, but {end}")

    @property
    def seconds(self) -> float:
        """The duration of the life if nothing ends it earlier."""
        return sum(phase.seconds for phase in self.phases)

    def host_lines(self) -> dict[str, tuple[Line, ...]]:
        """Return each host's lines in order of time."""
        by_time = attrgetter("second")
        return {host: tuple(sorted((Line(*line) for line in lines), key=by_time)) for host, lines in self.logs.items()}

    def metric_points(self) -> dict[str, tuple[Point, ...]]:
        """Return each metric's values in order of time."""
        by_time = attrgetter("second")
        series = self.metrics.items()
        return {name: tuple(sorted((Point(*point) for point in points), key=by_time)) for name, points in series}

    @classmethod
    def completed(
        cls,
        *,
        training: float = 300,
        logs: Lines | None = None,
        metrics: Points | None = None,
        model: bytes | Files | None = None,
    ) -> Life:
        """Return the life of a job that trains for ``training`` seconds from second 80 on, and completes.

        Args:
            training: Duration of the training.
            logs: Lines by host, as in `Life`.
            metrics: Values by metric, as in `Life`.
            model: Files or bytes of the model archive, by default one text file.
        """
        phases = (*_BEGINNING, Phase("Training", training), _UPLOADING)
        life = cls(phases, logs=logs or {}, metrics=metrics or {})
        return life if model is None else replace(life, model=model)

    @classmethod
    def failed(cls, reason: str, *, training: float = 60, logs: Lines | None = None) -> Life:
        """Return the life of a job whose script fails after ``training`` seconds, from second 80 on.

        Args:
            reason: The FailureReason.
            training: Seconds of training before the failure.
            logs: Lines by host, as in `Life`.
        """
        phases = (*_BEGINNING, Phase("Training", training))
        return cls(phases, "Failed", failure_reason=reason, logs=logs or {})

    @classmethod
    def out_of_capacity(cls, *, after: float = 600) -> Life:
        """Return the life of a job that fails because no instances of its type are available.

        Args:
            after: Seconds until the failure.
        """
        return cls((Phase("Starting", after),), "Failed", failure_reason=OUT_OF_CAPACITY)

    @classmethod
    def interrupted(cls, *, before: float = 120, after: float = 300, logs: Lines | None = None) -> Life:
        """Return the life of a spot job that is interrupted after ``before`` seconds of training and completes later.

        The second training, of ``after`` seconds, begins 140 s after the interruption.

        Args:
            before: Seconds of training before the interruption.
            after: Seconds of training after it.
            logs: Lines by host, as in `Life`.
        """
        first = (*_BEGINNING, Phase("Training", before), Phase("Interrupted", 60))
        phases = (*first, *_BEGINNING, Phase("Training", after), _UPLOADING)
        return cls(phases, logs=logs or {})
