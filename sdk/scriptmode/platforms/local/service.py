"""The local training service: create, describe, list, stop and log_events over the job store."""

from __future__ import annotations

import os
import shutil
import sys
import time
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.aws import image_support
from scriptmode.clock import SYSTEM
from scriptmode.data import file_copy, file_uris
from scriptmode.data_dir import DATA_DIR_VARIABLE, close_to_others, default_data_dir, path_within
from scriptmode.errors import DataError, JobExistsError, PlatformError, SpecError, TrainingJobError, UnreadableJobError
from scriptmode.messages import install_command
from scriptmode.platforms import requested_hosts
from scriptmode.platforms.base import ANY_JOB, LOCAL_CONTAINER, LOCAL_GPU, LogEvent
from scriptmode.platforms.local.agent import recovery
from scriptmode.platforms.local.hosts.container_limits import parse_limits
from scriptmode.platforms.local.outputs import metrics
from scriptmode.platforms.local.store.description import render_description, render_summary
from scriptmode.platforms.local.store.job_store import Job, JobStore
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.platforms.local.system import full_disk
from scriptmode.platforms.local.system.durable import Entries, replace_file
from scriptmode.platforms.local.system.file_systems import parse_file_systems
from scriptmode_runtime.contract import DEFAULT_STOP_GRACE
from scriptmode_runtime.files import beneath

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scriptmode.platforms.base import ChannelProgress, JobFilter, Metric, PlannedHost
    from scriptmode.platforms.local.store.job_store import JobFolder
    from scriptmode.platforms.local.store.logs import LogReader
    from scriptmode.spec.training_job import TrainingJobSpec

ACCOUNT = "000000000000"
DEFAULT_REGION = "us-east-1"
DEFAULT_ROLE = "scriptmode-local"


