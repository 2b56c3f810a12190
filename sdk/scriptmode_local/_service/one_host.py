"""One host of a job on this machine, prepared as the local platform prepares it, for a caller that runs its script."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from scriptmode._core.request.parse import as_job_request
from scriptmode._core.spec.inputs import TrainingInput
from scriptmode._core.spec.service_values import LogEvent, Metric
from scriptmode.errors import SpecError
from scriptmode_local._agent import cleanup
from scriptmode_local._agent.host_failure import describe_host_failure
from scriptmode_local._data import file_uris
from scriptmode_local._data.stores import Stores
from scriptmode_local._hosts.process_fleet import ProcessFleet
from scriptmode_local._hosts.process_host import run_to_end
from scriptmode_local._inputs import file_mode
from scriptmode_local._outputs import log_metrics
from scriptmode_local._service.service import LocalPlatform
from scriptmode_local._store.host_logs import LogReader
from scriptmode_local._store.job_store import JobFolder
from scriptmode_local._system.forked_tasks import Tasks
from scriptmode_runtime._launch import script_process
from scriptmode_runtime._values.errors import RuntimeFailure

if TYPE_CHECKING:
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode_local._opt_ml.opt_ml import Sandbox
    from scriptmode_local._store.job_record import Job
    from scriptmode_runtime._launch.script_process import ScriptProcess


class PreparedHost(NamedTuple):
    """A host with its source, its inputs and its ports; ``variables`` are those of the host, without the script's."""

    job: Job
    folder: JobFolder
    sandbox: Sandbox
    variables: Mapping[str, str]
    #: The processes that run the script; none on a host that has servers only.
    processes: tuple[ScriptProcess, ...] = ()

    @property
    def log(self) -> Path:
        """The file for the script's output."""
        return self.folder.log(self.sandbox.host)

    def metrics(self) -> list[Metric]:
        """Return the values of the job's metrics in the log."""
        reader = LogReader(self.log)
        events = [LogEvent(self.sandbox.host, *line) for line in reader.lines(final=True)]
        reader.close()
        return log_metrics.parse_metrics(events, self.job.request.algorithm)

    def run(self, argv: Sequence[str], process: ScriptProcess) -> int:
        """Run the script by ``argv`` as a process; return its exit code, or minus a signal's number."""
        return run_to_end(argv, env={**self.variables, **process.spec.env}, cwd=process.spec.cwd, log=self.log)

    def describe_failure(self, process: ScriptProcess, status: int) -> Failure | None:
        """Return why the script failed, from its log; ``status`` is its exit code, or minus a signal's number."""
        name, output = self.sandbox.host, self.log.read_text(encoding="utf-8", errors="replace")
        script_process.report_failure(str(self.sandbox.base), self.variables, process.spec, status, output)
        return describe_host_failure(self.folder, {name: self.sandbox}, name, status).failure


class OneHostPlatform(LocalPlatform):
    """The local platform, whose `create` stores what `prepared_host` needs and starts nothing."""

    created: Job

    def create(self, request: JobRequest | Mapping[str, object], *, failure: str = "") -> str:  # noqa: ARG002 - of the base class
        """Validate a request, and store it; return the job's ARN."""
        self.validate(request)
        job = as_job_request(request)
        if job.source_uri and not file_uris.is_file(job.source_uri):
            what = f"the source at {job.source_uri} is not on this machine, and only a whole job downloads it"
            raise SpecError(what, argument="source_dir", advice="give its directory, or use mode='job'")
        for channel in job.channels:
            mode = job.input_mode(channel)
            if mode == "Pipe" or not isinstance(channel.source, TrainingInput):
                kind = "in Pipe mode" if mode == "Pipe" else "a file system"
                what = f"channel {channel.name!r} is {kind}, which only a whole job can read"
                raise SpecError(what, argument="inputs", advice="use File mode, or mode='job'")
        self.created = self._job(job)
        return self.created.arn

    def describe_crowding(self, job: JobRequest, jobs: int) -> str:  # noqa: ARG002 - whatever the job has
        """Return "": one process of the job runs."""
        return ""

    @contextmanager
    def prepared_host(self, name: str) -> Iterator[PreparedHost]:
        """Prepare the host ``name`` of the created job, and yield it; its ports and inputs are released at the end.

        Raises `DataError` for inputs that cannot be read, and `SpecError` with the runtime's message for what the host
        would refuse.
        """
        job = self.created
        folder = JobFolder(self._store.jobs / job.request.name)
        folder.channels.mkdir(parents=True)
        folder.log(name).parent.mkdir()
        fleet = ProcessFleet(folder, job, Tasks(), os.environ)
        sandbox = fleet.sandboxes[name]
        try:
            fleet.prepare()
            progress, modes = file_mode.StagingProgress(job.request), ("File", "FastFile")
            file_mode.stage_channels(job.request, [sandbox], Stores(), fleet.staging, progress=progress, modes=modes)
            variables = fleet.environment(sandbox)
            try:
                processes = script_process.prepare(str(sandbox.base), variables)
            except RuntimeFailure as error:
                raise SpecError(f"{name} would refuse to run: {error}") from error
            yield PreparedHost(job, folder, sandbox, variables, processes)
        finally:
            fleet.remove_hosts()
            with suppress(OSError):
                cleanup.remove_unneeded_files(folder, failed=True)


def planned_tasks(platform: LocalPlatform, request: JobRequest) -> list[list[str]]:
    """Return for each host of a request the names of the processes that would run the script."""
    return [
        [process.spec.name for process in script_process.plan(host.base_dir, host.files, host.variables)]
        for host in platform.planned_hosts(request).values()
    ]
