"""The local training service: `LocalPlatform`, the platform over the job store."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from copy import copy
from dataclasses import replace
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from scriptmode._core.aws.s3_uris import is_in_local_bucket
from scriptmode._core.machine.data_dir import FILE_SYSTEMS_VARIABLE, default_data_dir
from scriptmode._core.spec.hosts import CLIENT_REGION, LOCAL_ACCOUNT, LOCAL_REGION, LOCAL_ROLE
from scriptmode._core.spec.names import SERVER_TAGS
from scriptmode._core.spec.service_values import CHECKPOINTS_SHARED, JobEvent
from scriptmode._core.spec.whole_numbers import truth_value
from scriptmode.errors import ScriptmodeError, invalid
from scriptmode_local._data import file_uris
from scriptmode_local._hosts import HostSettings
from scriptmode_local._service.stored_jobs import StoredJobs
from scriptmode_local._store.job_record import FITTING, Job
from scriptmode_local._store.job_store import JobStore, job_exists_error
from scriptmode_local._store.shapes import is_number
from scriptmode_local._store.state import starting_state
from scriptmode_runtime.contract import DEFAULT_STOP_GRACE

if TYPE_CHECKING:
    from typing_extensions import Self

    from scriptmode._core.spec.host_values import PlannedHost
    from scriptmode._core.spec.job_request import JobRequest
    from scriptmode._core.spec.training_job import Resources, TrainingJobSpec
    from scriptmode_local._hosts.engine import Engine
    from scriptmode_local._service.pruning import PruneReport
    from scriptmode_local._service.validation import ValidatedRequest
    from scriptmode_local._tuning.tuning_service import LocalTuning


#: The queue for as many jobs as this machine has processors and memory for.
AUTOMATIC = "auto"


class LocalPlatform(StoredJobs):
    """A training service on this machine, whose hosts are processes or containers.

    Each job belongs to a detached process, which outlives the caller, and every process that uses the same data
    directory sees the job. Hosts that are containers (instance types ``local`` and ``local_gpu``) need a Docker daemon
    on this machine.

    On a host that is a process, ``/opt/ml`` is a folder of the job: hyperparameters that are strings, and values of
    Environment, are changed to that folder if they are ``/opt/ml`` or a path below it. Removing a job's folder deletes
    the job; a job that still runs ends with it.

    Args:
        data_dir: Directory of the jobs. Default: the variable SCRIPTMODE_DATA_DIR, else the user's data directory.
        python: Interpreter of hosts that are processes. Default: the running one.
        stop_grace: Seconds from SIGTERM to SIGKILL when a job is stopped.
        file_systems: Folders that stand for EFS and FSx for Lustre file systems, by the IDs of these. They take
            precedence over the variable SCRIPTMODE_FILE_SYSTEMS (``fs-0123=/mnt/data,fs-9=/x``).
        container_limits: Limits of each container. They take precedence over the variable
            SCRIPTMODE_CONTAINER_LIMITS (``memory=8g,cpus=2,shm_size=4g``). The keys are ``memory`` and ``shm_size``
            (of ``/dev/shm``) in bytes or as ``"8g"``, ``cpus``, ``pids`` (processes and threads), and
            ``no_new_privileges``. By default memory and CPUs are unlimited, ``/dev/shm`` has half of this machine's
            memory, ``pids`` is some thousands, and no program in a container, such as sudo, gains more rights than it
            has.
        queue: A job that is created waits until fewer than this many jobs of the data directory run, or with "auto"
            until this machine has processors and memory for it, and the earlier ones that wait have started. A job
            that is larger than the machine then runs alone. By default a job starts at once.
        force: Whether to start jobs that have more processes than this machine has cores and memory for.

    Raises:
        SpecError: An argument or one of the variables is wrong.
    """

    def __init__(  # noqa: PLR0913 - each is one setting of the machine
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        python: str | os.PathLike[str] | None = None,
        stop_grace: float = DEFAULT_STOP_GRACE,
        file_systems: Mapping[str, str | os.PathLike[str]] | None = None,
        container_limits: Mapping[str, int | float | str] | None = None,
        queue: int | str | None = None,
        force: bool = False,
    ) -> None:
        if queue not in (None, AUTOMATIC) and (not isinstance(queue, int) or queue < 1):
            advice = f"give the number of jobs that may run at once, at least 1, or {AUTOMATIC!r}"
            raise invalid("queue", f"is {queue!r}", advice)
        if not is_number(stop_grace) or stop_grace < 0:
            advice = "give the seconds from SIGTERM to SIGKILL, 0 or more"
            raise invalid("stop_grace", f"is {stop_grace!r}", advice)
        self._queue, self._force = queue or None, truth_value("force", force)
        if container_limits is not None:
            from scriptmode_local._hosts.container_limits import parse_limits

            parse_limits(container_limits, {})
        self._file_systems: dict[str, str] = {}
        if file_systems is not None or FILE_SYSTEMS_VARIABLE in os.environ:
            from scriptmode_local._system.file_systems import parse_file_systems

            self._file_systems = parse_file_systems(file_systems, os.environ)
        for name, path in (("data_dir", data_dir), ("python", python)):
            if path is not None and not isinstance(path, (str, os.PathLike)):
                raise invalid(name, f"is {path!r}", "give a path")
        super().__init__(JobStore(default_data_dir() if data_dir is None else Path(data_dir).expanduser().absolute()))
        self._region = os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or LOCAL_REGION
        python = None if python is None else os.fspath(python)
        #: The request that was validated last, and the one that was planned last with its batch script.
        self._checked: ValidatedRequest | None = None
        self._planned: tuple[JobRequest | None, str] = None, ""
        self._settings = HostSettings(python, container_limits, region=self._region)
        self.stop_grace = stop_grace

    @property
    def region(self) -> str:
        """The Region that the hosts are told to be in: that of a server's client or boto3's variables, or us-east-1."""
        return CLIENT_REGION.get() or self._region

    @property
    def python(self) -> str:
        """The interpreter of hosts that run without an image; raises `PlatformError` if it cannot run them."""
        if self._settings.python is None:
            return sys.executable
        from scriptmode_local._hosts.interpreter import find_interpreter

        return find_interpreter(self._settings.python)

    @property
    def tuning(self) -> LocalTuning:
        """The tuning jobs of the data directory, whose training jobs this platform runs."""
        # By its name, as engines are: its agent imports this module.
        service: LocalTuning = resolve_name("scriptmode_local._tuning.tuning_service:LocalTuning")(self)
        return service

    @property
    def arguments(self) -> dict[str, object]:
        """The arguments with which another process creates this platform, as JSON has them."""
        limits = self._settings.container_limits
        return {
            "data_dir": str(self._store.data_dir),
            "python": self._settings.python,
            "stop_grace": self.stop_grace,
            "file_systems": self._file_systems,
            "container_limits": limits and dict(limits),
            "queue": self._queue,
            "force": self._force,
        }

    def with_settings_of(self, name: str) -> Self:
        """Return this platform with the settings of one of its jobs, over which those that are given prevail.

        A job that a server created keeps its Region and waits as it did, and one that was forced is forced. The other
        settings are those of a cluster, with the interpreter and the grace period.

        Raises:
            JobNotFoundError: There is no such job.
            UnreadableJobError: A file of the job is damaged.
        """
        from scriptmode_local._system import capacity

        job = self._store.find(name).read_job()
        made = copy(self)
        vars(made)["_force"] = self._force or bool(capacity.describe_crowding(job.request, is_refused=True))
        if any(key.startswith(SERVER_TAGS) for key, _ in job.request.tags):
            queue = AUTOMATIC if job.queue == FITTING else job.queue or None
            vars(made).update(_region=job.region, _queue=self._queue or queue)
        if job.request.resources.host_kind.is_here:
            return made
        python = self._settings.python or (job.python if os.access(job.python, os.X_OK) else None)
        grace = job.stop_grace if self.stop_grace == DEFAULT_STOP_GRACE else self.stop_grace
        vars(made).update(_settings=replace(self._settings, python=python, recorded=job.engine), stop_grace=grace)
        return made

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in output path and code location below the data directory, a role, and the image of containers.

        The role is one of the local account, unless the spec has an ARN. Containers get this project's image that is
        nearest to ``framework_version`` unless one is named. Warns if the hosts then have another TensorFlow or Python
        than the spec names. Locations in the bucket of sessions without an account become the
        directories that they are. The SageMaker config file belongs to an account of Amazon SageMaker
        and is not read.

        Raises:
            SpecError: The spec has neither script nor image.
            PlatformError: ``python`` cannot run the hosts.
        """
        spec = _engine_of(spec.resources).complete(spec, self._settings)
        if any(map(is_in_local_bucket, (*spec.locations.values(), str(spec.model_dir)))):
            from scriptmode_local._inputs import s3_locations

            spec = s3_locations.resolve_local_bucket(spec)
        role = spec.role
        if role is None or not role.startswith("arn:"):
            role = f"arn:aws:iam::{LOCAL_ACCOUNT}:role/{role or LOCAL_ROLE}"
        output = replace(
            spec.output,
            path=spec.output.path or f"{file_uris.SCHEME}{self._store.jobs}",
            code_location=spec.output.code_location or f"{file_uris.SCHEME}{self._store.sources}",
        )
        return replace(spec, role=role, output=output)

    def validate(self, request: JobRequest | Mapping[str, object], *, jobs: int = 1) -> None:
        """Raise `RequestError` listing every problem of a request, by the service's model and for its hosts.

        Raises `QuotaError` where ``jobs`` such jobs, as far as they do not wait for one another, need a larger machine.
        """
        self._checked = self._validate(request, jobs)

    def _validate(self, request: JobRequest | Mapping[str, Any], jobs: int = 1) -> ValidatedRequest:
        from scriptmode_local._service import validation
        from scriptmode_local._system import capacity

        checked = validation.validate_request(request)
        if not self._force:
            capacity.require_capacity(checked.request, self._at_once(jobs))
        return checked

    def describe_crowding(self, job: JobRequest, jobs: int) -> str:
        """Return a warning of more processes of such jobs than run well here; "" without one."""
        from scriptmode_local._system import capacity

        return capacity.describe_crowding(job, self._at_once(jobs))

    def _describe_sharing(self, uri: str | None) -> str:
        # With a queue of one, jobs take turns.
        if not uri or self._queue == 1:
            return ""
        from scriptmode_local._service.job_index import running_jobs

        for other in running_jobs(self._store):
            place, theirs = (f"{os.path.normpath(text)}/" for text in (uri, other.request.output.checkpoint_uri or "-"))
            if place.startswith(theirs) or theirs.startswith(place):
                what = f"training job {other.request.name}, which had not ended at the start, writes to {uri}, too"
                return f"{what}: each job may overwrite those of the other; give each another checkpoint_s3_uri"
        return ""

    def _at_once(self, jobs: int) -> int:
        """Return how many of a number of jobs run at once, while the others wait."""
        return 1 if self._queue == AUTOMATIC else min(jobs, int(self._queue or jobs))

    def require_runnable(self, request: Mapping[str, object]) -> None:
        """Raise what `create` raises for a valid request whose data, places of results or software are missing."""
        from scriptmode._core.request.parse import as_job_request
        from scriptmode_local._service import validation

        job = as_job_request(request)
        validation.check_paths(job, self._store.jobs, self._file_systems)
        _require_image(job)

    def planned_hosts(self, request: JobRequest) -> dict[str, PlannedHost]:
        """Return the environment that each host would have; ports and the secret are made when the job starts.

        Raises:
            JobExistsError: A job of that name exists.
            DataError: An input on this machine cannot be read.
        """
        from scriptmode_local._service import validation

        if self._store.exists(request.name):
            raise job_exists_error(request.name)
        validation.check_inputs(request, self._file_systems)
        hosts, script = self._plan(request)
        self._planned = request, script
        return hosts

    def planned_script(self, request: JobRequest) -> str:
        """Return the batch script of a job on Slurm; "" for a job whose agent is a process of this machine."""
        planned, script = self._planned
        return script if planned is request else self._plan(request)[1]

    def _plan(self, request: JobRequest) -> tuple[dict[str, PlannedHost], str]:
        folder = self._store.folder(request.name)
        return _engine_of(request.resources).plan(folder, self._job(request), os.environ)

    def put_source(
        self,
        archive: bytes,
        uri: str,
        *,
        kms_key: str | None = None,
        role: str | None = None,  # noqa: ARG002 - only Amazon SageMaker needs the owner of the bucket
    ) -> None:
        """Store a source archive, unless it is stored already; ``kms_key`` is used for S3 only.

        Raises:
            DataError: The archive cannot be stored.
        """
        from scriptmode_local._service import job_sources

        job_sources.store_source(self._store, archive, uri, kms_key)

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the file or folder ``uri`` into ``folder``, an s3:// URI with boto3's own settings; return the files.

        Raises:
            DataError: ``uri`` cannot be read, or ``folder`` cannot be written.
        """
        from scriptmode_local._inputs import s3_locations
        from scriptmode_local._service import job_sources

        with s3_locations.advise_server(self._store.data_dir):
            return job_sources.fetch(uri, folder)

    def create(self, request: JobRequest | Mapping[str, object], *, failure: str = "") -> str:
        """Validate a request and start its job; return the job's ARN without waiting for the job.

        With ``failure`` the job is recorded as failed for that reason, and does not run. The same call replaces a job
        whose agent never started, because the process that called was killed.

        Raises:
            RequestError: The request is invalid.
            QuotaError: This machine is too small for the job.
            JobExistsError: A job of that name exists.
            DataError: An input cannot be read, or an output path or the data directory cannot be written.
            CredentialsError: The request names S3 objects, and there are no AWS credentials.
            PlatformError: The job's agent cannot be started, or the image is not built.
        """
        from scriptmode_local._agent import start
        from scriptmode_local._service import validation

        checked = self._checked
        if checked is None or checked.request is not request:
            checked = self._validate(request)
        parsed = checked.request
        if self._store.exists(parsed.name) and not start.remove_unstarted(self._store, parsed):
            raise job_exists_error(parsed.name)
        with ExitStack() as stack:
            if parsed.s3_uris:
                from scriptmode_local._inputs import s3_locations

                s3_locations.require_server(parsed, self._store.data_dir)
                stack.enter_context(s3_locations.advise_server(self._store.data_dir))
            validation.check_paths(parsed, self._store.jobs, self._file_systems)
        if not failure:
            _require_image(parsed)
        job, message = replace(self._job(parsed), fields=checked.fields), parsed.resources.host_kind.pending_message
        now = time.time()
        state = starting_state(parsed.name, job.arn, now, is_queued=job.queue != 0, pending_message=message)
        if failure:
            state = state.with_status("Failed", now, reason=failure)
        elif sharing := self._describe_sharing(parsed.output.checkpoint_uri):
            state = state.with_event(JobEvent(CHECKPOINTS_SHARED, sharing, time=now))
        start.start_job(self._store, job, state)
        return job.arn

    def resume(self) -> list[str]:
        """Start the jobs again whose agent was lost, as every call that reads them does; return their names.

        Tuning jobs are continued, too.
        """
        interrupted = [job for job in reversed(self.list()) if job["SecondaryStatus"] == "Interrupted"]
        # A job on Slurm is in the hands of its scheduler.
        resumed = [name for job in interrupted if self._store.folder(name := job["TrainingJobName"]).has_agent()]
        tuning = self.tuning
        for tuning_job in tuning.list():
            with suppress(ScriptmodeError):
                tuning.describe(tuning_job["HyperParameterTuningJobName"])
        return resumed

    def prune(self, older_than: float, *, dry_run: bool = False) -> PruneReport:
        """Remove jobs that ended more than ``older_than`` seconds ago, sources that no job needs, and caches.

        Running jobs, what they use, and a source that was stored or used in the last hour, are kept.

        Raises:
            DataError: The data directory cannot be read.
        """
        from scriptmode_local._service import pruning

        return pruning.prune(self._store, self.list(), older_than, dry_run=dry_run)

    def _job(self, request: JobRequest) -> Job:
        """Return the part of a job that does not change after its creation."""
        fits = FITTING if request.resources.host_kind.is_here else 0
        return Job(
            request,
            f"arn:aws:sagemaker:{self.region}:{LOCAL_ACCOUNT}:training-job/{request.name}",
            self.region,
            self.python,
            self.stop_grace,
            self._file_systems,
            _engine_of(request.resources).settings(replace(self._settings, region=self.region)),
            fits if self._queue == AUTOMATIC else int(self._queue or 0),
        )


def _engine_of(resources: Resources) -> Engine:
    # Not for a list of jobs, or another call that reads them.
    from scriptmode_local._hosts.engine import find_engine

    return find_engine(resources.host_kind)


def _require_image(job: JobRequest) -> None:
    """Raise `PlatformError` for an image of this project that is not built."""
    if job.resources.host_kind.uses_docker:
        from scriptmode.containers._training_images import require_built

        require_built(str(job.algorithm.image_uri))
