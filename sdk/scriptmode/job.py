"""A training job that was started: the same object for every platform."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Callable

from scriptmode import log_view
from scriptmode.errors import TrainingJobFailed, TrainingJobStopped, WaitTimeoutError
from scriptmode.platforms import holding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scriptmode.platforms import LogEvent, Platform

COMPLETED, FAILED, STOPPED = "Completed", "Failed", "Stopped"
ENDED = frozenset({COMPLETED, FAILED, STOPPED})


class TrainingJob:
    """A job by its name on a platform; holds nothing else, so another process may hold the same job."""

    def __init__(self, name: str, platform: Platform) -> None:
        self.name = name
        self.platform = platform

    @classmethod
    def attach(cls, name: str) -> TrainingJob:
        """Return a job that was started elsewhere: on this machine, else in Amazon SageMaker.

        Raises `JobNotFoundError`.
        """
        return cls(name, holding(name))

    def __repr__(self) -> str:
        return f"TrainingJob({self.name!r})"

    def describe(self) -> dict[str, Any]:
        """Return the job as the service describes it (DescribeTrainingJob's response)."""
        return self.platform.describe(self.name)

    @property
    def status(self) -> str:
        """``InProgress``, ``Stopping``, ``Completed``, ``Failed`` or ``Stopped``."""
        return str(self.describe()["TrainingJobStatus"])

    @property
    def ended(self) -> bool:
        """Whether it completed, failed or was stopped."""
        return self.status in ENDED

    @property
    def secondary_status(self) -> str:
        """The finer status: ``Starting``, ``Downloading``, ``Training``, ``Uploading``, ``MaxRuntimeExceeded``..."""
        return str(self.describe()["SecondaryStatus"])

    @property
    def failure_reason(self) -> str | None:
        """Why the job failed, or ``None``."""
        return self.describe().get("FailureReason")

    @property
    def model_data(self) -> str | None:
        """URI of ``model.tar.gz``, or ``None`` while there is none."""
        artifacts = self.describe().get("ModelArtifacts") or {}
        return artifacts.get("S3ModelArtifacts") or None

    def logs(self, *, follow: bool = False) -> Iterator[LogEvent]:
        """Yield the job's log lines so far; with ``follow``, go on until the job ended."""
        return self.platform.log_events(self.name, follow=follow)

    def print_logs(self, *, follow: bool = False) -> None:
        """Print the log lines so far, each with its host; with ``follow``, go on until the job ended."""
        log_view.show(self.logs(follow=follow))

    def stop(self) -> None:
        """Ask the job to stop: SIGTERM, 120 s to save what it has, SIGKILL. Returns at once."""
        self.platform.stop(self.name)

    def follow(self, *, logs: bool = True) -> dict[str, Any]:
        """Print the job's log (with ``logs``) until it ended, say how, and return its description.

        An interrupt leaves the job running and says how to come back. Raises `TrainingJobFailed` and
        `TrainingJobStopped`.
        """
        try:
            if logs:
                self.print_logs(follow=True)
            description = self.wait()
        except KeyboardInterrupt:
            sys.stderr.write(
                f"\nTraining job {self.name} goes on. Follow it again: scriptmode logs -f {self.name}, "
                f"or Estimator.attach({self.name!r}). Stop it: scriptmode stop {self.name}\n"
            )
            raise
        if logs:
            log_view.ended(description)
        return description

    def wait(self, timeout: float | None = None, *, poll: float | None = None) -> dict[str, Any]:
        """Wait until the job ended and return its description.

        ``timeout`` and ``poll`` are seconds. Raises `TrainingJobFailed`, `TrainingJobStopped`, and `WaitTimeoutError`
        when ``timeout`` ran out (the job goes on).
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        pause = self.platform.poll_seconds if poll is None else poll
        while (description := self.describe())["TrainingJobStatus"] not in ENDED:
            left = pause if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise WaitTimeoutError(
                    f"training job {self.name} is {description['TrainingJobStatus']} "
                    f"({description['SecondaryStatus']}) after {timeout} s; it goes on, wait again or stop it"
                )
            time.sleep(min(pause, left))
        return raise_for_status(description)


def raise_for_status(description: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a job that completed; raise for one that failed or was stopped."""
    raiser = _ENDINGS.get(description["TrainingJobStatus"])
    if raiser is not None:
        raise raiser(description)
    return description


def _failed(description: dict[str, Any]) -> TrainingJobFailed:
    reason = description.get("FailureReason", "the platform gave no reason")
    return TrainingJobFailed(f"training job {description['TrainingJobName']} failed: {reason}", description)


def _stopped(description: dict[str, Any]) -> TrainingJobStopped:
    name = description["TrainingJobName"]
    if description["SecondaryStatus"] == "MaxRuntimeExceeded":
        limit = description.get("StoppingCondition", {}).get("MaxRuntimeInSeconds")
        text = f"training job {name} ran longer than max_run ({limit} s) and was stopped; give it more time"
    else:
        text = f"training job {name} was stopped ({description['SecondaryStatus']})"
    return TrainingJobStopped(text, description)


_ENDINGS: dict[str, Callable[[dict[str, Any]], Exception]] = {FAILED: _failed, STOPPED: _stopped}
