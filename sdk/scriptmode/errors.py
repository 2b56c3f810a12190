"""Every error that the SDK raises.

ScriptmodeError
├── SpecError (ValueError)           an argument cannot make a training job; raised before any side effect
│   ├── SourceError                  the script or its directory cannot be packed
│   └── ConfigError                  the SageMaker config file cannot be read, or has an unknown key
├── PlatformError                    the platform refused a call or could not be reached
│   ├── RequestError                 the service does not accept the request
│   ├── CredentialsError             AWS credentials are missing, or do not allow the call
│   ├── QuotaError                   a quota of the account, or the size of this machine, does not allow the job
│   ├── TransientError               no answer, or throttling: the same call may succeed later
│   ├── DataError                    an input cannot be read, or an output cannot be written
│   │   ├── DataNotFoundError        the object or the bucket does not exist
│   │   ├── DataAccessError          the credentials do not allow access, or the bucket is another account's
│   │   └── UnreadableJobError       a file of a job on this machine is missing or damaged
│   ├── ContainerError               Docker, an image or a container is not available
│   ├── JobNotFoundError             a job of that name does not exist
│   └── JobExistsError               a job of that name exists already
├── TrainingJobError                 a job did not complete
│   ├── TrainingJobFailed            the job failed
│   │   └── CapacityError            the service had no instances of the type
│   └── TrainingJobStopped           the job was stopped, by a caller or by its time limit
├── TuningJobFailed                  a tuning job failed: no training job has a value of its objective
├── MissingPackageError (ImportError)  a Python package that a call needs is not installed
├── NotIncludedError (ModuleNotFoundError)  a part of the SageMaker SDK v2 that ``scriptmode.v2`` does not have
└── WaitTimeoutError (TimeoutError)  ``wait(timeout=)`` ended before the job
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from scriptmode._core.spec.job_failure import Failure


_Error = TypeVar("_Error", bound="ScriptmodeError")
#: A value that is too long for a message: quoted, a list or a dict, or a word; and the characters that are kept of it.
_LONG_VALUE = (
    r"(?<=(?<!\w)')[^'\n]{400,}(?='(?!\w))|(?<=\")[^\"\n]{400,}(?=\")|(?<=[\[{])[^\[\]{}\n]{400,}(?=[\]}])"
    r"|[^\s'\"\[\]{}]{400,}"
)
_VALUE_START, _VALUE_END = 200, 60


def shorten_values(text: str) -> str:
    """Return a message in which values of more than 400 characters have their first and last characters alone."""
    return re.sub(_LONG_VALUE, lambda match: f"{match[0][:_VALUE_START]}[...]{match[0][-_VALUE_END:]}", text)


class ScriptmodeError(Exception):
    """The base class of every error of this library. Its text is the message, and the advice after a semicolon.

    Attributes:
        message: What is wrong.
        argument: Name of the argument that is wrong, such as ``instance_type``; ``None`` where it is none.
        advice: The next step, such as ``give an s3:// URI``; ``None`` where the message has it, or there is none.
    """

    def __init__(self, message: object, advice: str | None = None, *, argument: str | None = None) -> None:
        self.message = shorten_values(str(message))
        self.argument = argument
        self.advice = shorten_values(advice) if advice else None
        super().__init__(f"{self.message}; {self.advice}" if advice else self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what `pickle` and `copy` create the error from: subclasses differ in their constructors' arguments."""
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[ScriptmodeError], args: tuple[Any, ...], attributes: dict[str, object]) -> ScriptmodeError:
    error = kind.__new__(kind)
    # The next class is OSError or ImportError for some, which keep what their constructors were given.
    super(ScriptmodeError, error).__init__(*args)
    error.__dict__.update(attributes)
    return error


class SpecError(ScriptmodeError, ValueError):
    """An argument that cannot make a training job.

    Raised before any side effect. The message names the argument, its value and what is allowed.
    """


def invalid(argument: str, what: str, advice: str | None = None) -> SpecError:
    """Return the error ``{argument} {what}; {advice}``; what the argument belongs to may stand before it."""
    return SpecError(f"{argument} {what}", advice, argument=argument.rpartition(" ")[2])


def with_suffix(error: _Error, suffix: str) -> _Error:
    """Return an error of the same class and argument whose text, or first line, ends with a blank and ``suffix``."""
    if error.advice:
        return type(error)(error.message, argument=error.argument, advice=f"{error.advice} {suffix}")
    first, *others = error.message.split("\n")
    return type(error)("\n".join([f"{first} {suffix}", *others]), argument=error.argument)


class SourceError(SpecError):
    """The script or its source directory cannot be packed."""


class ConfigError(SpecError):
    """The SageMaker config file cannot be read, or has a key that its schema does not have."""


class PlatformError(ScriptmodeError):
    """The platform refused a call or could not be reached."""


class RequestError(PlatformError):
    """The training service does not accept a request; the message lists every problem."""


class CredentialsError(PlatformError):
    """AWS credentials are missing, or do not allow the call."""


class QuotaError(PlatformError):
    """The quotas of the AWS account, or the size of this machine, do not allow the job, which was not started."""


class TransientError(PlatformError):
    """The platform gave no answer, or throttled the call: the same call may succeed later."""


class DataError(PlatformError):
    """An input cannot be read, or an output cannot be written."""


