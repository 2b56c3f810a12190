"""What Amazon SageMaker refuses is refused, in its words: by the service's model and by its documentation."""

import json
import re
import time
from pathlib import Path

import pytest
from botocore.exceptions import ClientError
from fakes.local_jobs import ABSENT, channel, put, request_for
from hypothesis import given, strategies as st
from serve.conftest import TENSORFLOW
from tests.house.offenders import expect_none
from tests.serve import model_constraints
from tests.serve.model_constraints import OPERATIONS, SCALARS, SHAPES, call, cases, places, problem, root_of, valid

from scriptmode._core.request.service_model import compiled
from scriptmode_local import LocalPlatform
from scriptmode_serve._operations.aws_json import ApiError
from scriptmode_serve._operations.request_errors import validate

REQUEST = "CreateTrainingJobRequest"
GUIDE = Path(__file__).parents[2] / "sdk" / "docs" / "guides" / "serve.md"
ARN = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"
S3, CHECKPOINTS = "InputDataConfig.0.DataSource.S3DataSource", "CheckpointConfig.LocalPath"
GROUP = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}
NO_HOSTS = {"ResourceConfig.InstanceType": None, "ResourceConfig.InstanceCount": None}
#: Members that hosts which are processes do not have, and what the error says.
NOT_SERVED = {
    "AlgorithmSpecification.AlgorithmName": "AlgorithmName is not supported by scriptmode serve",
    "AlgorithmSpecification.TrainingImageConfig": "TrainingImageConfig is not supported by scriptmode serve",
    f"{S3}.HubAccessConfig": "HubAccessConfig is not supported by scriptmode serve",
    "InputDataConfig.0.DataSource.DatasetSource": "give either S3DataSource or FileSystemDataSource",
    "EnableNetworkIsolation": "hosts that are processes cannot be isolated",
    "ResourceConfig.InstancePreferences": "ResourceConfig must have either InstanceType and InstanceCount, or Inst",
    "ResourceConfig.Selected": "is read-only and cannot be specified",
    "ServerlessJobConfig": "ServerlessJobConfig is not supported by scriptmode serve",
    "TensorBoardOutputConfig": "serve cannot run this job: TensorBoardOutputConfig is not supported by scriptmode serve",
}
#: What else a request needs that has a member, by the beginning of the member's path.
WITH = {
    "AlgorithmSpecification.AlgorithmName": {"AlgorithmSpecification.TrainingImage": None},
    f"{S3}.AttributeNames": {f"{S3}.S3DataType": "AugmentedManifestFile", "InputDataConfig.0.InputMode": "Pipe"},
    f"{S3}.InstanceGroupNames": {"ResourceConfig.InstanceGroups": [GROUP], **NO_HOSTS},
    "InputDataConfig.0.DataSource.FileSystemDataSource": {S3: None},
    "InputDataConfig.0.DataSource.DatasetSource": {S3: None},
    "ResourceConfig.InstanceGroups": NO_HOSTS,
    "ResourceConfig.InstancePreferences": NO_HOSTS,
    "StoppingCondition.MaxWaitTimeInSeconds": {
        "EnableManagedSpotTraining": True,
        "StoppingCondition.MaxRuntimeInSeconds": 1,
    },
    "EnableManagedSpotTraining": {"StoppingCondition.MaxWaitTimeInSeconds": 60},
    CHECKPOINTS: {CHECKPOINTS: "/opt/ml/checkpoints/mine"},
}


@pytest.mark.slow
def test_the_guide_and_the_constraints_have_the_operations_that_are_served(api):
    with pytest.raises(ClientError, match="UnknownOperationException") as refused:
        api.sagemaker.list_models()
    served = refused.value.response["Error"]["Message"].rstrip(".").partition("it has ")[2].split(", ")
    table = GUIDE.read_text().partition("| SageMaker |")[2].partition("| CloudWatch Logs |")[0]
    assert set(served) == set(OPERATIONS) == set(re.findall(r"`([A-Z]\w+)`", table))


class Platform(LocalPlatform):
    """Validates jobs, and starts none."""

    def create(self, request, *, failure=""):
        assert not failure
        self.validate(request)
        return ARN


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    return model_constraints.application(Platform(data_dir=tmp_path_factory.mktemp("model")))


