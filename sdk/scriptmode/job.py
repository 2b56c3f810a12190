"""A training job that was started: the same object for every platform."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from scriptmode.display import log_lines
from scriptmode.errors import (
    DataError,
    PlatformError,
    ScriptmodeError,
    SpecError,
    TransientError,
    UnreadableJobError,
    WaitTimeoutError,
)
from scriptmode.platforms.base import ENDED, JobFilter, host_names
from scriptmode.platforms.registry import find_job_platform, resolve_platform, sagemaker_platform

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Iterator, Mapping
    from datetime import datetime
    from pathlib import Path

    from scriptmode.platforms.base import LogEvent, Platform
    from scriptmode.results.metrics import Metrics
    from scriptmode.results.tensorboard import TensorBoard
    from scriptmode.spec.inputs import Input


class TrainingJob:
    """A job by its name on a platform; holds nothing else, so another process may hold the same job."""

    def __init__(self, name: str, platform: Platform) -> None:
        self.name = name
        self.platform = platform

    @classmethod
    def attach(
        cls, name: str, sagemaker_session: object = None, *, platform: Platform | str | None = None
    ) -> TrainingJob:
        """Return a job that was started elsewhere: on this machine, else in Amazon SageMaker.

        With ``sagemaker_session``, as the estimators take it, Amazon SageMaker alone is asked; with ``platform``, as
        ``list`` takes it, that platform. Raises `JobNotFoundError`.
        """
        if not isinstance(name, str):
            raise SpecError(f"name is {name!r}; give a training job's name")
        if platform is None:
            return cls(name, find_job_platform(name, sagemaker_session))
        if sagemaker_session is not None:
            raise SpecError("platform and sagemaker_session both say where the job is; keep one")
        where = resolve_platform(platform)
        where.describe(name)
        return cls(name, where)

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
    def job_name(self) -> str:
        """The name, as the SageMaker SDK calls it."""
        return self.name

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

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, ``algo-1`` first."""
        return host_names(self.describe())

    @property
    def training_seconds(self) -> int | None:
        """Seconds from the hosts' first download to the last upload, or ``None`` while the job goes on."""
        return self.describe().get("TrainingTimeInSeconds")

    @property
    def billable_seconds(self) -> int | None:
        """Seconds that are paid for, all hosts together as the SageMaker SDK counts; ``None`` while unknown."""
        return log_lines.billable_seconds(self.describe())

    @property
    def spot_savings(self) -> float | None:
        """The part of the training time that spot instances saved, from 0 to 1; ``None`` for other jobs."""
        return log_lines.spot_savings(self.describe())

    def inputs(self) -> dict[str, Input]:
        """Return what the job reads, by channel, as ``fit`` takes it."""
        from scriptmode.request import parse

        return parse.channels(self.describe())

    def metrics(self) -> Metrics:
        """Return the metrics so far: rows of ``metric_name``, ``value``, ``timestamp`` and ``host``, shown as a table.

        From Amazon SageMaker each row is the average of a minute (of 5 minutes after 15 days, of an hour after 63);
        locally each is one line of the log, without a time.
        """
        from scriptmode.results import metrics
        from scriptmode.spec import metric_definitions

        description = self.describe()
        return metrics.rows_of(self.platform.metrics(description), metric_definitions.defined(description))

    def plot(self, *names: str) -> Any:
        """Draw metrics (all, if none is named) and return the ``matplotlib.figure.Figure``, which a notebook shows.

        Raises `SpecError` for a metric that was not defined, `DataError` for one without values yet, and
        `MissingPackageError` where Matplotlib is not installed.
        """
        return self.metrics().plot(*names)

    def tensorboard(self, port: int | None = None) -> TensorBoard:
        """Start TensorBoard on what the job wrote with ``tf.summary``; return it once it answers at its ``url``.

        A notebook shows it. It reads the hosts' output, model and checkpoint folders and the folders of this machine
        that hyperparameters name (``job-dir``, ``model_dir``), and goes on while the job runs; of a job elsewhere what
        it left. It ends with ``close()``, a ``with`` block, or this process. Raises `MissingPackageError` where it is
        not installed, and `DataError` for a job without event files.
        """
        from scriptmode.results import tensorboard

        return tensorboard.show(self.platform, self.name, port)

    @property
    def model(self) -> Path:
        """The folder with the unpacked model, fetched into the data directory when it is first asked for.

        Raises `DataError` while there is no model, and for one with nothing in it.
        """
        from scriptmode.results.artifacts import download_cached

        description = self.describe()
        folder = download_cached(self.platform, description, "model", self._model_uri(description))
        if not any(folder.iterdir()):
            raise DataError(
                f"training job {self.name} is {description['TrainingJobStatus']} and left an empty model; "
                "have the script write to the folder that SM_MODEL_DIR names"
            )
        return folder

    def download_model(self, folder: str | os.PathLike[str], *, extract: bool = True) -> Path:
        """Fetch the model into ``folder``, which is made, and return it; without ``extract`` as the one archive.

        What leads out of the folder is refused, and nothing is left there unless all of it could be fetched. Raises
        `DataError` while there is no model, and for a folder that has something in it.
        """
        from scriptmode.results.artifacts import download

        return download(self.platform, self._model_uri(self.describe()), folder, extract=extract)

    def _model_uri(self, description: dict[str, Any]) -> str:
        uri = (description.get("ModelArtifacts") or {}).get("S3ModelArtifacts")
        if not uri:
            raise DataError(
                f"training job {self.name} is {description['TrainingJobStatus']} and has no model; "
                + ("look at its log" if description["TrainingJobStatus"] in ENDED else "wait for it to complete")
            )
        return str(uri)

    def logs(self, *, follow: bool = False, hosts: Collection[str] = (), tail: int | None = None) -> Iterator[LogEvent]:
        """Yield the job's log lines so far; with ``follow``, go on until the job ended.

        ``hosts`` limits them to those hosts, ``tail`` to the last so many lines that each has so far. A line of more
        than 1 MiB comes in several events, all but the last with ``continues``. Raises `SpecError` for a host that the
        job does not have.
        """
        from scriptmode.results.log_filter import LogFilter, filtered_events

        return filtered_events(self.platform, self.name, LogFilter.parse(hosts, tail), follow=follow)

    def print_logs(self, *, follow: bool = False, hosts: Collection[str] = (), tail: int | None = None) -> None:
        """Print the log lines so far, each with its host; with ``follow``, status lines too until the job ended.

        ``hosts`` and ``tail`` are those of ``logs``.
        """
        from scriptmode.results.log_filter import LogFilter, filtered_events

        log_filter = LogFilter.parse(hosts, tail)
        on_description = log_lines.StatusLines() if follow else None
        events = filtered_events(self.platform, self.name, log_filter, follow=follow, on_description=on_description)
        log_lines.show(events)

    def stop(self) -> None:
        """Ask the job to stop: SIGTERM, 120 s to save what it has, SIGKILL. Returns at once."""
        self.platform.stop(self.name)

    def rerun(
        self,
        *,
        job_name: str | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        instance_count: int | None = None,
        max_run: int | None = None,
        max_wait: int | None = None,
    ) -> TrainingJob:
        """Start the same job once more, under a new name, and return it at once.

        It has the same source archive, inputs, tags and place for checkpoints, from which it goes on where the old job
        saved any. ``hyperparameters`` are set beside those of the old job; ``max_run`` is in seconds, and so is a spot
        job's ``max_wait``, which grows with ``max_run`` where it is not given. What no description tells is not taken
        over: ``enable_session_tag_chaining``, and what a ``LocalPlatform`` was given. Raises `SpecError` and
        `RequestError`.
        """
        from scriptmode.request import rerun

        changes = rerun.RerunChanges(job_name, hyperparameters or {}, instance_count, max_run, max_wait)
        name = rerun.start(self.platform, self.name, changes)
        return TrainingJob(name, self.platform)

    def follow(self, *, logs: bool = True, live: bool | None = None) -> dict[str, Any]:
        """Show the job's log and state (with ``logs``) until it ended, say how, and return its description.

        With ``live`` in one view that is drawn anew, without it in lines; by default, None, in a view where the output
        is a terminal or a notebook. SCRIPTMODE_VIEW=plain or live in the environment is another default. An interrupt,
        like credentials that expire, leaves the job running and says how to come back. Raises `TrainingJobFailed` and
        `TrainingJobStopped`, and `SpecError` for another value.
        """
        from scriptmode import display

        is_told = True
        view = display.choose_view(live) if logs or live is not None else display.PLAIN
        try:
            if logs:
                is_told = display.follow_job(self.name, self.platform, view)
            description = self._wait(None, None)
        except KeyboardInterrupt:
            self._say_how_to_come_back()
            # Where in the reading it was is nobody's question.
            raise KeyboardInterrupt from None
        except PlatformError as error:
            if not (isinstance(error, UnreadableJobError) and self._has_ended()):
                self._say_how_to_come_back()
            raise
        if not is_told:
            log_lines.ended(description)
        return description

    def _has_ended(self) -> bool:
        try:
            return self.ended
        except ScriptmodeError:
            return False

    def _say_how_to_come_back(self) -> None:
        from scriptmode.messages import still_running

        sys.stderr.write(
            f"\n{still_running(self.name)}, or Estimator.attach({self.name!r}). Stop it: scriptmode stop {self.name}\n"
        )

    def _repr_html_(self) -> str:
        from scriptmode import display

        return display.job_card(self.name, self.platform)

    def wait(self, timeout: float | None = None, *, poll: float | None = None, logs: object = None) -> dict[str, Any]:
        """Wait until the job ended and return its description.

        ``timeout`` and ``poll`` are seconds. With ``logs``, as ``fit`` takes them, the log is shown meanwhile, as by
        `follow`; also as the only positional argument, as in the SageMaker SDK. Throttling and lost connections are
        waited out. Raises `TrainingJobFailed`, `TrainingJobStopped`, and `WaitTimeoutError` when ``timeout`` ran out
        (the job goes on).
        """
        from scriptmode.spec.arguments import LOGS, shows_logs

        if isinstance(timeout, (bool, list, tuple)) or (isinstance(timeout, str) and timeout in LOGS):
            timeout, logs = None, timeout
        if logs is not None and shows_logs(logs):
            if timeout is not None:
                raise SpecError(f"timeout is {timeout!r} and logs is {logs!r}; a job is followed to its end, keep one")
            return self.follow()
        return self._wait(timeout, poll)

    def _wait(self, timeout: float | None, poll: float | None) -> dict[str, Any]:
        from scriptmode.aws.retry import Retry
        from scriptmode.messages import still_running
        from scriptmode.results.outcome import raise_for_status

        for name, seconds, least in (("timeout", timeout, 0), ("poll", poll, 0.001)):
            if seconds is not None and (not isinstance(seconds, (int, float)) or seconds < least):
                raise SpecError(f"{name} is {seconds!r}; give seconds, at least {least}")
        clock = self.platform.clock
        deadline = math.inf if timeout is None else clock.now() + timeout
        pause = self.platform.poll_seconds if poll is None else poll
        retry = Retry(clock, still_running(self.name))
        while True:
            try:
                description = retry.call(self.describe, until=deadline)
            except TransientError as error:
                if clock.now() < deadline:
                    raise
                raise WaitTimeoutError(
                    f"training job {self.name} could not be asked within {timeout} s ({error}); "
                    "it is still running: wait again"
                ) from error
            if description["TrainingJobStatus"] in ENDED:
                return raise_for_status(description, self.platform)
            if clock.now() >= deadline:
                raise WaitTimeoutError(
                    f"training job {self.name} is {description['TrainingJobStatus']} "
                    f"({description['SecondaryStatus']}) after {timeout} s; it is still running: wait again or stop it"
                )
            clock.sleep(min(pause, deadline - clock.now()))

    @staticmethod
    def list(  # noqa: PLR0913 - each says one thing about the jobs wanted
        platform: Platform | str | None = None,
        *,
        sagemaker_session: object = None,
        name_contains: str | None = None,
        status: str | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """Return the training jobs that satisfy everything said, newest first, as ListTrainingJobs' summaries.

        ``platform`` is a platform, ``"local"`` (this machine, the default) or ``"sagemaker"``; with
        ``sagemaker_session``, as the estimators take it, it is Amazon SageMaker. Times have a time zone. A job of this
        machine whose files cannot be read has the status ``Unreadable`` and the reason as its ``StatusMessage``.
        """
        which = JobFilter(name_contains, status, created_after, created_before, limit)
        if sagemaker_session is not None:
            return sagemaker_platform(sagemaker_session).list(which)
        return resolve_platform(platform).list(which)
