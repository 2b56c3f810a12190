"""A request becomes a value and the same request again, field by field."""

import json
from dataclasses import replace

import pytest
from contract.matrix import CASES, REFUSED
from contract.test_every_field_of_the_request import REQUESTS, given

from scriptmode.request.fields import FIELDS
from scriptmode.request.parse import parse_description, parse_request
from scriptmode.request.render import render_request
from scriptmode.spec.job_request import ABSENT
from scriptmode.testing import FakeSageMaker

#: What no attribute has: fields that no argument sets.
UNKNOWN = {
    "AlgorithmSpecification.AlgorithmName",
    "StoppingCondition.MaxPendingTimeInSeconds",
    "MlflowConfig",
    "ModelPackageConfig",
}
NAMES = ["large", "groups", "spot", "marketplace"]
SENT = [(client, case.id) for client in ("v2", "ours") for case in (*CASES, *(case for case, _ in REFUSED))]


def text(request):
    """Values of other types are not equal in JSON: true is not 1."""
    return json.dumps(request, sort_keys=True)


def unknown(job):
    """The fields that the attributes of a job do not have, by path."""
    return {".".join(map(str, path)) for path, rendered, _ in job.corrections if rendered is ABSENT}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("client", "case"), SENT)
def test_a_request_that_a_client_sends_is_rendered_again(client, case, asked):
    request = asked[1][client][case]
    if "error" in request:
        assert (client, case) not in [("ours", case.id) for case in CASES]
        return
    job = parse_request(request)
    assert text(render_request(job)) == text(request)
    if client == "ours":
        assert unknown(job) <= UNKNOWN
        assert len(unknown(job)) == len(job.corrections)


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_a_request_of_every_field_is_rendered_again(request_):
    job = parse_request(request_)
    assert text(render_request(job)) == text(request_)
    assert unknown(job) == {path for path in UNKNOWN if path in set(given(request_))}


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_a_description_has_the_job_that_was_requested(request_):
    fake = FakeSageMaker("eu-west-1")
    fake.client("sagemaker").create_training_job(**request_)
    name = request_["TrainingJobName"]
    described = parse_description(fake.client("sagemaker").describe_training_job(TrainingJobName=name))
    sent = parse_request(request_)
    # Neither the tags nor the chaining of sessions is described.
    features = replace(sent.features, session_tag_chaining=None)
    assert render_request(described.job) == render_request(replace(sent, tags=(), features=features, corrections=()))
    assert (described.name, described.status, described.has_ended) == (sent.name, "InProgress", False)
    assert f"{described.status}" == "InProgress"


def without(request, path):
    *parents, last = path.split(".")
    for key in parents:
        request = request[key]
    del request[last]


OPTIONAL = [row.path for row in FIELDS if row.path != "TrainingJobName"]


@pytest.mark.parametrize("path", OPTIONAL)
def test_a_field_that_is_left_out_stays_out(path):
    request = next(json.loads(text(each)) for each in REQUESTS if path in set(given(each)))
    without(request, path)
    assert text(render_request(parse_request(request))) == text(request)


ODD = {
    "empty": {"Environment": {}, "VpcConfig": {}, "InputDataConfig": [], "Tags": []},
    "defaults that are given": {
        "EnableManagedSpotTraining": False,
        "EnableNetworkIsolation": False,
        "OutputDataConfig": {"S3OutputPath": "s3://out/", "CompressionType": "GZIP"},
    },
    "another kind of data": {
        "InputDataConfig": [{"ChannelName": "a", "DataSource": {"DatasetSource": {"DatasetArn": "arn"}}}]
    },
    "a member that is not known yet": {
        "InputDataConfig": [
            {
                "ChannelName": "a",
                "DataSource": {"S3DataSource": {"S3Uri": "s3://b", "Later": 1}, "Other": {}},
                "New": [],
            }
        ],
        "ResourceConfig": {"InstanceGroups": [{"InstanceGroupName": "g", "New": {"a": 1}}]},
        "Later": {"x": [1, {"y": 2}]},
    },
}


@pytest.mark.parametrize("fields", ODD.values(), ids=ODD)
def test_what_estimators_do_not_render_is_kept(fields):
    request = {"TrainingJobName": "job-1", **fields}
    assert text(render_request(parse_request(request))) == text(request)


def test_a_changed_attribute_is_rendered_and_nothing_else_changes():
    request = {"TrainingJobName": "job-1", "StoppingCondition": {"MaxPendingTimeInSeconds": 9}, "VpcConfig": {}}
    job = parse_request(request)
    changed = replace(job, name="job-2", limits=replace(job.limits, max_run=5))
    condition = {"MaxPendingTimeInSeconds": 9, "MaxRuntimeInSeconds": 5}
    assert render_request(changed) == {**request, "TrainingJobName": "job-2", "StoppingCondition": condition}


def test_a_status_that_the_service_adds_later_is_kept_as_text():
    described = parse_description({"TrainingJobName": "job-1", "TrainingJobStatus": "Paused"})
    assert (f"{described.status}", described.status.value, described.has_ended) == ("Paused", "Paused", False)
    assert parse_description({**described.response, "TrainingJobStatus": "Stopped"}).has_ended
