"""Every request we render is one that the service's own model takes."""

import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator
from fakes.platforms import RecordingPlatform

from scriptmode import (
    MPI,
    Estimator,
    FileSystemInput,
    InstanceGroup,
    MultiWorkerMirrored,
    ParameterServer,
    ShuffleConfig,
    TensorFlow,
    TrainingInput,
)

ROLE = "arn:aws:iam::123456789012:role/training"
GROUPS = [InstanceGroup("workers", "ml.m5.large", 2), InstanceGroup("servers", "ml.c5.large", 1)]


@pytest.fixture(scope="session")
def shape():
    model = ServiceModel(Loader().load_service_model("sagemaker", "service-2"), "sagemaker")
    return model.operation_model("CreateTrainingJob").input_shape


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "train.py"
    path.write_text("")
    return str(path)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({}, id="nothing but the script"),
        pytest.param({"distribution": MPI(4, "-x A=b")}, id="mpi"),
        pytest.param({"distribution": ParameterServer()}, id="parameter server"),
        pytest.param({"distribution": MultiWorkerMirrored()}, id="mirrored"),
        pytest.param({"use_spot_instances": True, "max_run": 10, "max_wait": 20, "max_retry_attempts": 3}, id="spot"),
        pytest.param(
            {"checkpoint_s3_uri": "s3://b/c", "checkpoint_local_path": "/opt/ml/checkpoints"}, id="checkpoints"
        ),
        pytest.param(
            {
                "subnets": ["subnet-1"],
                "security_group_ids": ["sg-1"],
                "enable_network_isolation": True,
                "encrypt_inter_container_traffic": True,
            },
            id="network",
        ),
        pytest.param({"instance_type": None, "instance_count": None, "instance_groups": GROUPS}, id="groups"),
        pytest.param({"output_kms_key": "k", "volume_kms_key": "v", "disable_output_compression": True}, id="output"),
        pytest.param({"tags": {"team": "a"}, "environment": {"A": "b"}}, id="tags and environment"),
        pytest.param({"metric_definitions": [{"Name": "loss", "Regex": "loss=(.*)"}]}, id="metrics"),
        pytest.param({"container_entry_point": ["train"], "container_arguments": ["--plan"]}, id="entry point"),
        pytest.param(
            {
                "keep_alive_period_in_seconds": 60,
                "enable_infra_check": True,
                "enable_remote_debug": True,
                "enable_session_tag_chaining": False,
                "enable_sagemaker_metrics": True,
                "instance_placement_config": {"EnableMultipleJobs": True},
            },
            id="switches",
        ),
        pytest.param(
            {
                "training_repository_access_mode": "Vpc",
                "training_repository_credentials_provider_arn": "arn:aws:lambda:us-east-1:123456789012:function:f",
            },
            id="private registry",
        ),
    ],
)
@pytest.mark.parametrize("make", [Estimator, TensorFlow])
def test_arguments_become_what_the_service_takes(make, arguments, script, shape):
    defaults = {"entry_point": script, "role": ROLE, "instance_type": "ml.m5.large", "instance_count": 1}
    made = make("img", platform=RecordingPlatform(), **{**defaults, **arguments})
    report = ParamValidator().validate(made.request("s3://b/x"), shape)
    assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize(
    "given",
    [
        TrainingInput("s3://b/x", distribution="ShardedByS3Key", shuffle_config=ShuffleConfig(7)),
        TrainingInput("s3://b/m", s3_data_type="AugmentedManifestFile", attribute_names=["source-ref", "label"],
                      input_mode="Pipe", record_wrapping="RecordIO", compression="Gzip", content_type="image/png"),
        FileSystemInput("fs-0123456789", "EFS", "/data", content_type="text/csv"),
    ],
    ids=["sharded", "manifest", "file system"],
)  # fmt: skip
def test_inputs_become_what_the_service_takes(given, script, shape):
    made = Estimator(
        "img", ROLE, 1, "ml.m5.large", entry_point=script, platform=RecordingPlatform(),
        subnets=["subnet-1"], security_group_ids=["sg-1"],
    )  # fmt: skip
    report = ParamValidator().validate(made.request({"train": given}), shape)
    assert not report.has_errors(), report.generate_report()
