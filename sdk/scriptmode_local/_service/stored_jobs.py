"""The jobs of a data directory, as every process of its user sees them: `StoredJobs`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode._core.machine.clock import SYSTEM
from scriptmode._core.spec.service_values import ANY_JOB
from scriptmode.errors import RequestError, ScriptmodeError

if TYPE_CHECKING:
    from scriptmode._core.spec import host_values, service_values
    from scriptmode._core.spec.job_description import JobDescription
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode_local._store.job_record import Job
    from scriptmode_local._store.job_store import JobStore
    from scriptmode_local._store.state import JobSummary


class StoredJobs:
    """What `LocalPlatform` does with jobs that exist; any process of their user may have created them."""

    poll_seconds = 0.05
    clock = SYSTEM

    def __init__(self, store: JobStore) -> None:
        self._store = store

    def describe(self, name: str) -> JobDescription:
        """Return what is known of a job; one whose agent died is recorded as Failed first.

        Raises:
            JobNotFoundError: There is no such job.
            UnreadableJobError: A file of the job is damaged.

        """
        from scriptmode_local._agent import recovery
        from scriptmode_local._store.job_response import describe

        folder = self._store.find(name)
        return describe(folder.read_job().request, recovery.reconcile(folder))

    def failure(self, description: JobDescription) -> Failure | None:
        """Return why a described job failed, as its runtime and its agent recorded it; None if neither did.

        Raises what `describe` raises.
        """
        return self._store.find(description.name).read_state().failure

    def events(self, name: str) -> tuple[service_values.JobEvent, ...]:
        """Return what a job lost and then what it did again so far; raise `JobNotFoundError`."""
        return tuple(sorted(self._store.find(name).read_state().events, key=lambda event: not event.is_loss))

    def tags(self, description: JobDescription) -> dict[str, str]:
        """Return the tags that the job was created with."""
        return dict(description.job.tags)

    def record(self, name: str) -> Job:
        """Return what was recorded of a job at its creation, also where its state is damaged."""
        return self._store.find(name).read_job()

    def server_folder(self, name: str) -> Path:
        """Return a job's directory for a server's files, or raise `JobNotFoundError`; it need not exist."""
        return self._store.find(name).server_files

    def stop(self, name: str, *, now: bool = False) -> None:
        """Request that a job stop, ``now`` without its grace period; a job that ended is left as it is.

        Returns at once, except for a job whose agent does not answer: that job is ended by this call, within 20 s.

        Raises:
            JobNotFoundError: There is no such job.
            DataError: The job's folder cannot be written.
            UnreadableJobError: A file of the job, which has ended, is damaged.

        """
        from scriptmode_local._agent.stop_request import request_stop

        request_stop(self._store.find(name), now=now)

    def update(self, name: str, **changes: Mapping[str, object]) -> None:
        """Raise `RequestError`: jobs have neither a profiler nor remote debugging here."""
        self._store.find(name)
        raise RequestError(f"training job {name} is one of this machine, which has no {', '.join(changes)} to change")

    def delete(self, name: str) -> None:
        """Delete a job, also one whose files are damaged; a running job is killed first and saves nothing.

        Raises:
            JobNotFoundError: There is no such job.
            DataError: The job cannot be ended, or its folder cannot be removed.

        """
        from scriptmode_local._agent import removal

        removal.delete_job(self._store.find(name))

    def log_events(
        self, name: str, *, follow: bool, on_description: Callable[[JobDescription], None] | None = None
    ) -> Iterator[service_values.LogEvent]:
        """Yield the lines of every host's log; with ``follow`` until the job ended.

        ``on_description`` is called with the job's description whenever its state changed.

        Raises:
            JobNotFoundError: There is no such job.
            UnreadableJobError: A file of the job is damaged.
            TrainingJobError: The job's agent died and its folder cannot be written, so the job never ends.

        """
        from scriptmode_local._service.log_events import read_log_events

        return read_log_events(
            self._store.find(name), follow=follow, on_description=on_description, poll_seconds=self.poll_seconds
        )

    def metrics(self, description: JobDescription) -> list[service_values.Metric]:
        """Return the job's metrics, found in its log by their regular expressions; they have no timestamps."""
        from scriptmode_local._outputs.log_metrics import parse_metrics

        return parse_metrics(self.log_events(description.name, follow=False), description.job.algorithm)

    def host_folders(self, name: str) -> dict[str, Path]:
        """Return the hosts' folders by host; they exist while the job runs, and after a failure."""
        folder = self._store.find(name)
        folders = {host: folder.host(host) for host in folder.read_job().request.resources.hosts}
        return {host: path for host, path in folders.items() if path.is_dir()}

    def progress(self, name: str) -> tuple[host_values.ChannelProgress, ...]:
        """Return the progress that the job's agent recorded, at most half a second ago."""
        return self._store.find(name).read_progress()

    def activity(self, name: str) -> dict[str, host_values.HostActivity]:
        """Return what each host that has a log does now; its resources are at most some seconds old."""
        from scriptmode_local._store.host_activity import read_activity

        return read_activity(self._store.find(name))

    def stacks(self, name: str) -> dict[str, str]:
        """Return what the processes of each host that answers do now, with the stacks of Python, by host.

        Raises `PlatformError` for a job that does not train.
        """
        from scriptmode_local._service.stacks import read_stacks

        return read_stacks(self._store.find(name), self.host_folders(name))

    def log_locations(self, name: str) -> dict[str, str]:
        """Return the paths of the hosts' logs by host."""
        folder = self._store.find(name)
        logs = {host: folder.log(host) for host in folder.read_job().request.resources.hosts}
        return {host: str(path) for host, path in logs.items() if path.exists()}

    def queue_position(self, name: str) -> int:
        """Return the position of a job that waits for others, from 1 on; 0 for a job that does not wait."""
        from scriptmode_local._agent import recovery
        from scriptmode_local._store.job_queue import JobQueue

        position = JobQueue(self._store).positions().get(name, 0)
        with suppress(ScriptmodeError):
            return position or recovery.reconcile(self._store.find(name)).position
        return 0

    def select(self, select: Callable[[list[JobSummary]], dict[str, Any]]) -> dict[str, Any]:
        """Return the ListTrainingJobsResponse that ``select`` makes of the summaries of all jobs."""
        from scriptmode_local._service import job_index

        return job_index.select_jobs(self._store, select)

    def list(self, which: service_values.JobFilter = ANY_JOB) -> list[dict[str, Any]]:
        """Return TrainingJobSummary objects, newest first."""
        from scriptmode_local._store.summary_response import render_summary

        def select(jobs: Iterable[JobSummary]) -> dict[str, Any]:
            newest_first = map(render_summary, sorted(jobs, key=lambda job: job.created, reverse=True))
            wanted = newest_first if which == ANY_JOB else filter(which.matches, newest_first)
            return {"TrainingJobSummaries": list(islice(wanted, which.limit))}

        return [*self.select(select)["TrainingJobSummaries"]]
