"""Jobs on Amazon SageMaker where settings, buckets or answers are not as they should be."""

import json
from pathlib import Path

import pytest
from fakes.answering_server import answering
from fakes.sagemaker_jobs import ROLE, sagemaker_estimator as estimator, started

from scriptmode import (
    CredentialsError,
    DataError,
    Estimator,
    JobExistsError,
    PlatformError,
    RequestError,
    SpecError,
    TrainingJob,
    TransientError,
)
from scriptmode._core.aws.s3 import S3
from scriptmode._core.platforms.sagemaker import SageMakerPlatform
from scriptmode.testing import FakeSageMaker, Life, ServiceError

OTHERS = "arn:aws:iam::999999999999:role/theirs"


pytestmark = pytest.mark.usefixtures("no_settings")


@pytest.fixture
def fake():
    return FakeSageMaker("eu-west-1")


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"AWS_DEFAULT_REGION": "eu west 1"}, PlatformError, "eu west 1"),
        ({"AWS_ENDPOINT_URL": "localhost:9000", "AWS_DEFAULT_REGION": "eu-west-1"}, PlatformError, "localhost:9000"),
        ({}, CredentialsError, "no AWS region is set"),
        ({"AWS_PROFILE": "nobody"}, CredentialsError, "nobody"),
        ({"AWS_DEFAULT_REGION": "eu-west-1"}, CredentialsError, "aws configure"),
    ],
    ids=["region", "endpoint", "no region", "profile", "no credentials"],
)
def test_settings_that_lead_nowhere_are_named(code, monkeypatch, settings, error, message):
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(error, match=message):
        estimator(code).fit(wait=False)


@pytest.mark.parametrize(
    ("first", "second", "region"),
    [("eu-west-1", None, "eu-west-1"), (None, "eu-west-2", "eu-west-2"), ("eu-west-1", "eu-west-2", "eu-west-1")],
)
def test_the_region_is_the_one_that_boto3_takes(code, monkeypatch, first, second, region):
    for name, value in (("AWS_DEFAULT_REGION", first), ("AWS_REGION", second)):
        if value:
            monkeypatch.setenv(name, value)
    assert estimator(code).request()["OutputDataConfig"]["S3OutputPath"] == f"s3://sagemaker-{region}-123456789012"


@pytest.mark.parametrize(
    ("region", "partition"), [("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov"), ("us-east-1", "aws")]
)
def test_the_default_bucket_is_there_in_every_partition(code, region, partition):
    fake = FakeSageMaker(region)
    fake.buckets.clear()
    estimator(code, role=f"arn:{partition}:iam::123456789012:role/r", sagemaker_session=fake).fit(wait=False)
    assert fake.buckets == {f"sagemaker-{region}-123456789012": "123456789012"}


def test_a_bucket_with_another_accounts_default_name_is_never_made(code, fake):
    made = estimator(code, output_path="s3://sagemaker-eu-west-1-999999999999/x", sagemaker_session=fake)
    with pytest.raises(DataError, match="no bucket 'sagemaker-eu-west-1-999999999999'"):
        made.fit(wait=False)
    assert "create_bucket" not in [call.operation for call in fake.calls]


@pytest.mark.parametrize("code_of_s3", ["BucketAlreadyOwnedByYou", "OperationAborted"])
def test_two_first_jobs_may_make_the_bucket_at_once(code_of_s3, fake):
    fake.buckets.clear()
    fake.fault("create_bucket", ServiceError(code_of_s3, "somebody is making it"))
    S3(fake.client("s3")).create_bucket("b", region="eu-west-1")


def test_an_archive_under_another_key_is_stored_again_and_in_another_bucket_without_it(code, fake):
    fake.buckets["elsewhere"] = fake.account

    def uploads(**arguments):
        fake.calls.clear()
        estimator(code, sagemaker_session=fake, **arguments).fit(wait=False)
        found = [call.arguments for call in fake.calls if call.operation == "put_object"]
        assert {each["ServerSideEncryption"] for each in found} <= {"aws:kms"}
        return [each.get("SSEKMSKeyId") for each in found]

    assert uploads() == [None]
    assert uploads() == []
    assert uploads(output_kms_key="key-1") == ["key-1"]
    assert uploads(output_kms_key="key-1") == []
    assert uploads(output_kms_key="arn:aws:kms:eu-west-1:123456789012:key/key-1") == []
    assert uploads(output_kms_key="key-1", code_location="s3://elsewhere/x") == [None]


def test_a_spec_is_attached_to_as_it_was_whatever_this_machine_is_set_to(code, monkeypatch, tmp_path):
    fake, _ = started(Life.completed())
    fake.sagemaker_config = None
    path = tmp_path / "config.yaml"
    path.write_text(
        "SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {VpcConfig: {Subnets: [s], SecurityGroupIds: [g]}, "
        "OutputDataConfig: {KmsKeyId: k}, Environment: {A: b}, Tags: [{Key: a, Value: b}], EnableNetworkIsolation: true}}"
    )
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(path))
    created = next(call.arguments for call in fake.calls if call.operation == "create_training_job")
    assert Estimator.attach("job-1", fake).request(job_name="job-1") == created


