"""The SageMaker platform over HTTP, against moto's server."""

import time

import pytest
from botocore.exceptions import NoCredentialsError
from fakes.aws_server import aws_server

from scriptmode import (
    CredentialsError,
    Estimator,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    QuotaError,
    RequestError,
    SpecError,
    TransientError,
)
from scriptmode.aws.error_translation import translate_client_error
from scriptmode.aws.iam_role import find_execution_role
from scriptmode.platforms.sagemaker import SageMakerPlatform

pytestmark = pytest.mark.slow  # starts a server
ROLE = "arn:aws:iam::123456789012:role/training"


@pytest.fixture(scope="module")
def endpoint():
    with aws_server("out") as endpoint:
        yield endpoint


@pytest.fixture
def account(endpoint, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.delenv("AWS_REGION", raising=False)


@pytest.fixture
def estimator(tmp_path):
    (tmp_path / "train.py").write_text("print(1)")
    return Estimator(
        "registry/tf:2.15", ROLE, 2, "ml.m5.large", entry_point=str(tmp_path / "train.py"), output_path="s3://out"
    )


def test_the_default_bucket_is_the_one_of_the_roles_account_and_needs_no_call(estimator, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    estimator = Estimator("img", ROLE, 1, "ml.m5.large", entry_point=str(tmp_path / "train.py"))
    assert estimator.request()["OutputDataConfig"]["S3OutputPath"] == "s3://sagemaker-us-west-2-123456789012"


def test_a_job_is_created_described_listed_and_attached(estimator, account):
    import boto3

    job = estimator.fit("s3://b/train", wait=False, job_name="job-1")
    stored = boto3.client("s3").list_objects_v2(Bucket="out")["Contents"]
    assert [entry["Key"].rpartition("/")[2] for entry in stored] == ["sourcedir.tar.gz"]
    described = job.describe()
    assert described["TrainingJobArn"].endswith(":training-job/job-1")
    assert described["ResourceConfig"] == {"InstanceCount": 2, "InstanceType": "ml.m5.large", "VolumeSizeInGB": 30}
    assert "job-1" in [summary["TrainingJobName"] for summary in job.platform.list()]
    assert Estimator.attach("job-1", platform=job.platform).spec.resources.instance_count == 2


def test_a_role_is_looked_up_in_iam_and_the_job_is_tagged(account, tmp_path):
    import boto3

    (tmp_path / "train.py").write_text("print(1)")
    arn = boto3.client("iam").create_role(RoleName="trainer", Path="/team/", AssumeRolePolicyDocument="{}")["Role"][
        "Arn"
    ]
    made = Estimator(
        "registry/tf:2.15", "trainer", 1, "ml.m5.large", entry_point=str(tmp_path / "train.py"), tags={"team": "vision"}
    )
    job = made.fit(wait=False, job_name="job-tagged")
    assert job.describe()["RoleArn"] == arn
    assert Estimator.attach("job-tagged", platform=job.platform).spec.tags == (("team", "vision"),)


def test_the_execution_role_is_queried_from_sts(account, tmp_path):
    import boto3

    boto3.client("iam").create_role(RoleName="notebook", AssumeRolePolicyDocument="{}")
    assumed = boto3.client("sts").assume_role(
        RoleArn="arn:aws:iam::123456789012:role/notebook", RoleSessionName="SageMaker"
    )["Credentials"]
    session = boto3.session.Session(
        assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"], region_name="eu-west-1"
    )
    found = find_execution_role(session, metadata=tmp_path / "nowhere")
    assert found == "arn:aws:iam::123456789012:role/notebook"


def test_the_execution_role_of_a_notebook_instance_is_queried_from_sagemaker(account, tmp_path):
    import boto3

    boto3.client("sagemaker").create_notebook_instance(
        NotebookInstanceName="mine",
        InstanceType="ml.t3.medium",
        RoleArn="arn:aws:iam::123456789012:role/of-the-notebook",
    )
    metadata = tmp_path / "resource-metadata.json"
    metadata.write_text('{"ResourceName": "mine"}')
    assert find_execution_role(metadata=metadata) == "arn:aws:iam::123456789012:role/of-the-notebook"


def test_metadata_that_cannot_be_read_are_passed_over(account, tmp_path):
    metadata = tmp_path / "resource-metadata.json"
    metadata.write_text("[")
    with pytest.raises(CredentialsError, match="which is not a role; give role="):
        find_execution_role(metadata=metadata)


def test_a_job_that_is_not_there_is_named(account):
    with pytest.raises(JobNotFoundError, match="nothing-here"):
        SageMakerPlatform().describe("nothing-here")


def test_a_job_without_logs_yet_has_no_events(estimator, account):
    estimator.fit("s3://b/train", wait=False, job_name="job-2")
    assert list(estimator.latest_training_job.logs()) == []


@pytest.mark.slow
def test_log_streams_are_read_page_by_page_and_named_by_host(estimator, account):
    import boto3

    logs = boto3.client("logs")
    logs.create_log_group(logGroupName="/aws/sagemaker/TrainingJobs")
    job = estimator.fit("s3://b/train", wait=False, job_name="job-3")
    now = int(time.time() * 1000)
    for host in ("algo-1", "algo-2"):
        stream = f"job-3/{host}-{now}"
        logs.create_log_stream(logGroupName="/aws/sagemaker/TrainingJobs", logStreamName=stream)
        logs.put_log_events(
            logGroupName="/aws/sagemaker/TrainingJobs",
            logStreamName=stream,
            logEvents=[{"timestamp": now + n, "message": f"line {n}"} for n in range(3)],
        )
    events = list(job.logs(follow=True))
    for host in ("algo-1", "algo-2"):
        assert [event.message for event in events if event.host == host] == ["line 0", "line 1", "line 2"]


def test_no_credentials_say_how_to_give_them(tmp_path):
    class Session:
        region_name = "eu-west-1"

        def client(self, name, **settings):
            raise NoCredentialsError

    with pytest.raises(CredentialsError, match="aws configure"):
        SageMakerPlatform(Session()).describe("job-1")


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        ("ResourceInUse", "Job name must be unique", JobExistsError),
        ("ValidationException", "Requested resource not found.", JobNotFoundError),
        ("ValidationException", "1 validation error detected", RequestError),
        ("AccessDeniedException", "not authorized", CredentialsError),
        ("ResourceLimitExceeded", "account-level limit", QuotaError),
        ("ThrottlingException", "Rate exceeded", TransientError),
        ("InternalFailure", "we are sorry", TransientError),
        ("SomethingNew", "surprise", PlatformError),
    ],
)
def test_the_services_errors_leave_as_ours(code, message, error):
    found = translate_client_error("training job job-1", {"Error": {"Code": code, "Message": message}})
    assert type(found) is error
    assert "job-1" in str(found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"image_uri": None}, "image_uri is missing"),
        ({"role": None}, "role is missing"),
    ],
)
def test_missing_required_settings_are_refused_before_any_call(tmp_path, arguments, message):
    (tmp_path / "train.py").write_text("")
    given = {
        "image_uri": "img",
        "role": ROLE,
        "instance_type": "ml.m5.large",
        "entry_point": str(tmp_path / "train.py"),
    }
    with pytest.raises(SpecError, match=message):
        Estimator(**{**given, **arguments}).request()