def base_request(**changes):
    """A valid request with a channel; ``changes`` are by path, with None to leave a member out."""
    request = request_for("job", output="s3://bucket/out", max_run=60, channels=[channel("a", "s3://bucket/in")])
    request["AlgorithmSpecification"]["TrainingImage"] = TENSORFLOW
    request["ResourceConfig"]["InstanceType"] = "ml.m5.xlarge"
    return with_changes(request, changes)


def with_changes(request, changes):
    for path, value in changes.items():
        put(request, path, ABSENT if value is None else value)
    return request


def answer(app, request, operation="CreateTrainingJob"):
    """Return the error of a request, "" if there is none."""
    status, content = call(app, operation, request)
    return "" if status.startswith("200") else f"{content['__type']}: {content['Message']}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_that_breaks_a_constraint_of_the_model_is_refused_with_its_member(app, operation):
    found = [case for case in cases(root_of(operation)) if case.request is not None]
    assert len(found) >= 6
    expect_none(filter(None, (problem(app, operation, case) for case in found)), "refuse it as AWS does")


def test_the_guide_has_the_figures():
    found = [case for operation in OPERATIONS for case in cases(root_of(operation))]
    breakable = sum(case.request is not None for case in found)
    numbers = re.search(
        r"model has ([\d,]+) constraints.*can break ([\d,]+) of them", GUIDE.read_text().replace("\n", " ")
    ).groups()
    # A newer botocore has some more.
    assert [int(each.replace(",", "")) for each in numbers] == pytest.approx([len(found), breakable], rel=0.1)


def with_member(base, name, path):
    """Return a value of a shape with the member at a path, and what the structures around the member require."""
    shape = SHAPES[name]
    if not path:
        return valid(name) if base is None else base
    if shape["type"] == "list":
        return [with_member(base[0] if base else None, shape["member"]["shape"], path[1:])]
    if shape["type"] == "map":
        return {**(base or {}), path[0]: valid(shape["value"]["shape"])}
    base = base or {key: valid(shape["members"][key]["shape"]) for key in shape.get("required", ())}
    return {**base, path[0]: with_member(base.get(path[0]), shape["members"][path[0]]["shape"], path[1:])}


def test_a_request_with_an_optional_member_is_accepted_or_refused_with_the_reason(app):
    offenders = []
    for path, _, shape in places(REQUEST):
        if shape["type"] not in SCALARS or any(isinstance(part, tuple) for part in path):
            continue
        dotted = ".".join(map(str, path))
        request = with_member(base_request(), REQUEST, path)
        for beginning, changes in WITH.items():
            if dotted.startswith(beginning):
                request = with_changes(request, changes)
        expected = next((words for beginning, words in NOT_SERVED.items() if dotted.startswith(beginning)), "")
        error = answer(app, request)
        if bool(error) != bool(expected) or expected not in error:
            offenders.append(f"{dotted}: {error}")
    expect_none(offenders, "accept it, or say why not")


def tuning_request(**changes):
    """A valid request of a tuning job; ``changes`` are those of `base_request`, to its definition."""
    definition = base_request(**changes)
    static = {name: value for name, value in definition.pop("HyperParameters", {}).items() if name != "rate"}
    metrics = [{"Name": "loss", "Regex": "loss=([0-9.]+)"}]
    definition.setdefault("AlgorithmSpecification", {}).setdefault("MetricDefinitions", metrics)
    del definition["TrainingJobName"]
    config = {
        "Strategy": "Grid",
        "ResourceLimits": {"MaxParallelTrainingJobs": 1},
        "HyperParameterTuningJobObjective": {"Type": "Minimize", "MetricName": "loss"},
        "ParameterRanges": {"CategoricalParameterRanges": [{"Name": "rate", "Values": ["0.5"]}]},
    }
    return {
        "HyperParameterTuningJobName": "tuning",
        "HyperParameterTuningJobConfig": config,
        "TrainingJobDefinition": {**definition, "StaticHyperParameters": static},
    }


