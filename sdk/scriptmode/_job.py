"""A training job that was started: the same handle for every platform."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.handle import log_lines
from scriptmode._core.platforms.registry import Platform, resolve_platform, session_platform
from scriptmode._core.spec.service_values import JobEvent, JobFilter, LogEvent
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode.errors import DataError, JobNotFoundError, PlatformError, ScriptmodeError, UnreadableJobError, invalid

if TYPE_CHECKING:
    import os
    from datetime import datetime

    from scriptmode._core.spec.host_values import HostActivity
    from scriptmode._core.spec.inputs import Input
    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._display.job_list import JobList
    from scriptmode._results.analytics import TrainingJobAnalytics
    from scriptmode._results.metrics import Metrics
    from scriptmode._sagemaker_session import Session


class StartedJob:
    """What the handles of training jobs and of tuning jobs have in common: a name on a platform."""

    def __init__(self, name: str, platform: Platform) -> None:
        self.name = name
        self.platform = platform

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def job_name(self) -> str:
        """The name, under the attribute's name of the SageMaker SDK."""
        return self.name

    @property
    def sagemaker_session(self) -> Session:
        """The session of the platform, or the one that the platform was given."""
        from scriptmode._sagemaker_session import session_of_platform

        return session_of_platform(self.platform)


