"""The SageMaker platform over HTTP, against moto's server."""

import boto3
import pytest
from fakes.aws_server import aws_server

from scriptmode import (
    CredentialsError,
    Estimator,
    JobExistsError,
    JobNotFoundError,
    PlatformError,
    QuotaError,
    RequestError,
    TransientError,
)
from scriptmode.core.aws.error_translation import translate_client_error
from scriptmode.core.aws.iam_role import find_execution_role

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


def test_a_role_is_looked_up_in_iam_and_the_job_is_tagged(estimator, account):
    created = boto3.client("iam").create_role(RoleName="trainer", Path="/team/", AssumeRolePolicyDocument="{}")
    estimator.role, estimator.tags = "trainer", {"team": "vision"}
    job = estimator.fit(wait=False, job_name="job-tagged")
    assert job.describe()["RoleArn"] == created["Role"]["Arn"]
    assert Estimator.attach("job-tagged", platform=job.platform).spec.tags == (("team", "vision"),)


def test_the_execution_role_is_queried_from_sts(account, tmp_path):
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
