"""Every member, enumeration and pattern of CreateTrainingJob: given by an argument, or left out for a reason."""

import copy

import boto3
import pytest

from scriptmode import (
    Estimator,
    FileSystemInput,
    InstanceGroup,
    RequestError,
    ShuffleConfig,
    SpecError,
    TrainingInput,
    TrainingJob,
)
from scriptmode._core.platforms.sagemaker import SageMakerPlatform
from scriptmode.testing import FakeSageMaker

ROLE = "arn:aws:iam::123456789012:role/training"
SESSION = boto3.session.Session("key", "secret", region_name="eu-west-1")
PLATFORM = SageMakerPlatform(SESSION)
MODEL = SESSION.client("sagemaker").meta.service_model.operation_model("CreateTrainingJob").input_shape

ANSWERED = "the service's answer to InstancePreferences"
LEFT_OUT = {"ResourceConfig.SelectedInstanceType": ANSWERED, "ResourceConfig.SelectedInstanceCount": ANSWERED}
#: What an attached estimator does not have, and why.
NOT_COPIED = {
    "ExperimentConfig": "an argument of fit, as the inputs are",
    "SessionChainingConfig": "the service does not describe it",
}

RULE = {
    "RuleConfigurationName": "loss", "LocalPath": "/opt/ml/rules", "S3OutputPath": "s3://out/rules",
    "RuleEvaluatorImage": "rules:1", "InstanceType": "ml.t3.medium", "VolumeSizeInGB": 10,
    "RuleParameters": {"rule_to_invoke": "LossNotDecreasing"},
}  # fmt: skip
ONE = {"instance_type": "ml.m5.large", "instance_count": 2}
LARGE = {
    **ONE, "role": ROLE, "output_path": "s3://out/jobs", "output_kms_key": "key-1",
    "disable_output_compression": True, "hyperparameters": {"epochs": 3}, "environment": {"A": "b"},
    "tags": {"team": "vision"}, "volume_size": 50, "volume_kms_key": "key-2", "keep_alive_period_in_seconds": 60,
    "training_plan": "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/plan",
    "instance_placement_config": {
        "EnableMultipleJobs": True,
        "PlacementSpecifications": [{"UltraServerId": "ultra-1", "InstanceCount": 2}],
    },
    "metric_definitions": [{"Name": "loss", "Regex": "loss=(.*)"}], "enable_sagemaker_metrics": True,
    "container_entry_point": ["train"], "container_arguments": ["--plan"], "training_repository_access_mode": "Vpc",
    "training_repository_credentials_provider_arn": "arn:aws:lambda:eu-west-1:123456789012:function:login",
    "subnets": ["subnet-1"], "security_group_ids": ["sg-1"], "enable_network_isolation": True,
    "encrypt_inter_container_traffic": True, "checkpoint_s3_uri": "s3://out/checkpoints",
    "checkpoint_local_path": "/opt/ml/checkpoints", "max_run": 100, "max_retry_attempts": 3,
    "enable_infra_check": True, "enable_remote_debug": True, "enable_session_tag_chaining": True,
    "debugger_hook_config": {
        "LocalPath": "/opt/ml/tensors",
        "S3OutputPath": "s3://out/tensors",
        "HookParameters": {"save_interval": "10"},
        "CollectionConfigurations": [{"CollectionName": "losses", "CollectionParameters": {"a": "b"}}],
    },
    "rules": [RULE],
    "tensorboard_output_config": {"S3OutputPath": "s3://out/tb", "LocalPath": "/opt/ml/tb"},
    "profiler_config": {
        "S3OutputPath": "s3://out/profile", "ProfilingIntervalInMilliseconds": 500,
        "ProfilingParameters": {"a": "b"}, "DisableProfiler": False,
    },
    "additional_request_fields": {
        "ProfilerRuleConfigurations": [RULE],
        "StoppingCondition": {"MaxPendingTimeInSeconds": 7200},
        "MlflowConfig": {
            "MlflowResourceArn": "arn:aws:sagemaker:eu-west-1:123456789012:mlflow-app/app-1",
            "MlflowExperimentName": "digits",
            "MlflowRunName": "first",
        },
        "ModelPackageConfig": {
            "ModelPackageGroupArn": "arn:aws:sagemaker:eu-west-1:123456789012:model-package-group/digits",
            "SourceModelPackageArn": "arn:aws:sagemaker:eu-west-1:123456789012:model-package/digits/1",
        },
    },
}  # fmt: skip
EXPERIMENT = {"ExperimentName": "e", "TrialName": "t", "TrialComponentDisplayName": "c", "RunName": "r"}
CHANNELS = {
    "images": TrainingInput(
        "s3://in/images", distribution="ShardedByS3Key", content_type="image/png", input_mode="Pipe",
        compression="Gzip", record_wrapping="RecordIO", shuffle_config=ShuffleConfig(7),
        hub_access_config={"HubContentArn": "arn:aws:sagemaker:eu-west-1:aws:hub-content/h/Model/m/1"},
        model_access_config={"AcceptEula": True},
    ),
    "lines": TrainingInput(
        "s3://in/lines", s3_data_type="AugmentedManifestFile", attribute_names=["source-ref"], input_mode="Pipe"
    ),
    "files": FileSystemInput("fs-0123456789", "EFS", "/data"),
}  # fmt: skip


