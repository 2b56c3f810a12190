"""An estimator that is attached to a job, by whichever program it was created, would start that job again: every field is kept."""

import re

import pytest
from contract.differences import differing
from contract.matrix import CASES, REFUSED

from scriptmode import Estimator, SpecError
from scriptmode.testing import FakeSageMaker
from scriptmode_runtime import contract

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]

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


@pytest.mark.parametrize(("client", "case"), JOBS)
def test_a_job_can_be_started_again_as_it_was(client, case, asked):
    _, answers = asked
    request = answers[client][case]
    fake = FakeSageMaker("us-east-1")
    fake.client("sagemaker").create_training_job(**request)
    made = Estimator.attach(request["TrainingJobName"], fake)
    again = made.request(made.latest_training_job.inputs(), job_name=request["TrainingJobName"])
    found = differing(decoded(without_empty(request)), decoded(again))
    lost = [path for path in found if not any(re.fullmatch(f"({known})(\\..*)?", path) for known in NOT_KEPT)]
    assert not lost, {path: found[path] for path in lost}


#: Of what v2 sends and the constructor refuses: what v2 left out of the request, or the service does not accept.
NOT_IN_A_JOB = (
    "checkpoints with no place", "registry's credentials with no mode", "argument misspelt", "distribution misspelt",
    "option misspelt", "reserved hyperparameter", "AWS's own library", "AWS's compiler", "long hyperparameter",
    "many hyperparameters", "mode misspelt",
)  # fmt: skip
ACCEPTED = [(case.id, words) for case, words in REFUSED if not case.id.endswith(NOT_IN_A_JOB)]


@pytest.mark.parametrize(("case", "words"), ACCEPTED, ids=[case for case, _ in ACCEPTED])
def test_a_job_that_only_v2_starts_is_attached_and_refused_by_the_next_fit(case, words, asked):
    _, answers = asked
    request = answers["v2"][case]
    fake = FakeSageMaker("us-east-1")
    fake.client("sagemaker").create_training_job(**request)
    made = Estimator.attach(request["TrainingJobName"], fake)
    assert made.latest_training_job.name == request["TrainingJobName"]
    assert made.role == request["RoleArn"]
    assert isinstance(made.hyperparameters(), dict)
    assert repr(made)
    with pytest.raises(SpecError) as refused:
        made.request(made.latest_training_job.inputs())
    assert words in str(refused.value)
