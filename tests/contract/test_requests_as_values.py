"""A request becomes a value and the same request again, field by field; a hyperparameter is what the runtime reads back."""

import json
import math
from dataclasses import replace

import hypothesis
import pytest
from contract.test_every_field_of_the_request import NAMES, REQUESTS, given
from fakes.local_jobs import put
from hypothesis import strategies as st

from scriptmode._core.request.fields import FIELDS
from scriptmode._core.request.parse import parse_description, parse_request
from scriptmode._core.request.render import render_request
from scriptmode._core.spec.hyperparameters import check_texts, encode_hyperparameters
from scriptmode._core.spec.job_request import ABSENT
from scriptmode.errors import SpecError
from scriptmode.testing import FakeSageMaker
from scriptmode_runtime import contract

#: What no attribute has: fields that no argument sets.
UNKNOWN = {
    "AlgorithmSpecification.AlgorithmName", "StoppingCondition.MaxPendingTimeInSeconds", "MlflowConfig",
    "ModelPackageConfig", "ResourceConfig.InstancePreferences", "ServerlessJobConfig", "InputDataConfig.0.DataSource",
}  # fmt: skip


def text(request):
    """Values of other types are not equal in JSON: true is not 1."""
    return json.dumps(request, sort_keys=True)


def unknown(job):
    """The fields that the attributes of a job do not have, by path."""
    return {".".join(map(str, path)) for path, rendered, _ in job.corrections if rendered is ABSENT}


@pytest.mark.parametrize("request_", REQUESTS, ids=NAMES)
def test_a_request_of_every_field_is_rendered_and_described_again(request_):
    sent = parse_request(request_)
    assert text(render_request(sent)) == text(request_)
    paths = set(given(request_)) | {"InputDataConfig.0.DataSource"} & unknown(sent)
    assert unknown(sent) == {path for path in UNKNOWN if path in paths}
    sagemaker = FakeSageMaker("eu-west-1").client("sagemaker")
    sagemaker.create_training_job(**request_)
    described = parse_description(sagemaker.describe_training_job(TrainingJobName=sent.name))
    # Neither the tags nor the chaining of sessions is described.
    plain = {name: value for name, value in sent.plain_fields.items() if name != "enable_session_tag_chaining"}
    assert render_request(described.job) == render_request(replace(sent, tags=(), plain_fields=plain, corrections=()))
    assert (described.name, described.status, described.has_ended) == (sent.name, "InProgress", False)
    assert f"{described.status}" == "InProgress"


def test_a_field_that_is_left_out_stays_out():
    for path in (row.path for row in FIELDS if row.path != "TrainingJobName"):
        request = next(json.loads(text(each)) for each in REQUESTS if path in set(given(each)))
        put(request, path, ABSENT)
        assert text(render_request(parse_request(request))) == text(request)


DATASET = {"ChannelName": "a", "DataSource": {"DatasetSource": {"DatasetArn": "arn"}}}
LATER = {"S3DataSource": {"S3Uri": "s3://b", "Later": 1}, "Other": {}}
ODD = {
    "empty": {"Environment": {}, "VpcConfig": {}, "InputDataConfig": [], "Tags": []},
    "defaults that are given": {
        "EnableManagedSpotTraining": False,
        "EnableNetworkIsolation": False,
        "OutputDataConfig": {"S3OutputPath": "s3://out/", "CompressionType": "GZIP"},
    },
    "another kind of data": {"InputDataConfig": [DATASET]},
    "a member that is not known yet": {
        "InputDataConfig": [{"ChannelName": "a", "DataSource": LATER, "New": []}],
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


NO_NUL = st.text(st.characters(blacklist_characters="\0"))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | NO_NUL,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.text(min_size=1, max_size=20).filter(lambda name: not name.startswith(("sagemaker_", "-")))


@pytest.mark.slow
@hypothesis.given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_every_value_survives_the_wire(values):
    encoded = encode_hyperparameters(values, script_mode=True)
    assert {key: contract.decode(text) for key, text in encoded.items()} == values


@hypothesis.given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_keep_every_bit_and_text_that_is_not_json_stands_for_itself(value):
    decoded = contract.decode(contract.encode(value))
    assert (decoded, math.copysign(1, decoded)) == (value, math.copysign(1, value))
    assert contract.decode("plain words") == "plain words"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("a\0b", "a NUL character"),
        ({"a": "\0"}, "a NUL character"),
        ("a\ud800", r"a surrogate character \(half of a pair\) at position 2"),
    ],
    ids=["NUL", "NUL in a dict", "surrogate"],
)
def test_text_that_no_program_can_be_given_is_refused(value, problem):
    with pytest.raises(SpecError, match=f"'name' has {problem}"):
        check_texts(encode_hyperparameters({"name": value}, script_mode=True))
    check_texts(encode_hyperparameters({"name": ["\0"], "bytes": "a\udcff"}, script_mode=True))


def test_a_value_keeps_nothing_of_the_dict_it_was_parsed_from():
    request = json.loads(text(next(each for each in REQUESTS if "InstancePlacementConfig" in each["ResourceConfig"])))
    job, before = parse_request(request), text(request)
    request["ResourceConfig"]["InstancePlacementConfig"]["EnableMultipleJobs"] = "changed"
    assert text(render_request(job)) == before
