"""Whatever the SageMaker SDK v2 sends for a call, scriptmode sends too, but for the differences that are explained."""

import json
import re

import pytest
from contract.explained import assert_all_shown, assert_explained
from fakes.output_shapes import against, operation
from sagemaker_sdk.differences import DIFFERENCES, promised
from sagemaker_sdk.matrix import CASES

pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]

#: The end of a job's name that was made of the time.
TIME = re.compile(r"\d{4}(-\d{2}){5}-\d{3}")
#: v2's arguments that no case gives: what they do is not in a request, or not to be had without a network.
NOT_COMPARED = {
    "kwargs": "v2's way of taking older names, which are compared",
    "sagemaker_session": "given in every case",
    "git_config": "v2 clones from a server; what it clones becomes a source_dir",
    "compiler_config": "AWS makes no images for it any more, and it is refused",
}


def without_times(request):
    return json.loads(TIME.sub("(time)", json.dumps(request)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_request_is_v2s_but_for_what_is_explained(case, sent, monkeypatch):
    folder, answers = sent
    v2, ours = answers["v2"][case.id], answers["ours"][case.id]
    assert "error" not in v2, f"v2 does not send this: {v2['error']}"
    assert "error" not in ours, f"scriptmode does not render this: {ours['error']}"
    monkeypatch.chdir(folder)
    promise, _ = promised(case, v2)
    assert_explained(without_times(promise), without_times(ours))
    assert against(operation("CreateTrainingJob").input_shape, ours) == ""


def test_every_explained_difference_is_one_that_a_case_shows(sent, monkeypatch):
    folder, answers = sent
    monkeypatch.chdir(folder)
    assert_all_shown(DIFFERENCES, (promised(case, answers["v2"][case.id])[1] for case in CASES))


def test_every_argument_of_v2_is_given_in_some_case(sent):
    _, answers = sent
    given = {name for case in CASES for name in case.constructor()}
    assert set(answers["parameters"]) - given == set(NOT_COMPARED)


def test_ids_of_cases_differ():
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))