class LocalPlatform:
    """Trains on this machine, each host a process or a container. Implements `scriptmode.platforms.base.Platform`.

    Jobs live in ``data_dir`` (default: SCRIPTMODE_DATA_DIR, else the user's data directory), belong to a detached
    process each, and are there for every other process that uses the same directory. ``python`` is the hosts'
    interpreter (default: the running one); ``stop_grace`` the seconds from SIGTERM to SIGKILL when a job is stopped;
    ``file_systems`` the folders that stand for EFS and FSx file systems, by their ids, beside those of the variable
    SCRIPTMODE_FILE_SYSTEMS (``fs-0123=/mnt/data,fs-9=/x``).

    Hosts that are containers (instance types ``local``, ``local_gpu``) need a Docker daemon of this machine. Each may
    use what ``container_limits`` says, or the variable SCRIPTMODE_CONTAINER_LIMITS (``memory=8g,cpus=2,shm_size=4g``):
    ``memory`` and ``shm_size``, that of ``/dev/shm``, in bytes or as ``"8g"``, ``cpus``, and ``pids``, a number of
    processes and threads. Unlimited are memory and CPUs by default; ``/dev/shm`` has half of this machine's memory,
    ``pids`` is some thousands. No program of a container gives its process more rights than it has, as sudo does,
    unless ``no_new_privileges`` is False.

    On a host that is a process ``/opt/ml`` is a folder of the job: hyperparameters that are strings, and values of
    Environment, that name ``/opt/ml`` or a path below it are changed to name that folder. A job is deleted by removing
    its folder; one that still runs ends with it.
    """

    poll_seconds = 0.05
    clock = SYSTEM

    def __init__(
        self,
        *,
        data_dir: str | os.PathLike[str] | None = None,
        python: str | os.PathLike[str] | None = None,
        stop_grace: float = DEFAULT_STOP_GRACE,
        file_systems: Mapping[str, str | os.PathLike[str]] | None = None,
        container_limits: Mapping[str, int | float | str] | None = None,
    ) -> None:
        self._limits = partial(parse_limits, container_limits, os.environ)
        parse_limits(container_limits, {})
        self._given_limits = container_limits
        self._file_systems = parse_file_systems(file_systems, os.environ)
        self._store = JobStore(default_data_dir() if data_dir is None else Path(data_dir).expanduser().absolute())
        self._python = None if python is None else os.fspath(python)
        self._stop_grace = stop_grace
        self._region = os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or DEFAULT_REGION

    @property
    def region(self) -> str:
        """The Region that the hosts are told to be in: boto3's variables, else us-east-1."""
        return self._region

    def complete(self, spec: TrainingJobSpec) -> TrainingJobSpec:
        """Fill in the places below the data directory, and a role of the local account where none or a name is given.

        Hosts that are containers get this project's image for ``framework_version`` where none is named.

        The SageMaker config file is for Amazon SageMaker's account and is not read. Raises `SpecError` for a job
        without a script or an image, or for a TensorFlow that the hosts do not have.
        """
        if set(spec.resources.types) <= set(LOCAL_CONTAINER):
            self._limits()
            spec = replace(spec, algorithm=replace(spec.algorithm, image_uri=_image(spec)))
            image_support.check_aws_image(spec)
        else:
            self._check_script(spec)
        role = spec.role
        if role is None or not role.startswith("arn:"):
            role = f"arn:aws:iam::{ACCOUNT}:role/{role or DEFAULT_ROLE}"
        output = replace(
            spec.output,
            path=spec.output.path or f"{file_uris.SCHEME}{self._store.jobs}",
            code_location=spec.output.code_location or f"{file_uris.SCHEME}{self._store.sources}",
        )
        return replace(spec, role=role, output=output)

    def validate(self, request: Mapping[str, Any]) -> None:
        """Check a request against the service's model, and against what the hosts it asks for can do."""
        from scriptmode.platforms.local import validation

        validation.check(request)

    def planned_hosts(self, request: Mapping[str, Any]) -> dict[str, PlannedHost]:
        """Give what each host would find; the hosts' ports are chosen, and their secret is made, at the start.

        Raises `JobExistsError` and, for inputs of this machine, `DataError` as `create` would.
        """
        from scriptmode.platforms.local import validation
        from scriptmode.platforms.local.hosts import planned_hosts

        self._require_new(str(request["TrainingJobName"]))
        validation.check_inputs(request, self._file_systems)
        return planned_hosts.plan_local_hosts(self._job(request), self._store.jobs, os.environ)

    def put_source(
        self,
        archive: bytes,
        uri: str,
        *,
        kms_key: str | None = None,
        role: str | None = None,  # noqa: ARG002 - whose bucket it is matters to Amazon SageMaker alone
    ) -> None:
        """Store a source archive; one that is there already is left as it is. ``kms_key`` is for S3 alone."""
        if not file_uris.is_file(uri):
            from scriptmode.aws.s3 import S3

            bucket = S3()
            if not bucket.exists(uri):
                bucket.upload_bytes(archive, uri, kms_key=kms_key)
            return
        try:
            path = file_uris.file_path(uri)
            if self._store.sources in path.parents:
                close_to_others(self._store.sources)
            if not path.exists():
                entries = Entries()
                for folder in path_within(path.parent, self._store.data_dir) or [path.parent]:
                    entries.make_directory(folder, mode=0o700)
                replace_file(path, archive, directory=True)
                entries.sync()
        except (OSError, ValueError) as error:
            if full_disk.is_full(error):
                raise full_disk.full_disk_error(error, path) from error
            own = f"{file_uris.SCHEME}{self._store.sources}"
            step = (
                f"name another folder in {DATA_DIR_VARIABLE}" if uri.startswith(own) else "give another code_location"
            )
            raise DataError(f"the source archive cannot be stored at {uri}: {error}; {step}") from error

    def create(self, request: Mapping[str, Any]) -> str:
        """Check a request, start its job, and return the job's ARN without waiting for anything."""
        from scriptmode.platforms.local import validation

        self.validate(request)
        name = str(request["TrainingJobName"])
        self._require_new(name)
        validation.check_locations(request, self._store.jobs, self._file_systems)
        if requested_hosts.has_container_hosts(request):
            from scriptmode.containers.training_images import require_built

            require_built(str(request["AlgorithmSpecification"]["TrainingImage"]))
        job = self._job(request)
        with self._store.create(job, starting_state(name, job.arn, time.time())) as (folder, lock):
            _start_agent(folder, lock)
        return job.arn

    def describe(self, name: str) -> dict[str, Any]:
        """Return DescribeTrainingJob's response."""
        folder = self._store.find(name)
        return render_description(folder.read_job().request, recovery.reconcile(folder))

    def tags(self, description: Mapping[str, Any]) -> dict[str, str]:
        """Return the tags that the job was given."""
        request = self._store.find(str(description["TrainingJobName"])).read_job().request
        return {tag["Key"]: tag["Value"] for tag in request.get("Tags", ())}

    def stop(self, name: str) -> None:
        """Ask a job to stop; one that ended is left as it is.

        Returns at once, but for a job whose agent does not answer: that one is ended here, within 20 s.
        """
        folder = self._store.find(name)
        state = recovery.reconcile(folder)
        is_silent = not state.ended and folder.silent_since() is not None
        if state.stoppable or is_silent:
            folder.request_stop()
        if is_silent:
            recovery.reconcile(folder)

    def delete(self, name: str) -> None:
        """Delete a job, whatever its folder holds; one that still runs is ended first, without time to save anything.

        Raises `DataError` where it cannot be ended or its folder cannot be removed.
        """
        from scriptmode.platforms.local.agent import removal

        removal.delete_job(self._store.find(name))

    def log_events(
        self, name: str, *, follow: bool, on_description: Callable[[dict[str, Any]], None] | None = None
    ) -> Iterator[LogEvent]:
        """Yield the lines of every host's log; with ``follow`` until the job ended."""
        return _log_events(self._store.find(name), follow=follow, on_description=on_description)

    def metrics(self, description: Mapping[str, Any]) -> list[Metric]:
        """Find the job's metrics in its log by their regular expressions; the log keeps no time of day."""
        name = str(description["TrainingJobName"])
        return metrics.parse_metrics(self.log_events(name, follow=False), description)

    def host_folders(self, name: str) -> dict[str, Path]:
        """Return the hosts' folders: while the job runs, and after a failure."""
        folder = self._store.find(name)
        found = {host: folder.host(host) for host in requested_hosts.hosts(folder.read_job().request)}
        return {host: path for host, path in found.items() if path.is_dir()}

    def progress(self, name: str) -> tuple[ChannelProgress, ...]:
        """Return what the job's agent counted, at most half a second ago."""
        return self._store.find(name).read_progress()

    def log_locations(self, name: str) -> dict[str, str]:
        """Return the paths of the hosts' logs."""
        folder = self._store.find(name)
        logs = {host: folder.log(host) for host in requested_hosts.hosts(folder.read_job().request)}
        return {host: str(path) for host, path in logs.items() if path.exists()}

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the file, or all files below the folder, ``uri``; s3:// places by boto3's settings."""
        if not file_uris.is_file(uri):
            from scriptmode.aws.s3 import S3

            return S3().fetch(uri, folder)
        try:
            return file_copy.copy_path(file_uris.file_path(uri), folder)
        except ValueError as error:
            raise DataError(str(error)) from error

    def list(self, which: JobFilter = ANY_JOB) -> list[dict[str, Any]]:
        """Return TrainingJobSummary objects, newest first."""
        from itertools import islice

        from scriptmode.platforms.local import job_index

        newest_first = sorted(job_index.job_summaries(self._store), key=lambda job: job.created, reverse=True)
        return list(islice(filter(which.matches, map(render_summary, newest_first)), which.limit))

    def _require_new(self, name: str) -> None:
        if self._store.exists(name):
            raise JobExistsError(f"there is a training job named {name!r} already; use another name")

    def _job(self, request: Mapping[str, Any]) -> Job:
        """Give what is settled when the job is created."""
        return Job(
            request,
            f"arn:aws:sagemaker:{self._region}:{ACCOUNT}:training-job/{request['TrainingJobName']}",
            self._region,
            self._interpreter(),
            self._stop_grace,
            self._file_systems,
            asdict(self._limits()) if requested_hosts.has_container_hosts(request) else {},
        )

    def _check_script(self, spec: TrainingJobSpec) -> None:
        """Raise `SpecError` for a job that hosts that are processes cannot run."""
        if spec.script is None:
            raise SpecError("entry_point is missing; give a script, a host that is a process starts no image")
        if self._given_limits:
            raise SpecError(
                f"container_limits is {self._given_limits!r}, but hosts of instance type "
                f"{spec.resources.types[0]!r} are processes, which nothing limits; leave it out of LocalPlatform(...), "
                "or use instance_type='local'"
            )
        if spec.algorithm.framework_version is not None:
            _check_tensorflow(spec.algorithm.framework_version, self._interpreter())
        if spec.algorithm.py_version is not None:
            _check_python(spec.algorithm.py_version, self._interpreter())

    def _interpreter(self) -> str:
        """Give the hosts' interpreter; raise `PlatformError` when it cannot run them."""
        if self._python is None:
            return sys.executable
        found = shutil.which(Path(self._python).expanduser())
        if found is None:
            raise PlatformError(f"there is no program {self._python!r} to run the hosts with; correct 'python'")
        # Not resolved: a virtual environment's interpreter is a link to the one it was made from.
        python = str(Path(found).absolute())
        if python == sys.executable:
            return python
        from scriptmode.platforms.local.hosts.process_host import import_failure

        if failure := import_failure(python, "scriptmode_runtime"):
            install = install_command(python=python)
            raise PlatformError(f"{python} cannot run training hosts: {failure}; install scriptmode for it: {install}")
        return python


