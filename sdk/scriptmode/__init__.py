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
    from scriptmode.core.aws.iam_role import get_execution_role
    from scriptmode.core.spec.distribution import MPI, MultiWorkerMirrored, ParameterServer
    from scriptmode.core.spec.inputs import FileSystemInput, ShuffleConfig, TrainingInput
    from scriptmode.core.spec.job_failure import Failure
    from scriptmode.core.spec.parameter_ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
    from scriptmode.core.spec.service_values import HostActivity, JobEvent, LogEvent
    from scriptmode.core.spec.training_job import InstanceGroup
    from scriptmode.core.spec.tuning_configurations import (
        HyperbandStrategyConfig,
        InstanceConfig,
        StrategyConfig,
        TuningJobCompletionCriteriaConfig,
        WarmStartConfig,
        WarmStartTypes,
    )
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
    from scriptmode.estimator import Estimator, TensorFlow
    from scriptmode.job import TrainingJob
    from scriptmode.planning import Plan
    from scriptmode.platforms.slurm.slurm_platform import Slurm
    from scriptmode.sagemaker_session import Session
    from scriptmode.tuning.tuner import HyperparameterTuner, Tuner
else:
    # Each name is imported at its first use: a command that needs few of them starts quickly. Those that are not listed
    # are errors.
    _MODULES = {
        name: module
        for module, names in {
            "core.aws.iam_role": "get_execution_role",
            "core.spec.distribution": "MPI MultiWorkerMirrored ParameterServer",
            "core.spec.inputs": "FileSystemInput ShuffleConfig TrainingInput",
            "core.spec.job_failure": "Failure",
            "core.spec.parameter_ranges": "CategoricalParameter ContinuousParameter IntegerParameter",
            "core.spec.service_values": "HostActivity JobEvent LogEvent",
            "core.spec.training_job": "InstanceGroup",
            "core.spec.tuning_configurations": "HyperbandStrategyConfig InstanceConfig StrategyConfig "
            "TuningJobCompletionCriteriaConfig WarmStartConfig WarmStartTypes",
            "estimator": "Estimator TensorFlow",
            "job": "TrainingJob",
            "planning": "Plan",
            "platforms.slurm.slurm_platform": "Slurm",
            "sagemaker_session": "Session",
            "tuning.tuner": "HyperparameterTuner Tuner",
        }.items()
        for name in names.split()
    }

    #: Modules of the SageMaker SDK v2 and a name of each, for notebooks that import scriptmode as ``sagemaker``.
    _MODULES_OF_SAGEMAKER = {
        "estimator": "Estimator",
        "inputs": "TrainingInput",
        "instance_group": "InstanceGroup",
        "parameter": "ContinuousParameter",
        "s3": "aws.S3Uploader",
        "session": "Session",
        "tensorflow": "TensorFlow",
        "tuner": "HyperparameterTuner",
    }

    #: Other names of the SageMaker SDK, of v1 too, and what to write instead.
    _INSTEAD_OF_SAGEMAKER = {
        "LocalSession": "use scriptmode.Session(local_mode=True)",
        "TrainingJobAnalytics": "use scriptmode.TrainingJob.attach(name).analytics()",
        "analytics": "use scriptmode.TrainingJob.attach(name).analytics()",
        "image_uris": "give the estimator framework_version= and py_version=, and read training_image_uri()",
        "local": "use scriptmode.Session(local_mode=True) and instance_type='local_process'",
        "s3_input": "use scriptmode.TrainingInput",
        **dict.fromkeys(
            ("Chainer", "HuggingFace", "MXNet", "PyTorch", "RLEstimator", "SKLearn", "XGBoost"),
            "scriptmode trains TensorFlow; scriptmode.Estimator runs any program on one host, or under MPI",
        ),
    }

    def __getattr__(name: str) -> object:
        from importlib import import_module

        if name == "__version__":
            from importlib.metadata import version

            return version("scriptmode")
        if name == "errors":
            return import_module("scriptmode.errors")
        if name not in __all__:
            raise _missing_name(name)
        value = getattr(import_module(f"scriptmode.{_MODULES.get(name, 'errors')}"), name)
        globals()[name] = value
        return value

    def _missing_name(name: str) -> Exception:
        """Return the error for a name that scriptmode does not have, with the name that was probably meant."""
        import sys
        from importlib.util import find_spec

        advice = ""
        if own := _MODULES_OF_SAGEMAKER.get(name):
            advice = f", a module of sagemaker; use its names in scriptmode, such as scriptmode.{own}"
        elif instead := _INSTEAD_OF_SAGEMAKER.get(name):
            advice = f"; {instead}"
        elif name[0] != "_" and find_spec(f"scriptmode.{name}") is None:
            from scriptmode.core.text.messages import suggest_similar

            advice = f"; {similar}" if (similar := suggest_similar(name, __all__, cutoff=0.75)) else ""
        # An import replaces the text of an AttributeError by its own, after it has looked for a module of that name.
        is_import = sys._getframe(2).f_code.co_name == "_handle_fromlist"  # noqa: SLF001 - public for CPython
        if is_import and advice and find_spec(f"scriptmode.{name}") is None:
            return ImportError(f"cannot import name {name!r} from 'scriptmode'{advice}", name="scriptmode")
        error = AttributeError(f"module 'scriptmode' has no attribute {name!r}{advice}")
        # Python would append its own suggestion, of the object's names.
        error.obj = None
        return error

    def __dir__() -> list:
        return sorted({*globals(), *__all__})


__all__ = [
    "MPI",
    "CapacityError",
    "CategoricalParameter",
    "ConfigError",
    "ContainerError",
    "ContinuousParameter",
    "CredentialsError",
    "DataAccessError",
    "DataError",
    "DataNotFoundError",
    "Estimator",
    "Failure",
    "FileSystemInput",
    "HostActivity",
    "HyperbandStrategyConfig",
    "HyperparameterTuner",
    "InstanceConfig",
    "InstanceGroup",
    "IntegerParameter",
    "JobEvent",
    "JobExistsError",
    "JobNotFoundError",
    "LogEvent",
    "MissingPackageError",
    "MultiWorkerMirrored",
    "NotIncludedError",
    "ParameterServer",
    "Plan",
    "PlatformError",
    "QuotaError",
    "RequestError",
    "ScriptmodeError",
    "Session",
    "ShuffleConfig",
    "Slurm",
    "SourceError",
    "SpecError",
    "StrategyConfig",
    "TensorFlow",
    "TrainingInput",
    "TrainingJob",
    "TrainingJobError",
    "TrainingJobFailed",
    "TrainingJobStopped",
    "TransientError",
    "Tuner",
    "TuningJobCompletionCriteriaConfig",
    "TuningJobFailed",
    "UnreadableJobError",
    "WaitTimeoutError",
    "WarmStartConfig",
    "WarmStartTypes",
    "get_execution_role",
]
