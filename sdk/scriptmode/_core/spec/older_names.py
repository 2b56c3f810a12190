"""What older SageMaker SDKs call the arguments and methods of estimators. Pure, except for warnings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from scriptmode._core.spec.pipeline_variables import INSTEAD_OF_PIPELINES
from scriptmode._core.text.messages import Problem, did_you_mean, warn_caller

#: SageMaker SDK v1's name of an argument, and its name since v2.
RENAMED = {
    "train_instance_count": "instance_count",
    "train_instance_type": "instance_type",
    "train_volume_size": "volume_size",
    "train_volume_kms_key": "volume_kms_key",
    "train_max_run": "max_run",
    "train_max_wait": "max_wait",
    "train_use_spot_instances": "use_spot_instances",
    "image_name": "image_uri",
    "distributions": "distribution",
}
#: Arguments of SageMaker SDK v1 that its v2 takes and ignores, and what to do instead.
IGNORED = {
    "script_mode": "script mode is the only mode",
    "requirements_file": "put a requirements.txt into source_dir",
    "training_steps": "give the script a hyperparameter",
    "evaluation_steps": "give the script a hyperparameter",
    "checkpoint_path": "give checkpoint_s3_uri, or the script a hyperparameter",
    "run_tensorboard_locally": "call latest_training_job.tensorboard()",
}
#: Arguments of SageMaker SDK v2 that cannot have an effect, and what to do instead.
GONE = {"compiler_config": "leave it out: AWS makes no images with the SageMaker Training Compiler any more"}
_MODEL = "sagemaker.tensorflow.TensorFlowModel(model_data=estimator.model_data, role=..., framework_version=...)"
#: Methods of the SageMaker SDK's estimators that are not here, and what to do instead; the guide lists the same.
MISSING_METHODS = {
    **dict.fromkeys(
        ("deploy", "create_model", "delete_endpoint", "transformer", "register"),
        f"serve the model with the SageMaker SDK: {_MODEL}",
    ),
    "compile_model": "give estimator.model_data to boto3's create_compilation_job",
    "prepare_workflow_for_training": INSTEAD_OF_PIPELINES,
    **dict.fromkeys(
        ("enable_default_profiling", "update_profiler"),
        "set profiler_config before fit; boto3's update_training_job changes a running job",
    ),
    "get_app_url": "call latest_training_job.tensorboard()",
}


def take_all(given: Mapping[str, Any], arguments: Mapping[str, Any], known: Sequence[str]) -> dict[str, object]:
    """Return ``arguments`` with the values given under v1 names; warn for each, and for those without an effect.

    Raises ``TypeError`` for a name that no version knows and for an argument given under both names.
    """
    merged = dict(arguments)
    if unknown := [name for name in given if name not in {*IGNORED, *GONE, *RENAMED}]:
        advice = did_you_mean(unknown[0], known, most=0) or "give the script's own as hyperparameters={...}"
        raise TypeError(str(Problem(f"the estimator has no argument {' and '.join(map(repr, unknown))}", advice)))
    for name, value in given.items():
        if name in IGNORED or (name in GONE and value is None):
            if value is not None:
                # What asks for nothing else than there is.
                category = DeprecationWarning if name == "script_mode" and value is True else UserWarning
                what = f"{name}={value!r} is an argument of SageMaker SDK v1 and has no effect"
                warn_caller(f"{what}: {IGNORED[name]}; leave it out", category)
            continue
        if name in GONE:
            raise TypeError(f"the estimator has no argument {name!r} any more; {GONE[name]}")
        new = RENAMED[name]
        current = arguments.get(new)
        # By identity: 0 equals False, and a comparison of an array is an array.
        if current is not None and current is not False:
            raise TypeError(f"the estimator got both {name!r} and {new!r}, which are the same; keep {new!r}")
        warn_caller(f"{name} is SageMaker SDK v1's name; use {new}", DeprecationWarning)
        merged[new] = value
    return merged
