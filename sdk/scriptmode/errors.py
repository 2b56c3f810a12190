"""Every error the SDK raises.

ScriptmodeError
├── SpecError (ValueError)           an argument that cannot make a training job; nothing was done yet
│   ├── SourceError                  the script or its folder cannot be packed
│   └── ConfigError                  the SageMaker config file cannot be read or says something unknown
├── PlatformError                    the platform refused or could not be reached
│   ├── RequestError                 the request is not one the service accepts
│   ├── CredentialsError             no credentials, or they do not allow it
│   ├── QuotaError                   the account's limits do not allow it
│   ├── TransientError               no answer, or "slow down": the same call may succeed later
│   ├── DataError                    an input or an output place cannot be read or written
│   │   ├── DataNotFoundError        there is no such object or bucket
│   │   ├── DataAccessError          the credentials do not allow it, or the bucket is another account's
│   │   └── UnreadableJobError       a file of a job's folder on this machine is damaged; ``job_name``, ``path``
│   ├── ContainerError               Docker is not there, or an image or a container cannot be had from it
│   ├── JobNotFoundError             no job of that name
│   └── JobExistsError               a job of that name is there already
├── TrainingJobError                 a job that did not complete; ``job_name``, ``status``, ``description``
│   ├── TrainingJobFailed            it failed: ``reason``
│   │   └── CapacityError            there were no instances of the type to be had
│   └── TrainingJobStopped           it was stopped, by a caller or by its time limit
├── MissingPackageError (ImportError)  a Python package that a call needs is not installed
└── WaitTimeoutError (TimeoutError)  the caller's timeout ended, not the job
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class ScriptmodeError(Exception):
    """Any error of this library."""


class SpecError(ScriptmodeError, ValueError):
    """An argument that cannot make a training job; raised before any side effect."""


class SourceError(SpecError):
    """The script or its source folder cannot be packed."""


class ConfigError(SpecError):
    """The SageMaker config file cannot be read, or says something that no schema knows."""


class PlatformError(ScriptmodeError):
    """The platform refused a call or could not be reached."""


class RequestError(PlatformError):
    """A request that is not one the training service accepts."""


class CredentialsError(PlatformError):
    """AWS credentials are missing or do not allow the call."""


class QuotaError(PlatformError):
    """The account's limits do not allow it; nothing was started."""


class TransientError(PlatformError):
    """The platform gave no answer, or asked to be called less often: the same call may succeed later."""


class DataError(PlatformError):
    """An input or an output place that cannot be read or written."""


class DataNotFoundError(DataError):
    """There is no such object or bucket."""


class DataAccessError(DataError):
    """The credentials do not allow it, or the bucket belongs to another account."""


class UnreadableJobError(DataError):
    """A file of a job's folder on this machine is missing or damaged, so that the job cannot be described.

    Other jobs are not affected. ``job_name`` is the job's name, ``path`` that of the file; ``is_running`` says whether
    the job still runs.
    """

    def __init__(
        self,
        job_name: str,
        path: os.PathLike[str],
        cause: object,
        *,
        is_log: bool = False,
        is_running: bool = False,
    ) -> None:
        """``is_log`` says that the file is a log, without which the job is still whole."""
        import shlex

        what, step = "", f"look at its folder, or delete it: scriptmode rm {shlex.quote(job_name)}"
        if is_running:
            step = f"the job still runs, end and delete it: scriptmode rm --force {shlex.quote(job_name)}"
        if is_log:
            what = "the log of "
            step = f"the rest of the job is not affected, remove that file alone: rm {shlex.quote(os.fspath(path))}"
        super().__init__(f"{what}training job {job_name!r} cannot be read: {os.fspath(path)}: {cause}; {step}")
        self.job_name = job_name
        self.path = path
        self.is_running = is_running


class ContainerError(PlatformError):
    """Docker is not there or refuses; or an image cannot be found, built or pushed."""


class JobNotFoundError(PlatformError):
    """The platform knows no training job of that name."""


class JobExistsError(PlatformError):
    """The platform has a training job of that name already."""


class TrainingJobError(ScriptmodeError):
    """A training job that ended without completing, or never will end; ``description`` is its description, whole."""

    def __init__(self, message: str, description: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.description = dict(description)

    @property
    def job_name(self) -> str:
        """The training job's name."""
        return str(self.description["TrainingJobName"])

    @property
    def status(self) -> str:
        """``Failed`` or ``Stopped``, as the service says it."""
        return str(self.description["TrainingJobStatus"])

    @property
    def secondary_status(self) -> str:
        """The finer status, such as ``MaxRuntimeExceeded``."""
        return str(self.description["SecondaryStatus"])


class TrainingJobFailed(TrainingJobError):  # noqa: N818 - the past tense of the job's own status
    """The job failed; ``reason`` names host, process and exit code and ends with the traceback's end."""

    @property
    def reason(self) -> str:
        """The service's FailureReason."""
        return str(self.description.get("FailureReason", ""))


class CapacityError(TrainingJobFailed):
    """The platform had no instances of the type to give; another type, Region or time may do."""


class TrainingJobStopped(TrainingJobError):  # noqa: N818 - the past tense of the job's own status
    """The job was stopped, by ``stop()`` or by its time limit (see ``secondary_status``)."""


class MissingPackageError(ScriptmodeError, ImportError):
    """A call needs a Python package that scriptmode does not bring, and that is not installed."""


class WaitTimeoutError(ScriptmodeError, TimeoutError):
    """``wait(timeout=)`` ran out; the job goes on."""