class DataNotFoundError(DataError):
    """An object, a bucket, or a file or directory of this machine does not exist."""


class DataAccessError(DataError):
    """The credentials do not allow access to an object, or the bucket belongs to another account."""


#: Errors of a file system that say nothing about the files on it: its device fails, or its server is away.
DISK_ERRORS = frozenset({errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN})
#: The next step after one of them.
FAILED_DISK = "that disk or its server fails (see dmesg), and the job may be whole: mount it again and repeat this"


class UnreadableJobError(DataError):
    """A file of a job on this machine is missing or damaged, so that the job cannot be described.

    Other jobs are not affected.

    Attributes:
        job_name: The job's name.
        path: The path of the file.
        is_running: Whether the job is still running.
    """

    def __init__(
        self,
        job_name: str,
        path: os.PathLike[str],
        cause: object,
        *,
        is_log: bool = False,
        is_running: bool = False,
        owner: str = "",
    ) -> None:
        """Create the error.

        Args:
            job_name: The job's name.
            path: The path of the file.
            cause: Why the file cannot be read.
            is_log: Whether the file is a log; the rest of the job is readable then.
            is_running: Whether the job is still running.
            owner: The user who has the job, where it is another one.
        """
        import shlex

        what, step = "", f"look at its directory, or delete it: scriptmode rm {shlex.quote(job_name)}"
        if is_running:
            step = f"the job still runs, stop it: scriptmode stop {shlex.quote(job_name)}"
        if is_log:
            what = "the log of "
            step = f"the rest of the job is not affected, remove that file alone: rm {shlex.quote(os.fspath(path))}"
        if owner:
            # It may run, and be undamaged.
            step = f"ask {owner} for access to it"
        if isinstance(cause, OSError):
            step = FAILED_DISK if cause.errno in DISK_ERRORS else step
            # The message names the path.
            cause = cause.strerror or cause
        whose = f", which belongs to {owner}," if owner else ""
        super().__init__(f"{what}training job {job_name!r}{whose} cannot be read: {os.fspath(path)}: {cause}", step)
        self.job_name = job_name
        self.path = path
        self.is_running = is_running


class ContainerError(PlatformError):
    """Docker does not answer or refuses a call, or an image cannot be found, built or pushed."""


class JobNotFoundError(PlatformError):
    """The platform has no training job of that name."""


class JobExistsError(PlatformError):
    """The platform has a training job of that name already."""


class TrainingJobError(ScriptmodeError):
    """A training job that did not complete.

    Attributes:
        description: The whole description of the job, as DescribeTrainingJob returns it.
    """

    def __init__(self, message: str, description: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.description = dict(description)

    @property
    def job_name(self) -> str:
        """The training job's name."""
        return str(self.description["TrainingJobName"])

    @property
    def status(self) -> str:
        """The status: ``Failed`` or ``Stopped``."""
        return str(self.description["TrainingJobStatus"])

    @property
    def secondary_status(self) -> str:
        """The finer status, such as ``MaxRuntimeExceeded``."""
        return str(self.description["SecondaryStatus"])


class TrainingJobFailed(TrainingJobError):  # noqa: N818 - the past tense of the job's own status
    """The job failed. The message says what failed and where the whole log is.

    Attributes:
        failure: Why it failed: the host, the process, how it ended, its traceback.
        actual_status: The SageMaker SDK's name of ``status``.
        allowed_statuses: The statuses of ended jobs that are not this error: ``Completed`` and ``Stopped``.
    """

    def __init__(self, message: str, description: Mapping[str, Any], failure: Failure | None = None) -> None:
        """Create the error.

        Args:
            message: The message.
            description: The description of the job.
            failure: Why it failed; by default what the FailureReason of ``description`` says.
        """
        from scriptmode._core.spec.failure_text import parse_failure_reason

        super().__init__(message, description)
        self.failure = failure or parse_failure_reason(self.reason)
        self.actual_status, self.allowed_statuses = description.get("TrainingJobStatus"), ["Completed", "Stopped"]

    @property
    def reason(self) -> str:
        """The service's FailureReason: host, process and exit code, then the end of the traceback."""
        return str(self.description.get("FailureReason", ""))


class CapacityError(TrainingJobFailed):
    """The service had no instances of the type; another type, another Region or a later time may have some."""


class TrainingJobStopped(TrainingJobError):  # noqa: N818 - the past tense of the job's own status
    """The job was stopped, by ``stop()`` or by its time limit; ``secondary_status`` says which."""


class TuningJobFailed(ScriptmodeError):  # noqa: N818 - the past tense of the tuning job's own status
    """A tuning job failed: none of its training jobs has a value of the objective.

    Attributes:
        description: The whole description of the tuning job, as DescribeHyperParameterTuningJob returns it.
    """

    def __init__(self, message: str, description: Mapping[str, Any], *, advice: str | None = None) -> None:
        super().__init__(message, advice=advice)
        self.description = dict(description)


class MissingPackageError(ScriptmodeError, ImportError):
    """A call needs a Python package that scriptmode does not require and that is not installed."""


class NotIncludedError(ScriptmodeError, ModuleNotFoundError):
    """``scriptmode.v2`` does not have a module or a name of the SageMaker SDK v2; the advice is what to do instead."""


class WaitTimeoutError(ScriptmodeError, TimeoutError):
    """``wait(timeout=)`` ended before the job, which is still running."""
