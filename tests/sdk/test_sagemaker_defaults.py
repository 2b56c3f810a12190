"""What a job on Amazon SageMaker says where its caller said nothing, and in how few calls it is started."""

import json

import pytest
from fakes.sagemaker_jobs import ROLE, sagemaker_estimator, started

from scriptmode import (
    CredentialsError,
    Estimator,
    FileSystemInput,
    PlatformError,
    RequestError,
    SpecError,
    TransientError,
)
from scriptmode._core.aws.iam_role import find_execution_role
from scriptmode._core.platforms.sagemaker import SageMakerPlatform
from scriptmode._core.platforms.sagemaker.host_secret import with_host_secret
from scriptmode._core.request.parse import parse_request
from scriptmode.testing import FakeSageMaker, Life, ServiceError
from scriptmode_runtime.contract import MULTI_WORKER_MIRRORED_ENABLED, SECRET_VARIABLE, decode, enabled

pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def fake():
    return FakeSageMaker("eu-west-1")


def estimator(session, code, **arguments):
    return sagemaker_estimator(code, session, **arguments)


def operations(fake):
    return [call.operation for call in fake.calls]


def test_a_job_is_started_in_three_calls_and_the_next_one_of_the_same_source_in_two(fake, code):
    made = estimator(fake, code)
    made.fit("s3://b/train", wait=False)
    assert operations(fake) == ["head_object", "put_object", "create_training_job"]
    assert fake.calls[1].arguments["ExpectedBucketOwner"] == "123456789012"
    request = fake.calls[-1].arguments
    assert request["OutputDataConfig"]["S3OutputPath"] == "s3://sagemaker-eu-west-1-123456789012"
    uri = json.loads(request["HyperParameters"]["sagemaker_submit_directory"])
    assert uri.startswith("s3://sagemaker-eu-west-1-123456789012/scriptmode/source/")
    assert uri in fake.objects
    fake.calls.clear()
    made.fit("s3://b/train", wait=False)
    assert operations(fake) == ["head_object", "create_training_job"]


def test_a_default_bucket_that_is_not_there_is_made_for_a_job_without_a_source(fake, code):
    fake.buckets.clear()
    estimator(fake, code, entry_point=None, source_dir=None).fit(wait=False)
    assert list(fake.buckets) == ["sagemaker-eu-west-1-123456789012"]


def test_a_file_system_is_reached_through_a_vpc_that_may_be_the_config_files(fake, code):
    data = FileSystemInput("fs-01234567", "EFS", "/x")
    with pytest.raises(SpecError, match="reached through a VPC"):
        estimator(fake, code).request(data)
    vpc = {"Subnets": ["subnet-file"], "SecurityGroupIds": ["sg-file"]}
    fake.sagemaker_config = {"SchemaVersion": "1.0", "SageMaker": {"TrainingJob": {"VpcConfig": vpc}}}
    assert estimator(fake, code).request(data)["VpcConfig"] == vpc


def test_the_config_file_may_lie_in_s3(fake, code, monkeypatch):
    fake.buckets["settings"] = "123456789012"
    fake.sagemaker_config = None
    fake.objects["s3://settings/team/config.yaml"] = (
        b"SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {RoleArn: %s}}" % ROLE.encode()
    )
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", "s3://settings/team")
    assert estimator(fake, code, role=None).request()["RoleArn"] == ROLE


@pytest.mark.parametrize("given", ["training", "service-role/training"])
def test_a_roles_name_is_looked_up_once(fake, code, given):
    fake.roles["training"] = ROLE
    made = estimator(fake, code, role=given)
    assert [made.request()["RoleArn"] for _ in range(2)] == [ROLE, ROLE]
    assert operations(fake) == ["get_role"]


@pytest.mark.parametrize(
    ("role", "message"),
    [
        (None, "role is missing; .*RoleArn in the SageMaker config file"),
        ("nobody", "role 'nobody' is not a role of this account"),
        ("not a role!", "neither a role's name nor its ARN"),
    ],
)
def test_a_role_that_cannot_be_is_named_before_anything_is_done(fake, code, role, message):
    with pytest.raises(SpecError, match=message):
        estimator(fake, code, role=role).fit(wait=False)
    assert not fake.objects


def test_a_role_that_may_not_be_looked_up_says_to_give_its_arn(fake, code):
    fake.fault("get_role", ServiceError("AccessDenied", "not authorized to perform iam:GetRole"))
    with pytest.raises(CredentialsError, match="or give the role's ARN"):
        estimator(fake, code, role="training").request()


def test_studio_knows_its_execution_role(fake, tmp_path):
    studio = tmp_path / "resource-metadata.json"
    studio.write_text(json.dumps({"ExecutionRoleArn": ROLE}))
    assert find_execution_role(fake, metadata=studio) == ROLE
    assert fake.calls == []