def _image(spec: TrainingJobSpec) -> str:
    """Give the image of hosts that are containers: the spec's, else the one this project builds."""
    algorithm = spec.algorithm
    if algorithm.image_uri is not None:
        return algorithm.image_uri
    if spec.script is None:
        raise SpecError("image_uri and entry_point are missing; give an image, or a script for this project's own")
    if LOCAL_GPU in spec.resources.types:
        raise SpecError(
            f"image_uri is missing; {LOCAL_GPU!r} needs an image for GPUs, which is made from one with CUDA: "
            "scriptmode image build --gpu --base ..."
        )
    from scriptmode.containers.image_recipe import PY_VERSION
    from scriptmode.containers.training_images import default_image

    try:
        image = default_image(algorithm.framework_version)
    except SpecError as error:
        tag = f"{algorithm.framework_version}-cpu-{algorithm.py_version or 'py310'}"
        raise SpecError(
            f"{error}; give image_uri= for AWS's image of it, its URI in Amazon ECR, from where your AWS credentials "
            f"pull it: '<account>.dkr.ecr.<region>.amazonaws.com/tensorflow-training:{tag}'"
        ) from error
    if algorithm.py_version not in (None, "py3", PY_VERSION):
        raise SpecError(
            f"py_version is {algorithm.py_version!r}, but {image}, this project's image, has {PY_VERSION!r}; leave "
            "py_version out, or give image_uri"
        )
    return image


