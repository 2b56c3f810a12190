"""Calls that v2 sends, to be ignored, misread or refused by the service, and that scriptmode refuses: with what words."""

from __future__ import annotations

from sagemaker_sdk.matrix.case import LEFT_OUT, Case, Maker, script, tensorflow
from sagemaker_sdk.matrix.inputs import FileSystemInput, TrainingInput

PROVIDER = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
GPU = {"image_uri": LEFT_OUT, "framework_version": "2.11", "py_version": "py39", "instance_type": "ml.p3.16xlarge"}
COMPILER = Maker("TrainingCompilerConfig")()

ARGUMENTS = {
    "spot without max_wait": ({"use_spot_instances": True}, "use_spot_instances needs max_wait"),
    "max_wait without spot": ({"max_wait": 90_000}, "max_wait is for spot training"),
    "spot kept warm": (
        {"use_spot_instances": True, "max_wait": 90_000, "keep_alive_period_in_seconds": 60}, "spot instances",
    ),
    "checkpoints with no place": ({"checkpoint_local_path": "/opt/ml/checkpoints"}, "needs checkpoint_s3_uri"),
    "registry's credentials with no mode": (
        {"training_repository_credentials_provider_arn": PROVIDER}, "training_repository_access_mode",
    ),
    "argument misspelt": ({"instance_cout": 2}, "did you mean 'instance_count'"),
    "reserved hyperparameter": ({"hyperparameters": {"sagemaker_program": "x.py"}}, "reserved 'sagemaker_'"),
    "long hyperparameter": ({"hyperparameters": {"text": "x" * 2600}}, "the service accepts 2500"),
    "many hyperparameters": ({"hyperparameters": {f"h{n}": n for n in range(101)}}, "the service accepts 100"),
    "hyperparameter that is no number": ({"hyperparameters": {"rate": float("nan")}}, "'rate' is nan"),
}  # fmt: skip
DISTRIBUTIONS = {
    "distribution misspelt": ({"parameter_servers": {"enabled": True}}, "did you mean 'parameter_server'"),
    "two distributions": ({"mpi": {"enabled": True}, "parameter_server": {"enabled": True}}, "a job has one"),
    "processes in words": ({"mpi": {"enabled": True, "processes_per_host": "4"}}, "processes_per_host is '4'"),
    "AWS's own library": (
        {"smdistributed": {"dataparallel": {"enabled": True}}},
        "distribution['smdistributed'] needs AWS's own library",
    ),
    "AWS's own library over MPI": (
        {"smdistributed": {"modelparallel": {"enabled": True, "parameters": {}}}, "mpi": {"enabled": True}},
        "with Horovod: AWS's newest image with this library has TensorFlow 2.11",
    ),
}
INPUTS = {
    "compressed in File mode": (TrainingInput("s3://b/x", compression="Gzip"), "is for Pipe mode"),
    "lines with no attributes": (
        TrainingInput("s3://b/x", s3_data_type="AugmentedManifestFile", input_mode="Pipe"), "needs attribute_names",
    ),
    "mode misspelt": (TrainingInput("s3://b/x", input_mode="Fastfile"), "did you mean 'FastFile'"),
    "file system with no VPC": (FileSystemInput("fs-0123456789", "EFS", "/data"), "through a VPC"),
}  # fmt: skip


def cases() -> list[tuple[Case, str]]:
    return [
        *((script(name, given), words) for name, (given, words) in ARGUMENTS.items()),
        *((tensorflow(name, {**GPU, "distribution": given}), words) for name, (given, words) in DISTRIBUTIONS.items()),
        *((script(name, {}, inputs={"train": given}), words) for name, (given, words) in INPUTS.items()),
        (tensorflow("AWS's compiler", {**GPU, "compiler_config": COMPILER}), "compiler_config"),
    ]