#: What the documentation excludes: changes of a request, and the member of a definition that the error names.
EXCLUDED = (
    ({"EnableManagedSpotTraining": True}, "stoppingCondition.maxWaitTimeInSeconds"),
    ({"StoppingCondition.MaxWaitTimeInSeconds": 60}, "stoppingCondition.maxWaitTimeInSeconds"),
    ({"StoppingCondition.MaxRuntimeInSeconds": 28 * 86_400 + 1}, "stoppingCondition.maxRuntimeInSeconds"),
    ({CHECKPOINTS: "/opt/ml/input/x", "CheckpointConfig.S3Uri": "s3://b/c"}, "checkpointConfig.localPath"),
    ({"AlgorithmSpecification.TrainingImage": None}, "algorithmSpecification"),
    ({"AlgorithmSpecification.AlgorithmName": "x"}, "algorithmSpecification"),
    ({"ResourceConfig.InstanceGroups": [GROUP]}, "resourceConfig.instanceGroups"),
    ({"ResourceConfig.SelectedInstanceCount": 1}, "resourceConfig.selectedInstanceCount"),
)


@pytest.mark.parametrize(("changes", "member"), EXCLUDED)
def test_a_definition_of_training_jobs_is_refused_as_a_training_job_is(app, changes, member):
    expected = answer(app, base_request(**changes))
    assert expected.startswith("ValidationException: ")
    error = answer(app, tuning_request(**changes), "CreateHyperParameterTuningJob")
    assert error == f"{expected} (at 'trainingJobDefinition.{member}')"


CONFIG, RESOURCES = "HyperParameterTuningJobConfig", "HyperParameterTuningResourceConfig"
HOSTS = {"InstanceType": "ml.m5.xlarge", "InstanceCount": 1, "VolumeSizeInGB": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ResourceConfig": None}, "TrainingJobDefinition: .*: ResourceConfig must have either InstanceType and Inst"),
        ({"ResourceConfig.InstanceCount": 0}, "TrainingJobDefinition: .*: ResourceConfig.InstanceCount is 0; give"),
        (
            {"ResourceConfig": None, RESOURCES: {"InstanceConfigs": [HOSTS]}},
            "InstanceConfigs is given, but tuning jobs on this machine do not have it",
        ),
        ({"InputDataConfig": [channel("a", "s3://b/1")] * 2}, "TrainingJobDefinition: .* name 'a' occurs 2 times"),
    ],
)
def test_a_definition_that_cannot_run_is_named(app, changes, message):
    assert re.search(message, answer(app, tuning_request(**changes), "CreateHyperParameterTuningJob"), re.DOTALL)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"EnableManagedSpotTraining": True}, "Invalid MaxWaitTimeInSeconds. It must be present and be greater than"),
        (
            {"EnableManagedSpotTraining": True, "StoppingCondition.MaxWaitTimeInSeconds": 59},
            "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to MaxRuntimeInSeconds",
        ),
        (
            {"StoppingCondition.MaxWaitTimeInSeconds": 60},
            "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set to true",
        ),
        ({"StoppingCondition.MaxRuntimeInSeconds": 28 * 86_400 + 1}, "Invalid MaxRuntimeInSeconds"),
        ({"Tags": [{"Key": "AWS:x", "Value": ""}]}, "The tag key 'AWS:x' is reserved: keys cannot begin with 'aws:'."),
        ({"Tags": [{"Key": "x", "Value": "1"}, {"Key": "x", "Value": "2"}]}, "Duplicate tag key"),
        ({CHECKPOINTS: "/opt/ml/input/data/x", "CheckpointConfig.S3Uri": "s3://b/c"}, "reserved path: [/opt/ml/input]"),
        ({CHECKPOINTS: "/opt/ml/model/../input", "CheckpointConfig.S3Uri": "s3://b/c"}, "path: [/opt/ml/input]"),
        ({"AlgorithmSpecification.TrainingImage": None}, "either TrainingImage or AlgorithmName, and it has neither"),
        ({"AlgorithmSpecification.AlgorithmName": "x"}, "either TrainingImage or AlgorithmName, and it has both"),
        ({"InputDataConfig": [channel("a", "s3://b/1"), channel("a", "s3://b/2")]}, "channel name 'a' occurs 2 times"),
        (
            {"VpcConfig": {"Subnets": ["!", "?"], "SecurityGroupIds": ["sg-1"]}},
            "1 validation error detected: Value '!' at 'vpcConfig.subnets' failed to satisfy constraint: Member must",
        ),
        ({"ResourceConfig.InstanceGroups": [GROUP]}, "InstanceType or InstanceCount cannot be specified with Instan"),
        (
            {
                "ResourceConfig": {"InstanceGroups": [GROUP], "VolumeSizeInGB": 1},
                "InputDataConfig": [channel("a", "s3://b/1"), channel("b", "s3://b/2")],
                f"{S3}.InstanceGroupNames": ["a"],
            },
            "Some channels have assigned instance groups: [a] while others not: [b]",
        ),
        ({"ResourceConfig.InstanceCount": 0}, "InstanceCount is 0; give at least 1"),
        ({"TrainingJobNames": "x"}, "'trainingJobNames' is not a member of the request; did you mean 'TrainingJobNa"),
        ({"": 1}, "1 validation error detected: Value at '' is not a member of the request"),
        ({"TrainingJobName": None, "RoleArn": None}, "2 validation errors detected: Value null at 'trainingJobName'"),
    ],
)
def test_what_the_service_refuses_is_refused_in_its_words(app, changes, message):
    error = answer(app, base_request(**changes))
    assert error.startswith("ValidationException: ")
    assert message in error


