"""What a job on Amazon SageMaker says where its caller said nothing, and in how few calls it is started."""

import json

import boto3
import pytest

from scriptmode import (
    CredentialsError,
    DataError,
    Estimator,
    FileSystemInput,
    JobExistsError,
    PlatformError,
    QuotaError,
    RequestError,
    SpecError,
    TransientError,
)
from scriptmode.aws.iam_role import find_execution_role
from scriptmode.platforms.sagemaker import SageMakerPlatform
from scriptmode.testing import FakeSageMaker, ServiceError

ROLE = "arn:aws:iam::123456789012:role/training"
CONFIG = """
SchemaVersion: '1.0'
SageMaker:
  PythonSDK:
    Modules:
      Session: {DefaultS3Bucket: the-bucket, DefaultS3ObjectKeyPrefix: team/vision}
      Estimator: {DebugHookConfig: true}
  TrainingJob:
    RoleArn: arn:aws:iam::123456789012:role/from-the-file
    EnableNetworkIsolation: true
    EnableInterContainerTrafficEncryption: true
    Environment: {A: file}
    OutputDataConfig: {KmsKeyId: output-key}
    ResourceConfig: {VolumeKmsKeyId: volume-key}
    ProfilerConfig: {DisableProfiler: true}
    VpcConfig: {Subnets: [subnet-file], SecurityGroupIds: [sg-file]}
    Tags: [{Key: team, Value: file}, {Key: cost, Value: file}]
"""


pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def fake():
    return FakeSageMaker("eu-west-1")


@pytest.fixture
def config(monkeypatch, tmp_path, fake):
    fake.sagemaker_config = None
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(path))


def estimator(session, code, **arguments):
    defaults = {
        "image_uri": "img:1", "role": ROLE, "instance_type": "ml.m5.large", "entry_point": "train.py",
        "source_dir": code, "sagemaker_session": session,
    }  # fmt: skip
    return Estimator(**{**defaults, **arguments})


def operations(fake):
    return [call.operation for call in fake.calls]


def test_a_job_is_started_in_three_calls_and_the_next_one_of_the_same_source_in_two(fake, code):
    made = estimator(fake, code)
    made.fit("s3://b/train", wait=False)
    assert operations(fake) == ["head_object", "put_object", "create_training_job"]
    fake.calls.clear()
    made.fit("s3://b/train", wait=False)
    assert operations(fake) == ["head_object", "create_training_job"]


def test_the_archive_and_the_output_go_to_the_default_bucket_of_the_roles_account(fake, code):
    made = estimator(fake, code)
    made.fit(wait=False, job_name="job-1")
    request = fake.calls[-1].arguments
    assert request["OutputDataConfig"]["S3OutputPath"] == "s3://sagemaker-eu-west-1-123456789012"
    uri = json.loads(request["HyperParameters"]["sagemaker_submit_directory"])
    assert uri.startswith("s3://sagemaker-eu-west-1-123456789012/scriptmode/source/")
    assert uri in fake.objects
    assert fake.calls[1].arguments["ExpectedBucketOwner"] == "123456789012"


def test_a_default_bucket_that_is_not_there_is_made(fake, code):
    fake.buckets.clear()
    estimator(fake, code).fit(wait=False)
    assert list(fake.buckets) == ["sagemaker-eu-west-1-123456789012"]
    fake.buckets.clear()
    fake.objects.clear()
    estimator(fake, code, entry_point=None, source_dir=None).fit(wait=False)
    assert list(fake.buckets) == ["sagemaker-eu-west-1-123456789012"]


def test_a_default_bucket_of_another_account_is_not_written_to(fake, code):
    fake.buckets["sagemaker-eu-west-1-123456789012"] = "999999999999"
    with pytest.raises(DataError, match="sagemaker-eu-west-1-123456789012"):
        estimator(fake, code).fit(wait=False)
    assert "create_training_job" not in operations(fake)
    assert not fake.objects


@pytest.mark.parametrize(
    ("arguments", "location"),
    [
        pytest.param(
            {"output_path": "s3://mine/jobs/"}, "s3://mine/jobs/scriptmode/source", id="below the output path"
        ),
        pytest.param({"code_location": "s3://code/here/"}, "s3://code/here", id="at the code location"),
    ],
)
def test_the_archive_lies_where_the_job_may_read(fake, code, arguments, location):
    fake.buckets.update(mine="123456789012", code="123456789012")
    estimator(fake, code, **arguments).fit(wait=False)
    assert all(uri.startswith(f"{location}/") for uri in fake.objects)
    assert len(fake.objects) == 1


