"""What the command prints: JSON that any reader takes, spans of time, and a job in short lines."""

import json
from datetime import datetime, timezone
from pathlib import Path

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import Failure
from scriptmode.cli.description_text import render_description
from scriptmode.cli.output import to_json_value
from scriptmode.cli.values import parse_number_or_text
from scriptmode.request.parse import parse_description
from scriptmode.testing import Life

MOMENT = datetime(2026, 1, 31, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (MOMENT, '"2026-01-31T12:00:00+00:00"'),
        (float("nan"), '"NaN"'),
        (float("-inf"), '"-Infinity"'),
        ({"a": (1, 2.5, None, True)}, '{"a": [1, 2.5, null, true]}'),
        ({1: Path("/x")}, '{"1": "/x"}'),
        ("\udce9", '"\\udce9"'),
    ],
    ids=["a time", "no number", "infinity", "a tuple", "a path", "a broken letter"],
)
def test_every_value_is_converted_to_json(value, said):
    assert json.dumps(to_json_value(value), allow_nan=False) == said


@pytest.mark.parametrize(
    ("typed", "given"),
    [("5", 5), ("-0.5", -0.5), ("1e-3", "1e-3"), ("007", "007"), ("true", "true"), ("[1]", "[1]"), ("", ""), ("nan", "nan"), ("1_000", "1_000")],
)  # fmt: skip
def test_a_word_is_a_number_only_if_python_prints_it_the_same(typed, given):
    found = parse_number_or_text(typed)
    assert (found, type(found)) == (given, type(given))


DESCRIPTION = {
    "TrainingJobName": "mnist-1",
    "TrainingJobStatus": "Failed",
    "SecondaryStatus": "Failed",
    "CreationTime": MOMENT,
    "TrainingTimeInSeconds": 61,
    "FailureReason": "AlgorithmError: algo-1\nValueError, exit code: 1",
    "HyperParameters": {
        "sagemaker_program": '"train.py"',
        "sagemaker_submit_directory": '"s3://b/sourcedir.tar.gz"',
        "sagemaker_parameter_server_enabled": "true",
        "text": '"a b"',
        "rate": "0.1",
    },
    "AlgorithmSpecification": {"TrainingImage": "img:1"},
    "ResourceConfig": {
        "InstanceGroups": [
            {"InstanceGroupName": "lead", "InstanceType": "ml.m5.large", "InstanceCount": 1},
            {"InstanceGroupName": "memory", "InstanceType": "ml.r5.large", "InstanceCount": 2},
        ]
    },
    "InputDataConfig": [
        {"ChannelName": "a", "DataSource": {"S3DataSource": {"S3Uri": "s3://b/a"}}, "InputMode": "Pipe"},
        {
            "ChannelName": "b",
            "DataSource": {
                "FileSystemDataSource": {"FileSystemType": "EFS", "FileSystemId": "fs-1", "DirectoryPath": "/x"}
            },
        },
    ],
    "Environment": {"TOKEN": "hidden"},
    "CheckpointConfig": {"S3Uri": "s3://out/c"},
    "OutputDataConfig": {"S3OutputPath": "s3://out"},
    "ModelArtifacts": {"S3ModelArtifacts": ""},
}
TEXT = """
job              mnist-1
status           Failed, 1 min 1 s of training
created          2026-01-31 12:00:00Z
failed           AlgorithmError: algo-1
                 ValueError, exit code: 1
hosts            lead: 1 x ml.m5.large, memory: 2 x ml.r5.large, parameter servers
script           train.py from s3://b/sourcedir.tar.gz
image            img:1
inputs           a = s3://b/a (Pipe)
                 b = EFS fs-1:/x
hyperparameters  text = a b
                 rate = 0.1
environment      TOKEN
checkpoints      s3://out/c
output           s3://out
"""


def rendered(description):
    return render_description(parse_description(description))


def test_the_summary_of_a_job_omits_the_values_of_environment_variables():
    assert rendered(DESCRIPTION) == TEXT.strip()


def test_the_summary_of_a_failed_job_has_the_error_the_hint_and_the_log():
    trace = 'Traceback (most recent call last):\n  File "train.py", line 1, in <module>\n    f()\nKeyError: 1\n'
    failure = Failure("algo-2, script: exit code 1", host="algo-2", hint="do this", traceback=trace)
    lines = render_description(parse_description(DESCRIPTION), failure=failure).splitlines()
    begin = lines.index("failed           algo-2, script: exit code 1")
    assert [line[17:] for line in lines[begin + 1 : begin + 6]] == [
        '  File "train.py", line 1, in <module>', "    f()", "KeyError: 1", "do this",
        "scriptmode logs mnist-1 --host algo-2",
    ]  # fmt: skip
    assert "words of another launcher" in render_description(
        parse_description(DESCRIPTION), failure=Failure("it ended", traceback="words of another launcher")
    )


def test_the_summary_masks_secrets_and_escapes_control_characters():
    given = {
        "password": '"hunter2222"', "api": '{"rate": 1, "token": "hunter2222"}', "pin_password": "1234",
        "title": r'"a\u001b[2Jb\nforged = 1"', "max_tokens": "5", "store": '"redis://me:hunter@host/0"',
    }  # fmt: skip
    said = rendered({**DESCRIPTION, "HyperParameters": given, "FailureReason": "a\x1b]0;x\x07b"})
    assert "hunter" not in said
    assert "1234" not in said
    assert {line.strip() for line in said.splitlines()} >= {
        "hyperparameters  password = ******",
        'api = {"rate": 1, "token": "******"}',
        "pin_password = ******",
        r"title = a\u001b[2Jb\nforged = 1",
        "max_tokens = 5",
        "store = redis://******@host/0",
        r"failed           a\u001b]0;x\u0007b",
    }


def test_the_summary_has_no_line_for_an_empty_message():
    _, job = started(Life.completed())
    description = {**job.describe(), "SecondaryStatusTransitions": [{"Status": "Starting", "StatusMessage": ""}]}
    assert "message" not in rendered(description)
    description["SecondaryStatusTransitions"] = [{"Status": "Starting", "StatusMessage": "Launching"}]
    assert "\nmessage  Launching\n" in rendered(description)
    description.update(TrainingJobStatus="Stopped", SecondaryStatus="Stopped")
    description["SecondaryStatusTransitions"] = [{"Status": "Stopped", "StatusMessage": "Training job stopped"}]
    assert "message" not in rendered(description)
    description["SecondaryStatusTransitions"] = [{"Status": "Stopped", "StatusMessage": "cancelled by the user ada"}]
    assert "\nmessage  cancelled by the user ada\n" in rendered(description)


def test_the_summary_of_a_minimal_description_is_complete():
    _, job = started(Life.completed())
    assert rendered(job.describe()).startswith("job      job-1\nstatus   InProgress (Starting)\n")
