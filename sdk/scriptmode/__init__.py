"""Train a TensorFlow script on many processes and machines by one call."""

from scriptmode.distribution import MPI, MultiWorkerMirrored, ParameterServer
from scriptmode.errors import (
    CapacityError,
    ConfigError,
    ContainerError,
    CredentialsError,
    DataAccessError,
    DataError,
    DataNotFoundError,
    JobExistsError,
    JobNotFoundError,
    MissingPackageError,
    PlatformError,
    QuotaError,
    RequestError,
    ScriptmodeError,
    SourceError,
    SpecError,
    TrainingJobError,
    TrainingJobFailed,
    TrainingJobStopped,
    TransientError,
    WaitTimeoutError,
)
from scriptmode.estimator import Estimator, TensorFlow
from scriptmode.inputs import FileSystemInput, ShuffleConfig, TrainingInput
from scriptmode.job import TrainingJob
from scriptmode.platforms import LogEvent, get_execution_role
from scriptmode.spec import InstanceGroup

__all__ = [
    "MPI",
    "CapacityError",
    "ConfigError",
    "ContainerError",
    "CredentialsError",
    "DataAccessError",
    "DataError",
    "DataNotFoundError",
    "Estimator",
    "FileSystemInput",
    "InstanceGroup",
    "JobExistsError",
    "JobNotFoundError",
    "LogEvent",
    "MissingPackageError",
    "MultiWorkerMirrored",
    "ParameterServer",
    "PlatformError",
    "QuotaError",
    "RequestError",
    "ScriptmodeError",
    "ShuffleConfig",
    "SourceError",
    "SpecError",
    "TensorFlow",
    "TrainingInput",
    "TrainingJob",
    "TrainingJobError",
    "TrainingJobFailed",
    "TrainingJobStopped",
    "TransientError",
    "WaitTimeoutError",
    "get_execution_role",
]