@pytest.mark.parametrize(
    ("arguments", "key"),
    [
        ({"output_kms_key": "key-1"}, "key-1"),
        ({"output_kms_key": "key-1", "code_location": "s3://elsewhere/x"}, None),
        ({}, None),
    ],
    ids=["in the output's bucket", "in another bucket", "no key"],
)
def test_the_archive_is_encrypted_with_the_outputs_key_in_the_outputs_bucket(fake, code, arguments, key):
    fake.buckets["elsewhere"] = "123456789012"
    estimator(fake, code, **arguments).fit(wait=False)
    put = next(call.arguments for call in fake.calls if call.operation == "put_object")
    assert put.get("SSEKMSKeyId") == key
    assert put["ServerSideEncryption"] == "aws:kms"


def test_the_config_file_says_what_the_caller_did_not(fake, code, config):
    request = estimator(fake, code, role=None, tags={"team": "mine"}).request("s3://b/x", job_name="job-1")
    submitted = json.loads(request["HyperParameters"]["sagemaker_submit_directory"])
    carried = request["InputDataConfig"][1]["DataSource"]["S3DataSource"]["S3Uri"]
    assert submitted == "/opt/ml/input/data/code/sourcedir.tar.gz"
    assert carried.startswith("s3://the-bucket/team/vision/scriptmode/source/")
    assert request["RoleArn"] == "arn:aws:iam::123456789012:role/from-the-file"
    assert request["EnableNetworkIsolation"] is True
    assert request["EnableInterContainerTrafficEncryption"] is True
    assert request["Environment"] == {"A": "file"}
    assert request["OutputDataConfig"] == {"S3OutputPath": "s3://the-bucket/team/vision", "KmsKeyId": "output-key"}
    assert request["ResourceConfig"]["VolumeKmsKeyId"] == "volume-key"
    assert request["ProfilerConfig"] == {"DisableProfiler": True}
    assert request["DebugHookConfig"] == {"S3OutputPath": "s3://the-bucket/team/vision"}
    assert request["VpcConfig"] == {"Subnets": ["subnet-file"], "SecurityGroupIds": ["sg-file"]}
    assert request["Tags"] == [{"Key": "team", "Value": "mine"}, {"Key": "cost", "Value": "file"}]
    assert fake.calls == []


def test_arguments_win_over_the_config_file(fake, code, config):
    request = estimator(
        fake, code, enable_network_isolation=False, encrypt_inter_container_traffic=False, environment={},
        output_path="s3://mine", output_kms_key="k1", volume_kms_key="k2", subnets=["subnet-1"],
        security_group_ids=["sg-1"], debugger_hook_config=False, disable_profiler=False,
    ).request()  # fmt: skip
    assert request["RoleArn"] == ROLE
    assert not {"EnableNetworkIsolation", "EnableInterContainerTrafficEncryption", "Environment"} & set(request)
    assert request["OutputDataConfig"] == {"S3OutputPath": "s3://mine", "KmsKeyId": "k1"}
    assert request["ResourceConfig"]["VolumeKmsKeyId"] == "k2"
    assert request["VpcConfig"] == {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]}
    assert "DebugHookConfig" not in request
    assert request["ProfilerConfig"] == {"S3OutputPath": "s3://mine", "DisableProfiler": False}


@pytest.mark.parametrize("instance_type", ["ml.g5.xlarge", "ml.p4d.24xlarge", "ml.c5d.large", "ml.trn1.2xlarge"])
def test_a_host_with_storage_of_its_own_gets_no_volume_key_from_the_file(fake, code, config, instance_type):
    assert "VolumeKmsKeyId" not in estimator(fake, code, instance_type=instance_type).request()["ResourceConfig"]


def test_the_config_file_may_lie_in_s3(fake, code, monkeypatch):
    fake.buckets["settings"] = "123456789012"
    fake.sagemaker_config = None
    fake.objects["s3://settings/team/config.yaml"] = CONFIG.encode()
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", "s3://settings/team")
    assert estimator(fake, code, role=None).request()["RoleArn"].endswith("/from-the-file")


def test_the_vpc_of_a_file_system_may_come_from_the_file(fake, code, config):
    made = estimator(fake, code)
    assert "VpcConfig" in made.request(FileSystemInput("fs-01234567", "EFS", "/x"))


def test_a_file_system_without_a_vpc_is_refused(fake, code):
    with pytest.raises(SpecError, match="reached through a VPC"):
        estimator(fake, code).request(FileSystemInput("fs-01234567", "EFS", "/x"))


@pytest.mark.parametrize("given", ["training", "service-role/training"])
def test_a_roles_name_is_looked_up(fake, code, given):
    fake.roles["training"] = ROLE
    assert estimator(fake, code, role=given).request()["RoleArn"] == ROLE
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


