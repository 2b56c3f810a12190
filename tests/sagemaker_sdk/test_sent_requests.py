"""What v2 and scriptmode send is read again in whole, and an estimator attached to that job would start it again."""

import re

import pytest
from contract.explained import differing
from contract.test_requests_as_values import UNKNOWN, text, unknown
from sagemaker_sdk.matrix import CASES, REFUSED

from scriptmode import Estimator
from scriptmode.core.request.parse import parse_request
from scriptmode.core.request.render import render_request
from scriptmode.testing import FakeSageMaker
from scriptmode_runtime import contract

pytestmark = [pytest.mark.timeout(1200), pytest.mark.slow]

#: Fields that are not as they were, and why.
NOT_KEPT = {
    r"SessionChainingConfig": "DescribeTrainingJob does not tell it",
    r"ExperimentConfig": "fit's to give, as the inputs are",
    r"OutputDataConfig\.S3OutputPath": "v2 keeps a slash at the end",
    r"InputDataConfig\[\d\]\.InputMode": "the code channel is in File mode whatever the job's mode is",
    r"HyperParameters\.sagemaker_submit_directory": "v2 does not find an archive of another name under isolation",
    r"HyperParameters\.sagemaker_(mpi|parameter_server|multi_worker)_.*": "a distribution that is switched off",
}


def decoded(request):
    """A request with the values of its hyperparameters: v2 sends text as it is where a script has no folder."""
    values = {key: contract.decode(text) for key, text in request.get("HyperParameters", {}).items()}
    return {**request, "HyperParameters": values}


JOBS = [(client, case.id) for client in ("v2", "ours") for case in CASES]


def without_empty(value):
    if isinstance(value, dict):
        return {key: without_empty(each) for key, each in value.items() if each not in ([], {})}
    return [without_empty(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("client", "case"), [*JOBS, *(("v2", case.id) for case, _ in REFUSED)])
def test_a_request_that_a_client_sends_is_rendered_again(client, case, sent):
    _, answers = sent
    request = answers[client][case]
    job = parse_request(request)
    assert text(render_request(job)) == text(request)
    if client == "ours":
        assert unknown(job) <= UNKNOWN
        assert len(unknown(job)) == len(job.corrections)


@pytest.mark.parametrize(("client", "case"), JOBS)
def test_a_job_can_be_started_again_as_it_was(client, case, sent):
    _, answers = sent
    request = dict(answers[client][case])
    if "Tags" in request:
        # As ListTags returns them.
        request["Tags"] = sorted(request["Tags"], key=lambda tag: tag["Key"])
    fake = FakeSageMaker("us-east-1")
    fake.client("sagemaker").create_training_job(**request)
    made = Estimator.attach(request["TrainingJobName"], fake)
    again = made.request(made.latest_training_job.inputs(), job_name=request["TrainingJobName"])
    found = differing(decoded(without_empty(request)), decoded(again))
    lost = [path for path in found if not any(re.fullmatch(f"({known})(\\..*)?", path) for known in NOT_KEPT)]
    assert not lost, {path: found[path] for path in lost}
