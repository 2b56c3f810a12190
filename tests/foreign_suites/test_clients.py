"""The suites of clients: what the guide promises of them, and what they find wrong."""

import sys
from pathlib import Path

import pytest
from tests.foreign_suites import __main__ as command
from tests.foreign_suites import clients_suite
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


@pytest.mark.slow
def test_a_client_that_does_not_end_fails_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(clients_suite, "SECONDS", 2)
    (tmp_path / "program.py").write_text("import time; print('waiting', flush=True); time.sleep(60)")
    client = Client("", "1", str(tmp_path / "program.py"), ("train",), lambda: Start(sys.executable))
    (tmp_path / "run").mkdir()
    assert client.run(tmp_path / "run") == {"train": "no outcome; waiting\n"}


@pytest.mark.slow
def test_a_client_that_cannot_be_installed_has_a_row_with_the_reason(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(clients_suite, "AWS", str(tmp_path / "aws"))
    assert command.main(["step-functions", "aws-cli"]) == 1
    rows = capsys.readouterr().out.splitlines()
    assert any(row.startswith("step-functions  2.3.0 ") and "not fetched: stepfunctions 2.3.0" in row for row in rows)
    assert any(row.startswith("aws-cli ") and row.endswith("which is version 2, is not installed") for row in rows)
    assert rows[0] == "no suite ran"
