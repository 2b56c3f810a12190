"""Train a TensorFlow script on many processes and machines by one call.

Public are the names in ``__all__``. The page "Public names" of the reference lists those of other modules; every other
name may change without notice.

PYTEST_DONT_REWRITE: a program may import this package before it runs pytest, which would warn of that otherwise.
"""

#: False when the package runs; type checkers take it for True. Python's own name of it takes milliseconds to import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    #: The installed version.
    __version__: str
    from scriptmode._core.aws.iam_role import get_execution_role
    from scriptmode._core.spec.distribution import MPI, MultiWorkerMirrored, ParameterServer
    from scriptmode._core.spec.host_values import HostActivity
    from scriptmode._core.spec.inputs import FileSystemInput, ShuffleConfig, TrainingInput
    from scriptmode._core.spec.job_failure import Failure
    from scriptmode._core.spec.parameter_ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from scriptmode._core.spec.service_values import JobEvent, LogEvent
    from scriptmode._core.spec.training_job import InstanceGroup
    from scriptmode._core.spec.tuning_configurations import (
        HyperbandStrategyConfig,
        InstanceConfig,
        StrategyConfig,
        TuningJobCompletionCriteriaConfig,
        WarmStartConfig,
        WarmStartTypes,
    )
    from scriptmode._estimator import Estimator, TensorFlow
    from scriptmode._job import TrainingJob
    from scriptmode._sagemaker_session import Session
    from scriptmode._tuning.tuner import HyperparameterTuner, Tuner
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
        NotIncludedError,
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
        TuningJobFailed,
        UnreadableJobError,
        WaitTimeoutError,
    )
    from scriptmode.planning import Plan
    from scriptmode_slurm._engine.platform import Slurm
else:
    # Each name is imported at its first use: a command that needs few of them starts quickly. Those that are not listed
    # are errors.
    _MODULES = {
        name: module if module.startswith("scriptmode_") else f"scriptmode.{module}"
        for module, names in {
            "_core.aws.iam_role": "get_execution_role",
            "_core.spec.distribution": "MPI MultiWorkerMirrored ParameterServer",
            "_core.spec.inputs": "FileSystemInput ShuffleConfig TrainingInput",
            "_core.spec.job_failure": "Failure",
            "_core.spec.parameter_ranges": "CategoricalParameter ContinuousParameter IntegerParameter",
            "_core.spec.host_values": "HostActivity",
            "_core.spec.service_values": "JobEvent LogEvent",
            "_core.spec.training_job": "InstanceGroup",
            "_core.spec.tuning_configurations": "HyperbandStrategyConfig InstanceConfig StrategyConfig "
            "TuningJobCompletionCriteriaConfig WarmStartConfig WarmStartTypes",
            "_estimator": "Estimator TensorFlow",
            "_job": "TrainingJob",
            "planning": "Plan",
            "_sagemaker_session": "Session",
            "scriptmode_slurm._engine.platform": "Slurm",
            "_tuning.tuner": "HyperparameterTuner Tuner",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            from importlib.metadata import version

            return version("scriptmode")
        if name == "errors":
            return import_module("scriptmode.errors")
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES.get(name, "scriptmode.errors")), name)
        globals()[name] = value
        return value

    def __dir__() -> list:
        return sorted({*globals(), *__all__})


__all__ = [
    "MPI", "CapacityError", "CategoricalParameter", "ConfigError", "ContainerError", "ContinuousParameter",
    "CredentialsError", "DataAccessError", "DataError", "DataNotFoundError", "Estimator", "Failure",
    "FileSystemInput", "HostActivity", "HyperbandStrategyConfig", "HyperparameterTuner", "InstanceConfig",
    "InstanceGroup", "IntegerParameter", "JobEvent", "JobExistsError", "JobNotFoundError", "LogEvent",
    "MissingPackageError", "MultiWorkerMirrored", "NotIncludedError", "ParameterServer", "Plan", "PlatformError",
    "QuotaError", "RequestError", "ScriptmodeError", "Session", "ShuffleConfig", "Slurm", "SourceError",
    "SpecError", "StrategyConfig", "TensorFlow", "TrainingInput", "TrainingJob", "TrainingJobError",
    "TrainingJobFailed", "TrainingJobStopped", "TransientError", "Tuner", "TuningJobCompletionCriteriaConfig",
    "TuningJobFailed", "UnreadableJobError", "WaitTimeoutError", "WarmStartConfig", "WarmStartTypes",
    "get_execution_role",
]  # fmt: skip