def large():
    return Estimator("img:1", platform=PLATFORM, **LARGE).request(CHANNELS, experiment_config=EXPERIMENT)


def grouped():
    groups = [InstanceGroup("workers", "ml.m5.large", 2)]
    data = TrainingInput("s3://in/x", instance_groups=["workers"])
    return Estimator("img:1", ROLE, instance_groups=groups, platform=PLATFORM).request(data)


def spot():
    return Estimator(
        "img:1", ROLE, use_spot_instances=True, max_run=10, max_wait=20, platform=PLATFORM, **ONE
    ).request()


def marketplace():
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:algorithm/a"
    fields = {"AlgorithmSpecification": {"AlgorithmName": arn}}
    return Estimator(role=ROLE, additional_request_fields=fields, platform=PLATFORM, **ONE).request()


def preferences():
    plans = ["arn:aws:sagemaker:eu-west-1:123456789012:training-plan/plan"]
    types = [{"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2, "TrainingPlanArns": plans}]
    types.append({"InstanceType": "ml.p4d.24xlarge"})
    fields = {"ResourceConfig": {"InstanceType": None, "InstanceCount": None, "InstancePreferences": types}}
    made = Estimator("img:1", ROLE, 2, "ml.p5.48xlarge", additional_request_fields=fields, platform=PLATFORM)
    return made.request("s3://in/x")


def serverless():
    """Fine-tuning of AWS's own models: no script, no image and no hosts."""
    hub = "arn:aws:sagemaker:eu-west-1:aws:hub-content/SageMakerPublicHub"
    source = {"DatasetSource": {"DatasetArn": f"{hub}/DataSet/d/1.0.0"}}
    fields = {
        "ServerlessJobConfig": {
            "BaseModelArn": f"{hub}/Model/m/1.0.0", "AcceptEula": True, "JobType": "FineTuning",
            "CustomizationTechnique": "SFT", "Peft": "LORA", "EvaluationType": "BenchmarkEvaluation",
            "EvaluatorArn": f"{hub}/JsonDoc/e/1.0.0", "SequenceLength": "4K",
        },
        "InputDataConfig": [{"ChannelName": "train", "DataSource": source}],
        **dict.fromkeys(("AlgorithmSpecification", "ResourceConfig", "StoppingCondition")),
    }  # fmt: skip
    return Estimator("none", ROLE, additional_request_fields=fields, platform=PLATFORM, **ONE).request()


NAMES = ["large", "groups", "spot", "marketplace", "preferences", "serverless"]
REQUESTS = [make() for make in (large, grouped, spot, marketplace, preferences, serverless)]


def members(shape, path=""):
    """Every member of a structure by its path, lists passed through."""
    while shape.type_name == "list":
        shape = shape.member
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            inner = f"{path}.{name}".lstrip(".")
            yield inner, member
            yield from members(member, inner)


def given(value, path=""):
    if isinstance(value, list):
        for each in value:
            yield from given(each, path)
    elif isinstance(value, dict):
        for name, each in value.items():
            inner = f"{path}.{name}".lstrip(".")
            yield inner
            yield from given(each, inner)


FIELDS = dict(members(MODEL))
GIVEN = {path for request in REQUESTS for path in given(request)}


def is_left_out(path):
    return any(path == left or path.startswith(f"{left}.") for left in LEFT_OUT)


def test_a_field_is_given_by_an_argument_or_left_out_for_a_reason():
    assert [path for path in FIELDS if (path in GIVEN) == is_left_out(path)] == []
    assert set(LEFT_OUT) <= set(FIELDS)


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_what_the_arguments_give_is_what_the_service_takes(request_):
    PLATFORM.validate(request_)


@pytest.mark.parametrize("request_", REQUESTS[:-1], ids=NAMES[:-1])
def test_a_field_survives_attach_and_fit_or_is_named_as_not_copied(request_):
    account = FakeSageMaker("eu-west-1")
    account.client("sagemaker").create_training_job(**request_)
    account.clock.sleep(10_000)
    attached = Estimator.attach(request_["TrainingJobName"], account)
    again = attached.fit(attached.latest_training_job.inputs(), wait=False)
    (found,) = [call.arguments for call in account.calls if call.operation == "create_training_job"][1:]
    lost = {path for path in set(given(request_)) - set(given(found)) if path.partition(".")[0] not in NOT_COPIED}
    assert not lost
    renewed = {"TrainingJobName", "HyperParameters", "Environment", "Tags", *NOT_COPIED}
    assert {key: each for key, each in found.items() if key not in renewed} == {
        key: each for key, each in request_.items() if key not in renewed
    }
    assert again.name != request_["TrainingJobName"]


def test_an_attached_job_without_hosts_is_not_copied_in_part():
    account = FakeSageMaker("eu-west-1")
    account.client("sagemaker").create_training_job(**REQUESTS[-1])
    attached = Estimator.attach(REQUESTS[-1]["TrainingJobName"], account)
    with pytest.raises(SpecError, match="instance_type is missing.*attached job's value"):
        attached.request()
    with pytest.raises(SpecError, match="channel 'train' has the data source DatasetSource"):
        attached.latest_training_job.inputs()


def test_what_the_service_selected_is_not_sent_again():
    account = FakeSageMaker("eu-west-1")
    selected = {"SelectedInstanceType": "ml.p5.48xlarge", "SelectedInstanceCount": 2}
    account.client("sagemaker").create_training_job(**REQUESTS[-2])
    name = REQUESTS[-2]["TrainingJobName"]
    account.jobs[name].request["ResourceConfig"].update(selected)
    job = TrainingJob.attach(name, account)
    assert job.rerun(job_name="again").describe()["ResourceConfig"] == REQUESTS[-2]["ResourceConfig"]


def test_an_argument_whose_field_is_taken_out_is_not_set_without_effect():
    account = FakeSageMaker("eu-west-1")
    account.client("sagemaker").create_training_job(**REQUESTS[-2])
    attached = Estimator.attach(REQUESTS[-2]["TrainingJobName"], account)
    with pytest.raises(SpecError, match="instance_type sets ResourceConfig.InstanceType, which additional_request_fi"):
        attached.instance_type = "ml.m5.large"
    attached.volume_size = 50
    attached.additional_request_fields = None
    attached.instance_type = "ml.m5.large"
    assert attached.request()["ResourceConfig"] == {
        "InstanceCount": 2, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 50,
    }  # fmt: skip


def mutated(path, change):
    """A request in which the field at ``path`` has another value, wherever it stands."""
    request = copy.deepcopy(next(each for each in REQUESTS if path in set(given(each))))
    *parents, last = path.split(".")
    found = [request]
    for key in parents:
        inner = [each[key] for each in found if key in each]
        found = [part for each in inner for part in (each if isinstance(each, list) else [each])]
    for each in found:
        if last in each:
            each[last] = [change for _ in each[last]] if isinstance(each[last], list) else change
    return request


def innermost(shape):
    return innermost(shape.member) if shape.type_name == "list" else shape


SENT = {path: innermost(shape) for path, shape in FIELDS.items() if not is_left_out(path)}
# The service knows instance types that the installed boto3 does not; no other list of words is open.
ENUMERATED = [path for path, each in SENT.items() if getattr(each, "enum", None) and not path.endswith("InstanceType")]
PATTERNS = [(path, "\n") for path, each in SENT.items() if each.metadata.get("pattern") not in (None, ".*")]
LONGEST = [
    (path, "x" * (each.metadata["max"] + 1))
    for path, each in SENT.items()
    if each.type_name == "string" and each.metadata.get("max")
]


def test_every_word_of_an_enumeration_is_taken():
    for path in ENUMERATED:
        for word in SENT[path].enum:
            PLATFORM.validate(mutated(path, word))


def test_another_word_one_that_breaks_a_pattern_and_one_that_is_too_long_is_refused_by_name():
    for path, value in (*((path, "Sideways") for path in ENUMERATED), *PATTERNS, *LONGEST):
        with pytest.raises(RequestError, match=path.rpartition(".")[2]):
            PLATFORM.validate(mutated(path, value))


def test_an_instance_type_that_only_the_service_knows_yet_is_left_to_it():
    made = Estimator("img", ROLE, 1, "ml.next9.huge", platform=PLATFORM, output_path="s3://out")
    PLATFORM.validate(made.request())
    PLATFORM.validate(mutated("ResourceConfig.InstancePreferences.InstanceType", "ml.next9.huge"))
