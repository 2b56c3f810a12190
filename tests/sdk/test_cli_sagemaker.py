"""The command on Amazon SageMaker, over HTTP, against moto's server."""

import json
import os

import boto3
import pytest
from fakes.aws_server import aws_server
from fakes.command_line import invoke

pytestmark = pytest.mark.slow

ROLE = "arn:aws:iam::123456789012:role/training"


@pytest.fixture(scope="module")
def endpoint():
    with aws_server("commanded") as endpoint:
        yield endpoint


@pytest.fixture
def account(endpoint, tmp_path, monkeypatch, no_settings):
    """An account that only a profile of the AWS settings knows, and a Region that only --region names."""
    (tmp_path / "credentials").write_text("[team]\naws_access_key_id = key\naws_secret_access_key = secret\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("print(1)")
    return boto3.Session(profile_name="team", region_name="eu-west-1").client("sagemaker")


WHERE = ("--profile", "team", "--region", "eu-west-1")


def test_a_job_is_run_described_listed_rerun_and_stopped_in_the_account_of_a_profile(account):
    started = invoke(
        "run", "train.py", "--instance-type", "ml.m5.large", "--role", ROLE, "--image-uri", "registry/tf:2.15",
        "--output-path", "s3://commanded", "--job-name", "commanded-1", "--tag", "team=vision", "--no-wait", *WHERE,
        "--input", "train=s3://b/train", "--json", "--", "--epochs", "5",
    )  # fmt: skip
    assert (started.exit_code, json.loads(started.stdout)["TrainingJobName"]) == (0, "commanded-1"), started.stderr
    there = ("--platform", "sagemaker", *WHERE)
    assert "hosts            1 x ml.m5.large\n" in invoke("describe", "commanded-1", *there).stdout
    # It is found on SageMaker if this machine has none of that name.
    assert invoke("describe", "commanded-1", *WHERE).exit_code == 0
    here = invoke("describe", "commanded-1", "--platform", "local")
    assert (here.exit_code, "no training job named 'commanded-1'" in here.stderr) == (1, True)
    (listed,) = json.loads(invoke("list", "--json", "--name", "commanded-", *there).stdout)
    assert listed["TrainingJobName"] == "commanded-1"
    again = invoke("rerun", "commanded-1", "--job-name", "commanded-2", "-p", "epochs=6", "--no-wait", *there)
    assert (again.exit_code, again.stdout) == (0, "commanded-2\n"), again.stderr
    first, second = (account.describe_training_job(TrainingJobName=name) for name in ("commanded-1", "commanded-2"))
    assert second["HyperParameters"].pop("epochs") == "6"
    assert second["HyperParameters"].pop("sagemaker_job_name") == '"commanded-2"'
    assert second["HyperParameters"].items() < first["HyperParameters"].items()
    for field in ("AlgorithmSpecification", "InputDataConfig", "OutputDataConfig", "ResourceConfig", "RoleArn"):
        assert second[field] == first[field]
    tags = account.list_tags(ResourceArn=second["TrainingJobArn"])["Tags"]
    assert {"Key": "team", "Value": "vision"} in tags
    stopped = invoke("stop", "commanded-1", "--json", *there)
    assert [each["job"] for each in json.loads(stopped.stdout)] == ["commanded-1"]
    assert "AWS_PROFILE" not in os.environ