def test_one_error_lists_what_the_service_would_refuse_before_anything_is_stored(fake, code):
    made = estimator(fake, code, tags={"bad*key": "x"}, output_kms_key="no spaces please", max_retry_attempts=31)
    with pytest.raises(RequestError) as caught:
        made.fit(wait=False)
    for named in (
        "Tags[0].Key",
        "OutputDataConfig.KmsKeyId",
        "RetryStrategy.MaximumRetryAttempts is 31; the most is 30",
    ):
        assert named in str(caught.value)
    assert fake.calls == []


def test_a_job_whose_creation_was_not_answered_is_found_and_not_started_twice(fake, code):
    fake.disconnect("create_training_job", answer_lost=True)
    job = estimator(fake, code).fit(wait=False, job_name="job-1")
    assert job.status == "InProgress"
    assert operations(fake).count("create_training_job") == 1


def test_a_creation_that_never_arrived_is_an_error_that_one_can_retry(fake, code):
    fake.disconnect("create_training_job")
    made = estimator(fake, code)
    with pytest.raises(TransientError, match="could not be reached"):
        made.fit(wait=False, job_name="job-1")
    made.fit(wait=False, job_name="job-1")


def test_a_creation_with_an_unknown_result_says_how_to_find_out(fake, code):
    fake.disconnect("create_training_job", answer_lost=True)
    fake.disconnect("describe_training_job")
    with pytest.raises(TransientError, match="may have been started: scriptmode describe job-1"):
        estimator(fake, code).fit(wait=False, job_name="job-1")


@pytest.mark.parametrize(
    ("session", "instance_type", "message"),
    [
        ("eu-west-1", "ml.m5.large", "sagemaker_session is 'eu-west-1'; give a boto3.Session"),
        (FakeSageMaker(), "local_process", "runs on this machine"),
    ],
)
def test_a_session_that_does_not_fit_is_refused(code, session, instance_type, message):
    with pytest.raises(SpecError, match=message):
        estimator(session, code, instance_type=instance_type).request()


def test_a_platform_and_a_session_together_are_refused(fake, code):
    with pytest.raises(SpecError, match="keep one"):
        estimator(fake, code, platform=SageMakerPlatform(fake))
    with pytest.raises(SpecError, match="keep one"):
        Estimator.attach("job-1", fake, platform=SageMakerPlatform(fake))


def test_an_additional_field_that_an_argument_says_is_refused(fake, code):
    fields = {"StoppingCondition": {"MaxRuntimeInSeconds": 5}}
    with pytest.raises(SpecError, match="arguments both say StoppingCondition.MaxRuntimeInSeconds, 5 and 86400"):
        estimator(fake, code, additional_request_fields=fields).request()


def test_an_unexpected_error_keeps_its_code(fake, code):
    fake.fault("create_training_job", ServiceError("TeapotException", "short and stout"))
    with pytest.raises(PlatformError, match="short and stout .TeapotException"):
        estimator(fake, code).fit(wait=False)


RING = {"multi_worker_mirrored_strategy": {"enabled": True}}
LIFE = Life.completed()


def secret_of(job):
    return job.describe().get("Environment", {}).get(SECRET_VARIABLE)


def start(code, **arguments):
    return started(LIFE, **{"entry_point": "train.py", "source_dir": code, "distribution": RING, **arguments})


def test_hosts_that_train_together_share_a_secret_of_64_hexadecimal_digits(code):
    secrets = {secret_of(start(code, instance_count=2)[1]) for _ in range(2)}
    assert len(secrets) == 2
    assert all(len(bytes.fromhex(secret)) == 32 for secret in secrets)


def test_a_host_that_meets_no_other_needs_none(code):
    assert secret_of(start(code, instance_count=1)[1]) is None


@pytest.mark.parametrize("count", [0, 99, 100])
def test_no_secret_is_added_to_as_many_variables_as_the_service_takes(code, count):
    variables = {f"V{number}": "x" for number in range(count)}
    _, job = start(code, instance_count=2, environment=variables)
    assert len(job.describe().get("Environment", {})) == min(count + 1, 100)
    assert (secret_of(job) is None) is (count == 100)


@pytest.mark.parametrize(
    ("text", "is_on"),
    [("true", True), ('"True"', True), ("1", True), ('"no"', False), ("null", False), ("", False), (None, False)],
)
def test_a_distribution_is_switched_on_as_the_runtime_reads_it(text, is_on):
    parameters = {} if text is None else {MULTI_WORKER_MIRRORED_ENABLED: text}
    resources = {"InstanceCount": 2, "InstanceType": "ml.m5.large"}
    request = {"HyperParameters": parameters, "ResourceConfig": resources}
    assert (SECRET_VARIABLE in with_host_secret(parse_request(request)).environment) is is_on
    if text is not None:
        assert enabled(decode(text)) is is_on


def test_a_secret_of_the_users_own_is_kept(code):
    _, job = start(code, instance_count=2, environment={SECRET_VARIABLE: "chosen", "A": "b"})
    assert job.describe()["Environment"] == {SECRET_VARIABLE: "chosen", "A": "b"}
