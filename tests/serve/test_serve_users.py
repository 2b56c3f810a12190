"""What a user of `scriptmode serve` reads: in a shell of its own, in the answers of the server, and at its start."""

import os
import subprocess
import sys

import boto3
import pytest
from botocore.exceptions import ClientError
from fakes.archives import packed
from fakes.processes import until
from serve.conftest import serving

from scriptmode_serve._http.configuration import parse_configuration, parse_toml

pytestmark = pytest.mark.slow

COMMAND = (sys.executable, "-m", "scriptmode")


def shell(api, *words, code=0, **variables):
    """Run a command as in another terminal of the server's user: without any of AWS's variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    folders = {
        "SCRIPTMODE_DATA_DIR": str(api.server.data_dir),
        "AWS_EC2_METADATA_DISABLED": "true",
        "HOME": str(api.folder),
    }
    done = subprocess.run(
        [*COMMAND, *words], env={**kept, **folders, **variables}, capture_output=True, text=True, timeout=300,
        check=False, cwd=api.folder,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def variables(text):
    """Return the variables of the command ``export A=b C=d`` in a text."""
    words = text.partition("export ")[2].partition(";")[0].split()
    return dict(word.split("=", 1) for word in words)


@pytest.fixture(scope="module")
def in_s3(api):
    """A job whose source and output are in the server's S3."""
    s3 = api.client("s3")
    s3.create_bucket(Bucket="data")
    program = "import os\nopen(os.environ['SM_MODEL_DIR'] + '/weights', 'w').write('1')\n"
    s3.put_object(Bucket="data", Key="source.tar.gz", Body=packed({"train.py": program}))
    places = {
        "HyperParameters": {"sagemaker_program": "train.py", "sagemaker_submit_directory": "s3://data/source.tar.gz"},
        "OutputDataConfig": {"S3OutputPath": "s3://data/out"},
    }
    done = api.run("", **places)
    assert done["TrainingJobStatus"] == "Completed"
    return done["TrainingJobName"]


#: Keys of Amazon S3, which no test asks.
OTHER_KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "x", "HTTPS_PROXY": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1"
}  # fmt: skip


def test_a_command_without_the_variables_prints_those_of_the_server(api, in_s3, tmp_path):
    words = ["model", "download", in_s3, str(tmp_path / "copy")]
    for keys in ({}, OTHER_KEYS):
        found = variables(shell(api, *words, code=1, **keys))
        assert found["AWS_ENDPOINT_URL"] == api.server.url
    shell(api, *words, **found)
    assert [each.name for each in tmp_path.rglob("weights")] == ["weights"]


def test_a_rerun_without_the_variables_prints_those_of_the_server(api, in_s3):
    found = variables(shell(api, "rerun", in_s3, "--no-wait", code=1, **OTHER_KEYS))
    assert found["AWS_ENDPOINT_URL"] == api.server.url
    assert f"{in_s3}-again" in shell(api, "rerun", in_s3, "--job-name", f"{in_s3}-again", **found)


def test_a_rerun_of_a_server_s_job_waits_and_is_in_its_region(tmp_path):
    with serving(tmp_path, "--s3", "memory", "--queue", "1") as api:
        ireland = boto3.Session("t", "t", region_name="eu-west-1").client("sagemaker", endpoint_url=api.server.url)
        request = api.request("import os; print(os.environ['AWS_REGION'])")
        arn = ireland.create_training_job(**request)["TrainingJobArn"]
        job = {"TrainingJobName": request["TrainingJobName"]}
        until(lambda: ireland.describe_training_job(**job)["TrainingJobStatus"] == "Completed")
        busy = api.start("import time; time.sleep(600)")
        shell(api, "rerun", job["TrainingJobName"], "--job-name", "again", "--no-wait", **api.server.environment)
        again = ireland.describe_training_job(TrainingJobName="again")
        assert again["TrainingJobArn"] == arn.rpartition("/")[0] + "/again"
        assert again["SecondaryStatus"] == "Pending"

        def message():
            found = ireland.describe_training_job(TrainingJobName="again")
            return found["SecondaryStatusTransitions"][-1]["StatusMessage"]

        until(lambda: message() == "Waiting for a place among the jobs of this machine (position 1)")
        api.sagemaker.stop_training_job(TrainingJobName=busy)
        until(lambda: ireland.describe_training_job(TrainingJobName="again")["TrainingJobStatus"] == "Completed")
        assert "algo-1 | eu-west-1" in shell(api, "logs", "again")