def test_the_execution_role_is_the_callers(fake, tmp_path):
    fake.roles["notebook"] = "arn:aws:iam::123456789012:role/service-role/notebook"
    fake.caller_arn = "arn:aws:sts::123456789012:assumed-role/notebook/SageMaker"
    nowhere = tmp_path / "nowhere"
    assert find_execution_role(fake, metadata=nowhere) == "arn:aws:iam::123456789012:role/service-role/notebook"
    fake.caller_arn = "arn:aws:iam::123456789012:user/me"
    with pytest.raises(CredentialsError, match=r"user/me, which is not a role; give role="):
        find_execution_role(fake, metadata=nowhere)
    studio = tmp_path / "resource-metadata.json"
    studio.write_text(json.dumps({"ExecutionRoleArn": ROLE}))
    assert find_execution_role(fake, metadata=studio) == ROLE


def test_everything_that_the_service_would_refuse_is_said_before_anything_is_stored(fake, code):
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


def test_a_quota_is_named_with_what_to_do(fake, code):
    fake.limit("ml.m5.large", 1)
    with pytest.raises(
        QuotaError, match="'ml.m5.large for training job usage' is 1 Instances.*ask AWS for a higher quota"
    ):
        estimator(fake, code, instance_count=2).fit(wait=False)


def test_a_name_that_is_taken_is_named(fake, code):
    made = estimator(fake, code)
    made.fit(wait=False, job_name="job-1")
    with pytest.raises(JobExistsError, match="training job job-1"):
        made.fit(wait=False, job_name="job-1")


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


def test_a_boto3_session_is_taken_with_its_region(code):
    session = boto3.session.Session("key", "secret", region_name="ap-south-1")
    path = estimator(session, code).request()["OutputDataConfig"]["S3OutputPath"]
    assert path == "s3://sagemaker-ap-south-1-123456789012"


class SessionOfTheSageMakerSdk:
    """What the session of an installed ``sagemaker`` is, as far as it matters here."""

    local_mode = False
    sagemaker_config = None

    def __init__(self, boto_session, **attributes):
        self.boto_session = boto_session
        self.sagemaker_client = boto_session.client("sagemaker")
        self.s3_client = boto_session.client("s3")
        self._default_bucket = None
        self._default_bucket_name_override = None
        self.default_bucket_prefix = None
        vars(self).update(attributes)


def test_a_session_of_the_sagemaker_sdk_brings_its_clients_bucket_and_config(fake, code):
    fake.buckets["named"] = "123456789012"
    settings = {"SchemaVersion": "1.0", "SageMaker": {"TrainingJob": {"Environment": {"A": "session"}}}}
    session = SessionOfTheSageMakerSdk(
        fake, _default_bucket_name_override="named", default_bucket_prefix="below", sagemaker_config=settings
    )
    estimator(session, code).fit(wait=False)
    request = fake.calls[-1].arguments
    assert request["OutputDataConfig"]["S3OutputPath"] == "s3://named/below"
    assert request["Environment"] == {"A": "session"}


@pytest.mark.parametrize(
    ("session", "instance_type", "message"),
    [
        ("eu-west-1", "ml.m5.large", "sagemaker_session is 'eu-west-1'; give a boto3.Session"),
        (SessionOfTheSageMakerSdk(FakeSageMaker(), local_mode=True), "ml.m5.large", "a session of local mode"),
        (FakeSageMaker(), "local_process", "runs on this machine"),
    ],
)
def test_a_session_that_does_not_fit_is_refused(code, session, instance_type, message):
    with pytest.raises(SpecError, match=message):
        estimator(session, code, instance_type=instance_type).request()


def test_a_platform_and_a_session_together_are_refused(fake, code):
    with pytest.raises(SpecError, match="keep one"):
        estimator(fake, code, platform=SageMakerPlatform(fake))


def test_an_algorithm_of_the_marketplace_needs_no_image(fake, code):
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:algorithm/a"
    fields = {"AlgorithmSpecification": {"AlgorithmName": arn}}
    made = estimator(fake, code, image_uri=None, entry_point=None, source_dir=None, additional_request_fields=fields)
    made.fit(wait=False)
    assert fake.calls[-1].arguments["AlgorithmSpecification"] == {"AlgorithmName": arn, "TrainingInputMode": "File"}


def test_an_additional_field_that_an_argument_says_is_refused(fake, code):
    fields = {"StoppingCondition": {"MaxRuntimeInSeconds": 5}}
    with pytest.raises(SpecError, match="arguments both say StoppingCondition.MaxRuntimeInSeconds, 5 and 86400"):
        estimator(fake, code, additional_request_fields=fields).request()


def test_an_unexpected_error_keeps_its_code(fake, code):
    fake.fault("create_training_job", ServiceError("TeapotException", "short and stout"))
    with pytest.raises(PlatformError, match="short and stout .TeapotException"):
        estimator(fake, code).fit(wait=False)