def _check_python(wanted: str, python: str) -> None:
    """Raise `SpecError` when the hosts' interpreter is another Python than ``py311`` or ``py3`` say."""
    from scriptmode.platforms.local.hosts.process_host import python_version

    major, minor = sys.version_info[:2] if python == sys.executable else python_version(python)
    if wanted not in (f"py{major}", f"py{major}{minor}"):
        raise SpecError(
            f"py_version is {wanted!r}, but hosts that are processes run with {python}, which is Python "
            f"{major}.{minor}; leave it out, or give LocalPlatform(python=...)"
        )


def _check_tensorflow(wanted: str, python: str) -> None:
    """Raise `SpecError` when the hosts' interpreter has another TensorFlow."""
    from importlib import metadata

    names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
    found: list[str] = []
    if python != sys.executable:
        from scriptmode.platforms.local.hosts.process_host import versions

        found = versions(python, names)
    for name in names if python == sys.executable else ():
        with suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name))
    if not any(version == wanted or version.startswith(f"{wanted}.") for version in found):
        raise SpecError(
            f"framework_version is {wanted!r}, but hosts that are processes run with {python}, which has "
            f"TensorFlow {' and '.join(found) or 'not at all'}; leave it out, or give LocalPlatform(python=...)"
        )


def _start_agent(folder: JobFolder, lock: int) -> None:
    from scriptmode.platforms.local.hosts.process_host import start_detached

    argv = (sys.executable, "-m", "scriptmode.platforms.local.agent", str(folder.path), str(lock))
    if trouble := start_detached(argv, log=folder.agent_log, keep=lock):
        said = folder.agent_log_tail()
        with suppress(OSError):
            beneath.remove_tree(folder.path)
        raise PlatformError(
            f"the job's agent did not come up: {trouble}; see what is wrong with this machine: scriptmode doctor"
            + (f". It said\n{said}" if said else "")
        )


def _log_events(
    folder: JobFolder, *, follow: bool, on_description: Callable[[dict[str, Any]], None] | None
) -> Iterator[LogEvent]:
    from scriptmode.platforms.local.store.logs import LogReader

    request = folder.read_job().request
    watched = recovery.ReconciledJob(folder)
    readers = [(host, LogReader(folder.log(host))) for host in requested_hosts.hosts(request)]
    shown = None
    try:
        while True:
            # Asked before the logs are read: what was written before the end is then read after it.
            state = watched.reconcile()
            ended, is_lost = state.ended, recovery.is_agent_lost(state)
            # The end is told after the last lines.
            if on_description is not None and state != shown and not ended:
                on_description(render_description(request, state))
                shown = state
            quiet = True
            for host, reader in readers:
                for line, continues in _lines(folder, host, reader, final=ended or is_lost):
                    quiet = False
                    yield LogEvent(host, line, continues)
            if ended and on_description is not None:
                on_description(render_description(request, state))
            if ended or not follow:
                return
            if is_lost:
                said = state.note
                raise TrainingJobError(f"training job {folder.name}: {said}", render_description(request, state))
            if quiet:
                SYSTEM.sleep(LocalPlatform.poll_seconds)
    finally:
        for _, reader in readers:
            reader.close()


def _lines(folder: JobFolder, host: str, reader: LogReader, *, final: bool) -> Iterator[tuple[str, bool]]:
    """Yield a host's new lines, each with whether it goes on; raise `UnreadableJobError` where that is impossible."""
    try:
        yield from reader.lines(final=final)
    except OSError as error:
        raise UnreadableJobError(folder.name, folder.log(host), error.strerror or error, is_log=True) from error