@pytest.mark.parametrize("field", ["StaticHyperParameters", "Environment"])
def test_an_error_has_no_value_that_may_be_secret_in_a_list_around_it(field):
    definitions = [{"DefinitionName": "a", field: {"password": "hunter2"}}] * 11
    with pytest.raises(ApiError, match=f"Value .*{field}=.* less than or equal to 10") as raised:
        validate("CreateHyperParameterTuningJobRequest", {"TrainingJobDefinitions": definitions})
    assert "hunter2" not in str(raised.value)


def test_texts_that_are_too_long_are_refused_at_once(app):
    uri = "s3://{}/b\nc"
    channels = [channel(f"a{number}", uri.format("a" * 4000)) for number in range(200)]
    began = time.process_time()
    changes = {"OutputDataConfig.S3OutputPath": uri.format("a" * 80_000), "InputDataConfig": channels}
    error = answer(app, base_request(**changes))
    assert time.process_time() - began < 5
    assert "at 'outputDataConfig.s3OutputPath' failed to satisfy constraint: Member must have length less than" in error
    assert "at 'inputDataConfig.1.member.dataSource.s3DataSource.s3Uri' failed to satisfy constraint: Member" in error


@given(st.text("a/\n", max_size=8))
def test_the_pattern_of_uris_is_matched_as_it_is_written(text):
    pattern = SHAPES["S3Uri"]["pattern"]
    found, expected = (each.fullmatch(f"s3://{text}") for each in (compiled(pattern), re.compile(pattern)))
    assert bool(found) == bool(expected)


def test_a_text_that_no_encoding_has_is_refused(app):
    assert answer(app, base_request(Environment={"a": "\ud83d\ude00"})) == ""
    request = base_request(Environment={"a": "\ud800"})
    assert "surrogates not allowed" in answer(app, request)
    written = json.dumps(request, ensure_ascii=False)
    for encoding in ("utf-8", "utf-16"):
        assert "SerializationException" in answer(app, written.encode(encoding, "surrogatepass"))


def test_a_text_of_bytes_that_are_not_utf_8_is_named_by_its_key_or_number(app):
    assert "at 'environment.title' failed to satisfy" in answer(app, base_request(Environment={"title": "\udc80"}))
    request = base_request(**{"AlgorithmSpecification.ContainerArguments": ["train", "a\udc80"]})
    assert "at 'algorithmSpecification.containerArguments.2.member' failed to satisfy" in answer(app, request)


def test_the_longest_times_are_accepted(app):
    longest = {"ResourceConfig.KeepAlivePeriodInSeconds": 21_600, "StoppingCondition.MaxRuntimeInSeconds": 28 * 86_400}
    assert answer(app, base_request(**longest)) == ""


def test_the_time_of_all_attempts_of_a_job_is_limited_without_spot_instances(app):
    retries = {"RetryStrategy": {"MaximumRetryAttempts": 2}, "StoppingCondition.MaxWaitTimeInSeconds": 120}
    assert answer(app, base_request(**retries)) == ""