def test_half_a_vpc_in_the_config_file_is_named(code, monkeypatch, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("SchemaVersion: '1.0'\nSageMaker: {TrainingJob: {VpcConfig: {Subnets: [subnet-1]}}}")
    monkeypatch.setenv("SAGEMAKER_USER_CONFIG_OVERRIDE", str(path))
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    with pytest.raises(RequestError, match="VpcConfig lacks 'SecurityGroupIds'"):
        estimator(code).request()


def test_a_missing_resource_of_a_new_job_is_not_a_missing_job(code, fake):
    made = estimator(code, sagemaker_session=fake)
    fake.fault("create_training_job", ServiceError("ResourceNotFound", "Experiment 'x' does not exist"))
    with pytest.raises(RequestError, match="Experiment 'x' does not exist"):
        made.fit(wait=False)


@pytest.fixture
def account(monkeypatch, account_settings):
    """Return a function that moves Amazon SageMaker to a port of this machine."""
    return lambda port: monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")


@pytest.fixture
def interrupting(account):
    """The jobs of a SageMaker whose first answer to CreateTrainingJob is lost: botocore asks again and hears that the name is taken."""
    jobs = {}

    def answer(headers, content):
        body, operation = json.loads(content), headers["X-Amz-Target"].rpartition(".")[2]
        name = body["TrainingJobName"]
        if operation != "CreateTrainingJob":
            status, found = 200, {"HyperParameters": {}, "TrainingJobStatus": "InProgress", **jobs[name]}
        elif name in jobs:
            status, found = 400, {"__type": "ResourceInUse", "message": "Training job names must be unique"}
        else:
            jobs[name] = {**body, "TrainingJobArn": f"arn:aws:sagemaker:eu-west-1:123456789012:training-job/{name}"}
            return None
        return status, json.dumps(found).encode()

    with answering(answer) as server:
        account(server.server_port)
        yield jobs


def test_a_job_that_cannot_be_described_is_not_reported_as_missing(account, data_dir, monkeypatch):
    account(9)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(TransientError, match="could not be reached"):
        TrainingJob.attach("job-1")


def test_a_job_whose_creation_boto3_itself_retried_is_found(interrupting):
    made = Estimator("img", ROLE, 1, "ml.m5.large", output_path="s3://out/x")
    job = made.fit(wait=False, job_name="job-1")
    assert list(interrupting) == ["job-1"]
    assert job.name == "job-1"


def test_another_job_of_that_name_is_not_taken_for_ones_own(interrupting):
    interrupting["job-1"] = {"TrainingJobName": "job-1", "TrainingJobArn": "arn", "RoleArn": OTHERS}
    with pytest.raises(JobExistsError, match="give another job_name"):
        Estimator("img", ROLE, 1, "ml.m5.large", output_path="s3://out/x").fit(wait=False, job_name="job-1")


def test_no_secret_is_repeated_in_a_message(code):
    secret = "hunter2"
    wrong = [
        {"environment": {"TOKEN": 1234567}, "shown": "1234567"},
        {"environment": {"TOKEN": secret}, "additional_request_fields": {"Environment": {"TOKEN": f"{secret}x"}}},
        {"hyperparameters": {"token": f"{secret}\0"}},
        {"hyperparameters": {"token": secret.encode()}},
    ]
    for arguments in wrong:
        shown = arguments.pop("shown", secret)
        with pytest.raises(SpecError) as caught:
            estimator(code, sagemaker_session=FakeSageMaker(), **arguments).request()
        assert shown not in str(caught.value)
        assert "token" in str(caught.value).lower()


def test_objects_that_no_folder_can_hold_are_named(tmp_path):
    fake = FakeSageMaker()
    fake.buckets["b"] = fake.account
    fake.objects.update({"s3://b/d/x": b"1", "s3://b/d/x/y": b"2", "s3://b/e/../f": b"3"})
    with pytest.raises(DataError, match="cannot be stored as .*; name another directory"):
        SageMakerPlatform(fake).fetch("s3://b/d", tmp_path)
    with pytest.raises(DataError, match="cannot be stored as .* the path leads out of the directory"):
        SageMakerPlatform(fake).fetch("s3://b/e", tmp_path / "below")
    assert not (tmp_path / "f").exists()


def test_a_role_of_another_account_makes_no_bucket_in_ones_own(code, fake):
    with pytest.raises(CredentialsError, match="of account 999999999999, but the credentials in use are of account 12"):
        estimator(code, role=OTHERS, sagemaker_session=fake).fit(wait=False)
    assert "create_bucket" not in [call.operation for call in fake.calls]


def test_a_dependency_does_not_replace_the_script(code, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.py").write_text("other")
    made = estimator(code, dependencies=[str(tmp_path / "other/train.py")], sagemaker_session=FakeSageMaker())
    with pytest.raises(SpecError, match="both have 'train.py'"):
        made.request()


def test_an_ignore_file_that_cannot_be_read_is_named(code):
    (Path(code) / ".scriptmodeignore").write_text("*.log\n!\n")
    with pytest.raises(SpecError, match="scriptmodeignore.*not a pattern"):
        estimator(code, sagemaker_session=FakeSageMaker()).request()


def test_a_persistent_error_is_a_warning_while_it_is_retried(caplog):
    fake, job = started(Life.completed())
    fake.disconnect("describe_training_job", times=8, after=1)
    job.wait()
    assert [record.message for record in caplog.records if "still trying" in record.message]