class TrainingJob(StartedJob):
    """A training job, identified by its name on a platform.

    The handle stores nothing else, so several processes may hold the same job.

    Args:
        name: The job's name.
        platform: The platform that has the job.
        source_dir: The directory of the job's source on this machine, in which tracebacks name its files.
    """

    def __init__(self, name: str, platform: Platform, *, source_dir: str = "") -> None:
        super().__init__(name, platform)
        self._source_dir = source_dir

    @classmethod
    def attach(
        cls, name: str, sagemaker_session: object = None, *, platform: Platform | str | None = None
    ) -> TrainingJob:
        """Return the handle of a job that was started before, by this process or another.

        Args:
            name: The job's name.
            sagemaker_session: A session as the estimators take it; only its account, or its machine, is asked then.
            platform: ``"local"``, ``"sagemaker"`` or a platform; by default this machine is asked, then Amazon
                SageMaker.

        Raises:
            JobNotFoundError: Where no such job exists.
            SpecError: For arguments that contradict each other.
        """
        from scriptmode._core.platforms.job_platforms import find_job_platform

        return cls(name, find_job_platform(name, sagemaker_session, platform))

    def describe(self) -> dict[str, Any]:
        """Return the description of the job: the response of DescribeTrainingJob."""
        return self._description().response

    def _description(self) -> JobDescription:
        return self.platform.describe(self.name)

    @property
    def status(self) -> str:
        """The status: ``InProgress``, ``Stopping``, ``Completed``, ``Failed`` or ``Stopped``."""
        return str(self._description().status)

    @property
    def ended(self) -> bool:
        """Whether the job completed, failed or was stopped."""
        return self._description().has_ended

    @property
    def secondary_status(self) -> str:
        """The finer status: ``Starting``, ``Downloading``, ``Training``, ``Uploading``, ``MaxRuntimeExceeded``..."""
        return self._description().secondary

    @property
    def failure_reason(self) -> str | None:
        """Why the job failed; ``None`` for a job that did not fail."""
        return self._description().failure_reason or None

    @property
    def failure(self) -> Failure | None:
        """Why the job failed, as host, process, exit code, traceback; ``None`` for a job that did not fail."""
        from scriptmode._core.handle.failed_job import find_failure

        return find_failure(self._description(), self.platform, self._source_dir)

    @property
    def model_data(self) -> str | None:
        """URI of ``model.tar.gz``; ``None`` while there is no model."""
        return self._description().artifact_uri or None

    @property
    def hosts(self) -> list[str]:
        """The names of the hosts, ``algo-1`` first."""
        return list(self._description().hosts)

    @property
    def training_seconds(self) -> int | None:
        """Seconds from the first download of a host to the last upload; ``None`` while the job runs."""
        return self._description().training_seconds

    @property
    def billable_seconds(self) -> int | None:
        """Billed seconds of all hosts together, as the SageMaker SDK counts them; ``None`` while unknown."""
        return self._description().billable_seconds

    @property
    def spot_savings(self) -> float | None:
        """The share of the training time that spot instances saved, from 0 to 1; ``None`` for other jobs."""
        return self._description().spot_savings

    def activity(self) -> dict[str, HostActivity]:
        """Return what each host of the running job does now, and where a cluster runs it.

        By host: ``cpu_percent``, ``memory_bytes``, ``gpu_percent``, ``gpu_memory_bytes``, ``silent_seconds`` (since its
        last output), ``line``, which it has begun and not ended, and ``place``, which stays known. Unknown hosts, such
        as those of Amazon SageMaker or of a job of this machine that has ended, are left out.
        """
        return self.platform.activity(self.name)

    @property
    def events(self) -> tuple[JobEvent, ...]:
        """What the job lost or did again, such as lines of a log on a full disk; Amazon SageMaker does not tell."""
        return self.platform.events(self.name)

    def inputs(self) -> dict[str, Input]:
        """Return the job's inputs by channel, in the form that ``fit`` takes."""
        from scriptmode._core.request.rerun import job_inputs

        return job_inputs(self.describe())

    def metrics(self) -> Metrics:
        """Return the metrics so far: rows of ``metric_name``, ``value``, ``timestamp`` and ``host``.

        They are displayed as a summary of each metric. On Amazon SageMaker each row is the average of one minute (of 5
        minutes after 15 days, of an hour after 63 days); elsewhere each row is one line of the log, with a ``step`` and
        an ``epoch`` where the line names them, and with the line's time where ``scriptmode serve`` runs the job.
        """
        from scriptmode._results import metrics

        description = self._description()
        values = self.platform.metrics(description)
        return metrics.to_metrics(values, description.job.algorithm.metric_definitions)

    def analytics(self, metric_names: Collection[str] | None = None) -> TrainingJobAnalytics:
        """Return the metrics in the form of the SageMaker SDK's ``TrainingJobAnalytics``; `metrics` has more columns.

        Its ``dataframe()`` is a ``pandas.DataFrame`` of ``timestamp``, ``metric_name`` and ``value``.

        Args:
            metric_names: The metrics; by default all that have values.

        Raises:
            SpecError: For a text in place of a list of names.
        """
        from scriptmode._results.analytics import TrainingJobAnalytics

        return TrainingJobAnalytics(self.name, self.metrics, metric_names)

    def plot(self, *names: str) -> Any:
        """Draw metrics by step, epoch or time, with a line for each host and the mean of the hosts.

        A notebook displays the ``matplotlib.figure.Figure`` that is returned.

        Args:
            names: The metrics to draw; by default all of them.

        Raises:
            SpecError: For a metric that was not defined.
            DataError: For a metric without values so far.
            MissingPackageError: Where Matplotlib is not installed.
        """
        return self.metrics().plot(*names)

    def tensorboard(self) -> str:
        """Return the command line that starts TensorBoard on the event files that the job writes with ``tf.summary``.

        It names the hosts' output, model and checkpoint directories and the directories of this machine that
        hyperparameters name (``job-dir``, ``model_dir``); of an ended job, its artifacts after a download.

        Raises:
            DataError: For a job without event files on this machine so far.
        """
        from scriptmode._results.tensorboard import tensorboard_command

        return tensorboard_command(self.platform, self.name)

    @property
    def model(self) -> Path:
        """The directory with the unpacked model, downloaded into the data directory at the first access.

        Raises:
            DataError: While there is no model, and for an empty one.
        """
        from scriptmode._results.artifacts import download_cached

        description = self._description()
        folder = download_cached(self.platform, description, "model", self._model_uri(description))
        if not any(folder.iterdir()):
            what = f"training job {self.name} is {description.status} and left an empty model"
            raise DataError(what, "have the script write to the directory that SM_MODEL_DIR names")
        return folder

    def download_model(self, folder: str | os.PathLike[str], *, extract: bool = True) -> Path:
        """Download the model, whole or not at all; return the directory as an absolute path.

        Args:
            folder: The directory to create; it may exist if it is empty.
            extract: Whether to unpack the archive. Members that point outside the directory are refused.

        Raises:
            DataError: While there is no model, and for a directory that is not empty.
        """
        from scriptmode._results.artifacts import download

        return download(self.platform, self._model_uri(self._description()), folder, extract=extract)

    def _model_uri(self, description: JobDescription) -> str:
        if not description.artifact_uri:
            what = f"training job {self.name} is {description.status} and has no model"
            raise DataError(what, "look at its log" if description.has_ended else "wait for it to complete")
        return description.artifact_uri

    def rule_job_summary(self) -> list[dict[str, object]]:
        """Return how far the debugger's and the profiler's rules are; nothing for a job without rules.

        These are the service's DebugRuleEvaluationStatuses and ProfilerRuleEvaluationStatuses: dicts of
        ``RuleConfigurationName``, ``RuleEvaluationStatus``, ``StatusDetails`` and others.
        """
        from scriptmode._core.spec.monitoring import rule_statuses

        return rule_statuses(self.describe())

    def logs(self, *, follow: bool = False, hosts: Collection[str] = (), tail: int | None = None) -> Iterator[LogEvent]:
        """Yield the log lines of the job.

        Args:
            follow: Whether to wait for more lines until the job has ended.
            hosts: Names of hosts; by default all hosts.
            tail: Yield only the last lines that each host has so far, this many.

        Yields:
            Events with ``host``, ``message`` and ``time``, without ``follow`` in the order of their times. A line of
            more than 1 MiB is yielded in several events, of which all but the last have ``continues``, or without what
            a progress bar in it overwrites.

        Raises:
            SpecError: For a host that the job does not have.
        """
        from scriptmode._core.handle.log_filter import LogFilter, filtered_events

        return filtered_events(self.platform, self.name, LogFilter(hosts, tail), follow=follow)

    def print_logs(
        self, *, follow: bool = False, hosts: Collection[str] = (), tail: int | None = None, timestamps: bool = False
    ) -> None:
        """Print the log lines of the job, each with the name of its host; arguments and errors are those of `logs`.

        With ``follow``, status lines are printed, too; with ``timestamps`` the time of each line.
        """
        from scriptmode._core.handle.log_filter import LogFilter, filtered_events

        log_filter = LogFilter(hosts, tail)
        on_description = log_lines.StatusLines() if follow else None
        events = filtered_events(self.platform, self.name, log_filter, follow=follow, on_description=on_description)
        log_lines.show(events, timestamps=timestamps)

    def stop(self, *, now: bool = False) -> None:
        """Request that the job stops, and return at once.

        Its hosts get SIGTERM, and SIGKILL if they still run after 120 s, in which the script can save its state; after
        1.5 s with ``now``, also where the job stops already, and which raises `SpecError` for Amazon SageMaker.
        """
        self.platform.stop(self.name, now=truth_value("now", now))

    def rerun(
        self,
        *,
        job_name: str | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
        instance_count: int | None = None,
        max_run: int | None = None,
        max_wait: int | None = None,
    ) -> TrainingJob:
        """Start the same job again under a new name, and return its handle at once.

        The new job has the same source archive, inputs, tags and checkpoint URI; it resumes from the old job's
        checkpoints where there are any. The description of a job does not contain ``enable_session_tag_chaining`` or
        the arguments of a ``LocalPlatform``: the new job has the defaults. A job of ``scriptmode serve`` has the same
        Region, and waits as the old one did. A job on Slurm has the same settings again; those of SCRIPTMODE_SLURM, and
        of a platform ``Slurm(...)`` to which the job is attached, replace them.

        Args:
            job_name: The new name; by default the old name's base with a new timestamp.
            hyperparameters: Hyperparameters that are added or replaced.
            instance_count: Another number of hosts.
            max_run: Another time limit, in seconds.
            max_wait: Another time limit of a spot job including its waiting, in seconds; by default it grows with
                ``max_run``.

        Raises:
            SpecError: For a change that the job cannot have, and for a job with checkpoints that has not ended.
            RequestError: Where the service would refuse the request.
        """
        from scriptmode._core.request.rerun import RerunChanges, check_checkpoints, rerun_request

        changes = RerunChanges(job_name, hyperparameters or {}, instance_count, max_run, max_wait)
        description = self._description()
        check_checkpoints(description)
        request = rerun_request(description.response, self.platform.tags(description), changes)
        self.platform.validate(request)
        return create_job(self.platform.with_settings_of(self.name), request)

    def follow(
        self, *, logs: bool = True, live: bool | None = None, hosts: Collection[str] = (), tail: int | None = None
    ) -> dict[str, Any]:
        """Display the job's log and status until it has ended; return the description of the completed job.

        An interrupt, and credentials that expire, leave the job running; how to follow it again is printed. For the
        job's end it raises what `wait` raises.

        Args:
            logs: Whether to display the log and the status.
            live: Whether to display them in the live view; by default where the output is a terminal or a notebook.
            hosts: Names of hosts whose log lines are displayed; by default all hosts.
            tail: Of the log lines that each host has so far, display only the last ones, this many.

        Raises:
            SpecError: For another value of ``live``, and for a host that the job does not have.
            JobNotFoundError: Where the job is deleted meanwhile.
        """
        from scriptmode import _display as display
        from scriptmode._core.handle.log_filter import LogFilter

        is_told, log_filter = True, LogFilter(hosts, tail)
        view = display.choose_view(live) if logs or live is not None else display.PLAIN
        try:
            if logs:
                is_told = display.follow_job(self.name, self.platform, view, self._source_dir, log_filter)
            description = self._wait(is_log_shown=logs)
        except KeyboardInterrupt:
            self._print_how_to_follow_again()
            raise KeyboardInterrupt from None  # the traceback of the reading loop does not help the user
        except PlatformError as error:
            is_over = isinstance(error, JobNotFoundError)
            if isinstance(error, UnreadableJobError):
                with suppress(ScriptmodeError):
                    is_over = self.ended
            if not is_over:
                self._print_how_to_follow_again()
            raise
        if not is_told:
            log_lines.ended(description)
        log_lines.warn(f"warning: {event}" for event in log_lines.describe_events(self.name, self.platform))
        return description.response

    def _print_how_to_follow_again(self) -> None:
        log_lines.left_running(self.name, self.platform.queue_position(self.name))

    def _repr_html_(self) -> str:
        from scriptmode._display.job_card import job_card

        return job_card(self.name, self.platform, self._source_dir)

    def wait(self, timeout: float | None = None, *, poll: float | None = None, logs: object = None) -> dict[str, Any]:
        """Wait until the job has ended; return the description of the completed job.

        Throttling and lost connections are retried.

        Args:
            timeout: Seconds after which to stop waiting; by default there is no limit.
            poll: Seconds between two requests for the job's description.
            logs: Whether to display the log meanwhile, as `follow` does. It may be the only positional argument, as in
                the SageMaker SDK.

        Raises:
            TrainingJobFailed: Where the job failed.
            TrainingJobStopped: Where the job was stopped.
            WaitTimeoutError: After ``timeout`` seconds; the job is still running.
        """
        from scriptmode._core.spec.arguments import LOGS, shows_logs

        if isinstance(timeout, (bool, list, tuple)) or (isinstance(timeout, str) and timeout.title() in LOGS):
            timeout, logs = None, timeout
        if logs is not None and shows_logs(logs):
            if timeout is not None:
                what = f"is {timeout!r} and logs is {logs!r}"
                raise invalid("timeout", what, "a job is followed to its end, keep one")
            return self.follow()
        return self._wait(timeout, poll).response

    def _wait(
        self, timeout: float | None = None, poll: float | None = None, *, is_log_shown: bool = False
    ) -> JobDescription:
        from scriptmode._core.handle import outcome

        description = outcome.wait_for_end(self.name, self.platform, timeout, poll)
        outcome.raise_for_status(description, self.platform, self._source_dir, is_log_shown=is_log_shown)
        return description

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
    ) -> JobList:
        """Return summaries of training jobs, newest first.

        Args:
            platform: ``"local"`` (this machine, the default), ``"sagemaker"``, or a platform.
            sagemaker_session: A session as the estimators take it; the jobs are Amazon SageMaker's then, or those of
                this machine for a session of local mode.
            name_contains: A part of the name.
            status: One of the values of `status`.
            created_after: A datetime with a time zone.
            created_before: A datetime with a time zone.
            limit: The largest number of jobs.

        Returns:
            TrainingJobSummary objects, displayed as a table. A job of this machine whose files cannot be read has the
            status ``Unreadable``, and the reason as its ``StatusMessage``. ``QueueEndTime`` is when one that
            waited for others stopped waiting.

        Raises:
            SpecError: For an argument of another kind.
        """
        from scriptmode._display.job_list import JobList

        which = JobFilter(name_contains, status, created_after, created_before, limit)
        where = resolve_platform(platform) if sagemaker_session is None else session_platform(sagemaker_session)
        return JobList(where.list(which))


def create_job(platform: Platform, request: JobRequest, source_dir: str = "") -> TrainingJob:
    """Create a training job from a validated request, warn of what its service saw in it, and return its handle.

    Raises:
        KeyboardInterrupt: If the job runs, or may run where its platform is not this machine, the message says how to
            follow it or to look for it, and the attribute ``job_name`` names it.
    """
    job = TrainingJob(request.name, platform, source_dir=source_dir)
    try:
        platform.create(request)
        if request.output.checkpoint_uri:
            events = log_lines.describe_events(job.name, platform, at_start=True)
            with suppress(OSError):
                log_lines.warn((f"warning: {event}" for event in events), sys.stderr)
    except KeyboardInterrupt as error:
        text = f"Training job {job.name} may have been started: scriptmode describe {job.name}"
        if request.resources.host_kind.has_local_jobs:
            text = ""
            with suppress(ScriptmodeError):
                job.describe()
                text = log_lines.how_to_follow_again(job.name, platform.queue_position(job.name))
        if not text:
            raise
        # Not a class of its own: Python ends by SIGINT for an unhandled exception of exactly this class.
        interrupt = KeyboardInterrupt(text)
        vars(interrupt)["job_name"] = job.name
        raise interrupt from error
    return job