@pytest.mark.parametrize(
    ("arguments", "inputs", "named"),
    [
        ({}, {"train": "file:///data"}, "channel 'train' is 'file:///data'"),
        ({"output_path": "file:///out"}, None, "output_path is 'file:///out'"),
        ({"code_location": "file:///code"}, None, "code_location is 'file:///code'"),
        ({"checkpoint_s3_uri": "file:///c"}, None, "checkpoint_s3_uri is 'file:///c'"),
        ({"source_dir": "file:///s.tar.gz"}, None, "source_dir is 'file:///s.tar.gz'"),
    ],
    ids=["channel", "output", "code", "checkpoints", "source"],
)
def test_places_of_this_machine_are_refused(account, arguments, inputs, named):
    given = {"image_uri": "img", "role": ROLE, "instance_type": "ml.m5.large", "entry_point": "train.py"}
    with pytest.raises(SpecError) as caught:
        Estimator(**{**given, **arguments}).request(inputs)
    assert named in str(caught.value)
    assert "in S3" in str(caught.value)


def test_a_denied_log_listing_is_a_credentials_error():
    from botocore.exceptions import ClientError

    class Session:
        region_name = "eu-west-1"

        def client(self, name, **settings):
            return self

        def describe_training_job(self, **arguments):
            return {"TrainingJobStatus": "Completed"}

        def get_paginator(self, name):
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeLogStreams")

    with pytest.raises(CredentialsError, match="their permissions"):
        list(SageMakerPlatform(Session()).log_events("job-1", follow=False))
