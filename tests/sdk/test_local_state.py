"""A job's state as a value, and as the service describes it."""

import json

import botocore.loaders
import botocore.model
import botocore.validate
import pytest
from fakes.local_jobs import channel, request_for

from scriptmode.platforms.base import ENDED
from scriptmode.platforms.local.store.description import render_describe_response, render_summary
from scriptmode.platforms.local.store.state import MESSAGES, STATUS_OF, starting_state, state_from_json
from scriptmode.request.parse import parse_request

SERVICE = botocore.model.ServiceModel(botocore.loaders.Loader().load_service_model("sagemaker", "service-2"))
DESCRIBED = SERVICE.operation_model("DescribeTrainingJob").output_shape
SUMMARY = SERVICE.operation_model("ListTrainingJobs").output_shape.members["TrainingJobSummaries"].member
ARN = "arn:aws:sagemaker:us-east-1:000000000000:training-job/job"


def lived(*statuses):
    state = starting_state("job", ARN, 1000.0)
    for number, status in enumerate(statuses, 1):
        state = state.with_status(status, 1000.0 + number, reason="AlgorithmError: x" if status == "Failed" else "")
    return state


LIVES = {
    "starting": (),
    "downloading": ("Downloading",),
    "training": ("Downloading", "Training"),
    "uploading": ("Downloading", "Training", "Uploading"),
    "completed": ("Downloading", "Training", "Uploading", "Completed"),
    "failed": ("Downloading", "Failed"),
    "failed at once": ("Failed",),
    "stopping": ("Downloading", "Training", "Stopping"),
    "stopped": ("Downloading", "Training", "Stopping", "Stopped"),
    "too long": ("Downloading", "Training", "Stopping", "MaxRuntimeExceeded"),
    "interrupted": ("Downloading", "Training", "Interrupted"),
    "resumed": ("Downloading", "Training", "Interrupted", "Starting", "Downloading", "Training", "Completed"),
}


def against(shape, value):
    return botocore.validate.ParamValidator().validate(value, shape).generate_report()


@pytest.mark.parametrize("statuses", LIVES.values(), ids=LIVES.keys())
def test_a_description_has_exactly_the_services_shape(statuses):
    request = request_for("job", channels=[channel("train", "file:///data")])
    request["Tags"] = [{"Key": "a", "Value": "b"}]
    state = lived(*statuses)
    description = render_describe_response(parse_request(request), state)
    assert against(DESCRIBED, description) == ""
    assert against(SUMMARY, render_summary(state.summary)) == ""
    assert description["SecondaryStatus"] in DESCRIBED.members["SecondaryStatus"].enum
    assert description["TrainingJobStatus"] in DESCRIBED.members["TrainingJobStatus"].enum
    assert all(moment.tzinfo for key, moment in description.items() if key.endswith("Time"))
    for field in ("HyperParameters", "InputDataConfig", "OutputDataConfig", "ResourceConfig", "RoleArn"):
        assert description[field] == request[field]


def test_every_status_is_one_of_the_services():
    assert set(STATUS_OF) == set(MESSAGES) <= set(DESCRIBED.members["SecondaryStatus"].enum)
    assert set(STATUS_OF.values()) <= set(DESCRIBED.members["TrainingJobStatus"].enum)
    assert set(STATUS_OF.values()) >= ENDED


def test_every_stay_begins_where_the_one_before_ended():
    description = render_describe_response(parse_request(request_for("job")), lived(*LIVES["completed"]))
    stays = description["SecondaryStatusTransitions"]
    assert [stay["Status"] for stay in stays] == ["Starting", *LIVES["completed"]]
    assert all(before["EndTime"] == after["StartTime"] for before, after in zip(stays, stays[1:]))
    assert stays[-1]["EndTime"] == stays[-1]["StartTime"] == description["TrainingEndTime"]


def test_training_time_counts_from_the_download_to_the_end():
    description = render_describe_response(parse_request(request_for("job")), lived(*LIVES["completed"]))
    assert description["TrainingTimeInSeconds"] == description["BillableTimeInSeconds"] == 3
    assert "TrainingTimeInSeconds" not in render_describe_response(
        parse_request(request_for("job")), lived(*LIVES["training"])
    )


def test_training_time_leaves_out_interruptions():
    state = lived(*LIVES["resumed"])
    description = render_describe_response(parse_request(request_for("job")), state)
    assert description["TrainingTimeInSeconds"] == 4
    assert state.seconds_in("Training") == 2


def test_a_status_entered_twice_is_entered_once():
    state = lived("Downloading", "Training", "Stopping")
    assert state.with_status("Stopping", 2000.0) is state


@pytest.mark.parametrize("statuses", LIVES.values(), ids=LIVES.keys())
def test_a_state_comes_back_from_its_file_as_it_was(statuses):
    state = lived(*statuses)
    assert state_from_json(json.loads(json.dumps(state.to_json()))) == state


def test_a_long_reason_keeps_its_first_line_and_its_last_lines():
    text = "AlgorithmError: algo-2, worker: exit code 1\n" + "frame\n" * 1000 + "ValueError: the end, exit code: 1"
    short = render_describe_response(
        parse_request({}), starting_state("job", ARN, 1.0).with_status("Failed", 2.0, reason=text)
    )["FailureReason"]
    assert 1018 < len(short) <= 1024
    assert short.startswith("AlgorithmError: algo-2, worker: exit code 1\n[...]\nframe\n")
    assert short.endswith("frame\nValueError: the end, exit code: 1")
