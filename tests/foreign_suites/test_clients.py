"""The suites of clients: what the guide promises of them, and what they find wrong."""

import sys
from pathlib import Path

import pytest
from tests.foreign_suites.clients_suite import CLIENTS, Client, Start

GUIDE = Path(__file__).parents[2] / "sdk" / "docs" / "guides" / "serve.md"
#: Runs the request, and tells neither a model nor why the job failed.
TELLS_NOTHING = """
import json, sys, time
import boto3
client, request = boto3.client("sagemaker"), json.load(open(sys.argv[1]))
client.create_training_job(**request)
name = {"TrainingJobName": request["TrainingJobName"]}
while client.describe_training_job(**name)["TrainingJobStatus"] == "InProgress":
    time.sleep(0.2)
print('OUTCOME {"failure": "it ended", "log": "step 1000 loss=0.0"}')
"""


@pytest.mark.parametrize("name", sorted(set(CLIENTS) - {"aws-cli"}))
def test_the_guide_lists_each_client_with_its_version(name):
    rows = [line for line in GUIDE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert any(row.startswith(f"| {CLIENTS[name].title} {CLIENTS[name].VERSION}, ") for row in rows)


@pytest.mark.slow
def test_a_client_that_tells_neither_model_nor_reason_fails(tmp_path):
    (tmp_path / "program.py").write_text(TELLS_NOTHING)
    client = Client("", "1", str(tmp_path / "program.py"), ("train", "fail"), lambda: Start(sys.executable))
    (tmp_path / "run").mkdir()
    found = client.run(tmp_path / "run")
    assert set(found) == {"train", "fail"}
    assert all("it ended" in failure for failure in found.values())