def test_a_server_that_has_ended_is_not_recommended(tmp_path):
    (tmp_path / "train.py").touch()
    with serving(tmp_path, "--s3", "memory") as api:
        assert api.sagemaker.list_training_jobs()["TrainingJobSummaries"] == []
    text = shell(api, "run", "train.py", "--input", "train=s3://b/x", code=1)
    assert "there are no AWS credentials; run 'aws configure'" in text


def test_an_error_of_another_endpoint_says_nothing_of_the_server(api, in_s3):
    other = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_MAX_ATTEMPTS": "1"}
    text = shell(api, "model", "download", in_s3, code=1, AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", **other)
    assert "127.0.0.1:1 cannot be reached" in text
    assert "scriptmode serve" not in text


def refusal(call, *arguments, **named):
    with pytest.raises(ClientError) as raised:
        call(*arguments, **named)
    return raised.value.response["Error"]["Message"]


REFUSED = {
    "HyperParameters": (
        {"sagemaker_program": "train.py", "sagemaker_submit_directory": "s3://data/none.tar.gz"},
        "HyperParameters.sagemaker_submit_directory: s3://data/none.tar.gz: there is no such object",
    ),
    "OutputDataConfig": (
        {"S3OutputPath": "s3://no-bucket/x"},
        "OutputDataConfig.S3OutputPath: s3://no-bucket/x: there is no bucket 'no-bucket'; create it, or correct the URI",
    ),
    "CheckpointConfig": ({"S3Uri": "s3://no-bucket/x"}, "CheckpointConfig.S3Uri: s3://no-bucket/x: there is no bucket"),
}


@pytest.mark.parametrize("member", REFUSED)
def test_an_answer_names_members_and_the_server(api, in_s3, member):
    value, text = REFUSED[member]
    assert text in refusal(api.sagemaker.create_training_job, **api.request("", **{member: value}))


def test_a_job_without_a_source_fails_for_that(api):
    reason = api.run("", HyperParameters={"sagemaker_program": "train.py"})["FailureReason"]
    assert "there is no source: the hyperparameter sagemaker_submit_directory is missing" in reason


def test_a_name_that_the_server_does_not_have_is_asked_of_the_server(api, tmp_path):
    elsewhere = {**api.server.environment, "SCRIPTMODE_DATA_DIR": str(tmp_path)}
    text = shell(api, "logs", "nothing", code=1, **elsewhere)
    assert f"the service at {api.server.url}: training job" in text


def test_a_job_without_hosts_has_its_reason_instead_of_a_log_and_the_advice_is_a_configuration(api):
    image = {"TrainingImage": "ubuntu:22.04", "TrainingInputMode": "File"}
    ended = api.run("", AlgorithmSpecification=image)
    assert ended["FailureReason"].startswith("ClientError: The image 'ubuntu:22.04' cannot be used")
    name = ended["TrainingJobName"]
    for words in ((), ("--json",), ("--host", "algo-1")):
        text = shell(api, "logs", name, *words)
        assert text.startswith(f"training job {name} is Failed and has no log")
        assert "The image 'ubuntu:22.04' cannot be used" in text
    assert shell(api, "logs", name, "--tail", "0") == ""
    table = ended["FailureReason"].partition("below a line [images]: ")[2]
    found = parse_configuration(parse_toml("x", f"[images]\n{table}".encode()), "x")
    assert found.images == {"ubuntu:22.04": "scriptmode/tensorflow"}
