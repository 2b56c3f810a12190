"""Whatever the SageMaker SDK v2 sends for a call, scriptmode sends too, but for the differences that are explained."""

import json
import re

import pytest
from contract.differences import DIFFERENCES, differing, promised
from contract.matrix import CASES, REFUSED

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

#: The end of a job's name that was made of the time.
TIME = re.compile(r"\d{4}(-\d{2}){5}-\d{3}")
#: v2's arguments that no case gives: what they do is not in a request, or not to be had without a network.
NOT_COMPARED = {
    "kwargs": "v2's way of taking older names, which are compared",
    "sagemaker_session": "given in every case",
    "git_config": "v2 clones from a server; what it clones becomes a source_dir",
}


def without_times(request):
    return json.loads(TIME.sub("(time)", json.dumps(request)))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_request_is_v2s_but_for_what_is_explained(case, asked, monkeypatch):
    folder, answers = asked
    v2, ours = answers["v2"][case.id], answers["ours"][case.id]
    assert "error" not in v2, f"v2 does not send this: {v2['error']}"
    assert "error" not in ours, f"scriptmode does not render this: {ours['error']}"
    monkeypatch.chdir(folder)
    promise, _ = promised(case, v2)
    found = differing(without_times(promise), without_times(ours))
    assert not found, "\n".join(["not explained:", *(f"{path}: {values}" for path, values in found.items())])


@pytest.mark.parametrize(("case", "words"), REFUSED, ids=[case.id for case, _ in REFUSED])
def test_what_v2_sends_in_vain_is_refused_before_it_is_sent(case, words, asked):
    _, answers = asked
    v2, ours = answers["v2"][case.id], answers["ours"][case.id]
    assert "error" not in v2, f"v2 does not send this: {v2['error']}"
    assert words in ours.get("error", "it is rendered")


def test_every_explained_difference_is_one_that_a_case_shows(asked, monkeypatch):
    folder, answers = asked
    monkeypatch.chdir(folder)
    shown = set().union(*(promised(case, answers["v2"][case.id])[1] for case in CASES))
    assert {difference.id for difference in DIFFERENCES} == shown


def test_every_argument_of_v2_is_given_in_some_case(asked):
    _, answers = asked
    given = {name for case in (*CASES, *(case for case, _ in REFUSED)) for name in case.constructor()}
    assert set(answers["parameters"]) - given == set(NOT_COMPARED)


def test_ids_of_cases_differ():
    ids = [case.id for case in (*CASES, *(case for case, _ in REFUSED))]
    assert len(ids) == len(set(ids))
