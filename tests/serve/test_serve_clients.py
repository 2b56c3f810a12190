"""Clients that others wrote train through `scriptmode serve` by their environment alone."""

import json
import sys
from pathlib import Path

import pytest
from references import environment

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def test_sagemaker_v2_trains_follows_attaches_and_fails(served, tmp_path):
    out = served.execute(environment("sagemaker<3") / "python", HERE / "v2_client.py", tmp_path)
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
    served.execute(aws, "sagemaker", "create-training-job", "--cli-input-json", f"file://{tmp_path}/job.json")
    served.wait(request["TrainingJobName"])
    served.execute(aws, "sagemaker", "wait", "training-job-completed-or-stopped", *name)
    query = ("--query", "TrainingJobStatus", "--output", "text")
    assert served.execute(aws, "sagemaker", "describe-training-job", *name, *query) == "Completed\n"
    group = ("--log-group-name", "/aws/sagemaker/TrainingJobs", "--filter-pattern", '"from aws"')
    found = json.loads(served.execute(aws, "logs", "filter-log-events", *group, "--output", "json"))
    assert [event["message"] for event in found["events"]] == ["from aws"]


def test_scriptmode_itself_trains_by_its_path_to_sagemaker(served, tmp_path):
    out = served.execute(sys.executable, HERE / "scriptmode_client.py", tmp_path)
    found = [line.partition(" ")[2] for line in out.splitlines() if line.startswith("FOUND ")]
    assert found == ["Completed ml.m5.large", "7"]
    assert out.count("algo-1 | own loss=0.5") == 2
