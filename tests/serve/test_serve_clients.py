"""Clients that others wrote train through `scriptmode serve` by their environment alone."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from references import environment
from serve.conftest import serving

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server whose S3 is on disk, as users start it."""
    with serving(tmp_path_factory.mktemp("clients")) as found:
        yield found


def run(served, *command, **changes):
    found = {name: value for name, value in os.environ.items() if not name.startswith("AWS_") or "BUNDLE" in name}
    done = subprocess.run(
        list(map(str, command)),
        env={**found, **served.server.environment, **changes},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_sagemaker_v2_trains_follows_attaches_and_fails(served, tmp_path):
    out = run(served, environment("sagemaker<3") / "python", HERE / "v2_client.py", tmp_path)
    found = json.loads(out.partition("FOUND ")[2])
    assert found["image"].startswith("763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14")
    model = found["model"][0]
    assert found["attached"] == ["1", "ml.p3.2xlarge", model]
    assert found["model"] == [model, 1]
    assert "ClientError: The image 'example.com/unknown:1' cannot be used" in found["failure"]
    # Each host's lines once, while the job was followed.
    assert out.count("cluster ['master', 'ps', 'worker']") == 2
    assert out.count("words hello") == 2


def test_the_aws_command_trains_and_waits(served, tmp_path):
    aws = environment("awscli") / "aws"
    request = {**served.request("print('from aws')"), "TrainingJobName": "by-the-aws-command"}
    (tmp_path / "job.json").write_text(json.dumps(request))
    name = ("--training-job-name", request["TrainingJobName"])
    run(served, aws, "sagemaker", "create-training-job", "--cli-input-json", f"file://{tmp_path}/job.json")
    served.wait(request["TrainingJobName"])
    run(served, aws, "sagemaker", "wait", "training-job-completed-or-stopped", *name)
    query = ("--query", "TrainingJobStatus", "--output", "text")
    assert run(served, aws, "sagemaker", "describe-training-job", *name, *query) == "Completed\n"
    group = ("--log-group-name", "/aws/sagemaker/TrainingJobs", "--filter-pattern", '"from aws"')
    found = json.loads(run(served, aws, "logs", "filter-log-events", *group, "--output", "json"))
    assert [event["message"] for event in found["events"]] == ["from aws"]


def test_scriptmode_itself_trains_by_its_path_to_sagemaker(served, tmp_path):
    out = run(served, sys.executable, HERE / "scriptmode_client.py", tmp_path)
    found = [line.partition(" ")[2] for line in out.splitlines() if line.startswith("FOUND ")]
    assert found == ["Completed ml.m5.large", "7"]
    assert out.count("algo-1 | own loss=0.5") == 2
