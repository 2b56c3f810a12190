"""The names of the SageMaker SDK v2 and v1 that scriptmode has, and what to do instead of the others. Pure.

The import alias reads these tables; the guide "Coming from sagemaker v2" lists the rows of `NOT_INCLUDED`.
"""

from __future__ import annotations

from collections.abc import Iterable

from scriptmode._core.spec.older_names import MISSING_METHODS
from scriptmode._core.text.messages import did_you_mean

#: The version of the SageMaker SDK whose names these are, for programs that print or compare it.
VERSION = "2.257.7"
ROOT = "sagemaker"
_ADAPTERS = "v2.adapters"


def _same(names: str, package: str = "") -> dict[str, str]:
    """Return where names are that scriptmode, or a package of it, has under the same names."""
    return {name: f"{package}.{name}" if package else name for name in names.split()}


_SESSION = {**_same("Session get_execution_role"), **_same("LocalSession", _ADAPTERS)}
_INPUTS = {**_same("TrainingInput FileSystemInput ShuffleConfig"), "s3_input": "TrainingInput"}
_RANGES = _same("ContinuousParameter IntegerParameter CategoricalParameter")
_TUNING = _same(
    "WarmStartConfig WarmStartTypes TuningJobCompletionCriteriaConfig InstanceConfig StrategyConfig "
    "HyperbandStrategyConfig"
)
_ANALYTICS = _same("TrainingJobAnalytics HyperparameterTuningJobAnalytics", _ADAPTERS)
_S3_PATHS = _same("s3_path_join parse_s3_url determine_bucket_and_prefix", "aws")
_S3 = {**_same("S3Uploader S3Downloader", "aws"), **_S3_PATHS}
_DEBUGGER = _same(
    "CollectionConfig DebuggerHookConfig ProfilerConfig ProfilerRule Rule TensorBoardOutputConfig rule_configs "
    "FrameworkProfile DetailedProfilingConfig DataloaderProfilingConfig PythonProfilingConfig HorovodProfilingConfig "
    "SMDataParallelProfilingConfig PythonProfiler cProfileTimer",
    "v2.debugger",
)
#: The modules that the alias has: their names, and where each is below ``scriptmode``.
COUNTERPARTS = {
    "sagemaker": {**_SESSION, **_ANALYTICS, "TrainingInput": "TrainingInput", "s3_input": "TrainingInput"},
    "sagemaker.analytics": _ANALYTICS,
    "sagemaker.debugger": _DEBUGGER,
    "sagemaker.estimator": _same("Estimator Framework", _ADAPTERS),
    "sagemaker.exceptions": {"CapacityError": "CapacityError", "UnexpectedStatusException": "TrainingJobFailed"},
    "sagemaker.image_uris": _same("retrieve", _ADAPTERS),
    "sagemaker.inputs": _INPUTS,
    "sagemaker.instance_group": _same("InstanceGroup"),
    "sagemaker.local": _same("LocalSession", _ADAPTERS),
    "sagemaker.local.local_session": _same("LocalSession", _ADAPTERS),
    "sagemaker.parameter": _RANGES,
    "sagemaker.s3": _S3,
    "sagemaker.s3_utils": _S3_PATHS,
    "sagemaker.session": {**_SESSION, **_INPUTS},
    **dict.fromkeys(("sagemaker.tensorflow", "sagemaker.tensorflow.estimator"), _same("TensorFlow", _ADAPTERS)),
    "sagemaker.tuner": {**_same("HyperparameterTuner"), **_RANGES, **_TUNING},
    "sagemaker.utils": _same("name_from_base unique_name_from_base sagemaker_timestamp", _ADAPTERS),
}


_IMAGES = "give the estimator framework_version and py_version, and read training_image_uri()"
_SERVE = MISSING_METHODS["deploy"]
_PIPELINES = MISSING_METHODS["prepare_workflow_for_training"]
_FRAMEWORKS = "give Estimator the image_uri of an image with the framework, or use the SageMaker SDK"
#: Modules and names that scriptmode does not have, and what to do instead. The longest matching row counts.
NOT_INCLUDED = {
    **dict.fromkeys((
        "sagemaker.model", "sagemaker.predictor", "sagemaker.serializers", "sagemaker.deserializers",
        "sagemaker.tensorflow.TensorFlowModel", "sagemaker.tensorflow.TensorFlowPredictor",
        "sagemaker.tensorflow.model", "sagemaker.tensorflow.serving", "sagemaker.transformer",
        "sagemaker.tensorflow.predictor", "sagemaker.content_types", "sagemaker.multidatamodel",
        "sagemaker.serverless", "sagemaker.async_inference", "sagemaker.model_monitor",
        "sagemaker.model_metrics", "sagemaker.Model", "sagemaker.Predictor",
        "sagemaker.session.production_variant", "sagemaker.session.container_def",
        "sagemaker.Session.delete_endpoint", "sagemaker.Session.endpoint_from_production_variants",
        "sagemaker.inputs.CreateModelInput", "sagemaker.inputs.TransformInput",
    ), _SERVE),
    **dict.fromkeys(("sagemaker.workflow", "sagemaker.pipeline", "sagemaker.PipelineModel"), _PIPELINES),
    **dict.fromkeys((
        "sagemaker.processing", "sagemaker.tensorflow.TensorFlowProcessor", "sagemaker.spark", "sagemaker.clarify",
        "sagemaker.sklearn.processing", "sagemaker.network",
    ), "prepare data in a program of its own, or use boto3's create_processing_job"),
    **dict.fromkeys((
        "sagemaker.pytorch", "sagemaker.huggingface", "sagemaker.mxnet", "sagemaker.chainer", "sagemaker.sklearn",
        "sagemaker.xgboost", "sagemaker.rl",
    ), _FRAMEWORKS),
    **dict.fromkeys((
        "sagemaker.amazon", "sagemaker.algorithm", "sagemaker.automl", "sagemaker.jumpstart",
        "sagemaker.model_uris", "sagemaker.script_uris", "sagemaker.hyperparameters",
    ), "use the SageMaker SDK: scriptmode trains scripts, not AWS's own algorithms and models"),
    "sagemaker.fw_utils": _IMAGES,
    **dict.fromkeys(
        ("sagemaker.tensorflow.TrainingCompilerConfig", "sagemaker.training_compiler"),
        "leave compiler_config out: AWS makes no images with the SageMaker Training Compiler any more",
    ),
    **dict.fromkeys((
        "sagemaker.experiments", "sagemaker.analytics.ExperimentAnalytics", "sagemaker.ExperimentAnalytics",
        "sagemaker.lineage",
    ), "give fit experiment_config, and let the script print its metrics"),
    "sagemaker.remote_function": "write the function into a script, and give it as entry_point",
    "sagemaker.feature_store": "use boto3's create_feature_group and put_record",
}  # fmt: skip
_OTHERS = "use boto3, or the SageMaker SDK in a program of its own"


def not_included_row(dotted: str) -> str:
    """Return the longest row of `NOT_INCLUDED` that has a name or the module that it is in; "" for none."""
    while dotted and dotted not in NOT_INCLUDED:
        dotted = dotted.rpartition(".")[0]
    return dotted


def advise(dotted: str, known: Iterable[str] = ()) -> str:
    """Return what to do instead of a name such as ``sagemaker.workflow.steps``; one of ``known`` may be meant."""
    if row := not_included_row(dotted):
        return NOT_INCLUDED[row]
    return did_you_mean(dotted.rpartition(".")[2], known, most=0) or _OTHERS
