"""Cases of what a job runs on and how long: instances, storage, limits, network, switches, tags."""

from __future__ import annotations

from sagemaker_sdk.matrix.case import LEFT_OUT, Case, Maker, every_kind, image, tensorflow

InstanceGroup = Maker("InstanceGroup")
WORKERS, SERVERS = InstanceGroup("workers", "ml.p3.2xlarge", 2), InstanceGroup("servers", "ml.c5.xlarge", 1)
NO_INSTANCES = {"instance_count": LEFT_OUT, "instance_type": LEFT_OUT}
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:credentials"
PLAN = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/plan"
ULTRA = {
    "EnableMultipleJobs": True,
    "PlacementSpecifications": [{"UltraServerId": "ultraserver-1", "InstanceCount": 2}],
}

#: Arguments that every estimator takes, each ending in fields of their own.
ARGUMENTS = {
    "nothing more": {},
    "an instance with disks of its own": {"instance_type": "ml.g5.xlarge"},
    "volume": {"volume_size": 500, "volume_kms_key": "volume-key"},
    "no volume": {"volume_size": 0},
    "output": {"output_path": "s3://other-bucket/a/b", "output_kms_key": "output-key"},
    "output path with a slash": {"output_path": "s3://bucket/output/"},
    "output not compressed": {"disable_output_compression": True},
    "spot with checkpoints": {
        "use_spot_instances": True,
        "max_wait": 24 * 60 * 60,
        "checkpoint_s3_uri": "s3://bucket/checkpoints",
        "checkpoint_local_path": "/opt/ml/checkpoints",
    },
    "checkpoints": {"checkpoint_s3_uri": "s3://bucket/checkpoints"},
    "no spot": {"use_spot_instances": 0, "max_run": 3600, "max_wait": None, "checkpoint_s3_uri": None},
    "retries within a time": {"max_retry_attempts": 2, "max_run": 600, "max_wait": 1200},
    "warm pool": {"keep_alive_period_in_seconds": 1800},
    "training plan": {"training_plan": PLAN},
    "placement": {"instance_placement_config": ULTRA},
    "VPC": {"subnets": ["subnet-1", "subnet-2"], "security_group_ids": ["sg-1"]},
    "network isolation": {"enable_network_isolation": True},
    "no network isolation": {"enable_network_isolation": False},
    "network isolation in Pipe mode": {"enable_network_isolation": True, "input_mode": "Pipe"},
    "encrypted traffic": {"encrypt_inter_container_traffic": True},
    "traffic not encrypted": {"encrypt_inter_container_traffic": False},
    "Pipe mode": {"input_mode": "Pipe"},
    "environment": {"environment": {"A": "1", "QUOTES": 'it\'s "so"', "EMPTY": ""}},
    "tags as a list": {"tags": [{"Key": "team", "Value": "a"}, {"Key": "cost", "Value": ""}]},
    "tags as a dict": {"tags": {"team": "a", "number": 7}},
    "metrics": {
        "metric_definitions": [{"Name": "loss", "Regex": "loss=([0-9.]+)"}, {"Name": "a:b", "Regex": r"\[a\] (.*)"}]
    },
    "metrics stored": {"enable_sagemaker_metrics": True},
    "entry point of the container": {
        "container_entry_point": ["/bin/sh", "-c"],
        "container_arguments": ["train", "--verbose"],
    },
    "private registry with credentials": {
        "training_repository_access_mode": "Vpc",
        "training_repository_credentials_provider_arn": LAMBDA,
    },
    "infra check": {"enable_infra_check": True},
    "remote debug": {"enable_remote_debug": True},
    "session tag chaining": {"enable_session_tag_chaining": True},
    "instance groups": {**NO_INSTANCES, "instance_groups": [WORKERS, SERVERS]},
    "role by its name": {"role": "by-name"},
    "model": {"model_uri": "s3://bucket/model.tar.gz"},
    "model in a channel of another name": {"model_uri": "s3://bucket/model/", "model_channel_name": "pretrained"},
    "output path left out": {"output_path": LEFT_OUT},
}

#: SageMaker SDK v1's names of arguments.
OLD_NAMES = {
    "train_instance_count": 2, "train_instance_type": "ml.m5.large", "train_volume_size": 40,
    "train_volume_kms_key": "key", "train_max_run": 60, "train_max_wait": 120, "train_use_spot_instances": True,
}  # fmt: skip

#: Arguments that do not exclude each other.
TOGETHER = (
    "spot with checkpoints", "volume", "output", "VPC", "network isolation", "tags as a dict", "metrics", "environment",
    "model",
)  # fmt: skip
EVERYTHING = {key: value for name in TOGETHER for key, value in ARGUMENTS[name].items()} | {"max_retry_attempts": 5}


def cases() -> list[Case]:
    experiment = {"ExperimentName": "e", "TrialName": "t", "TrialComponentDisplayName": "c", "RunName": "r"}
    return [
        *(case for name, arguments in ARGUMENTS.items() for case in every_kind(name, arguments)),
        *every_kind("everything at once", EVERYTHING, inputs={"train": "s3://bucket/train", "eval": "s3://b/e"}),
        *every_kind("v1's names", {**NO_INSTANCES, **OLD_NAMES}),
        tensorflow("v1's name of the image", {
            "image_uri": LEFT_OUT, "image_name": "team/trainer:1", "framework_version": "2.14.1", "py_version": "py310"}),
        *every_kind("experiment", {}, fit={"job_name": "job-2", "experiment_config": experiment}),
        *every_kind("base of the job's name", {"base_job_name": "mnist"}, fit={}),
        image("the job's name left out", {}, fit={}),
        tensorflow("v1's name of the distribution", {"distributions": {"parameter_server": {"enabled": True}}}),
    ]  # fmt: skip
