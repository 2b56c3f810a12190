"""The guide's list of what the SageMaker SDK v2 has and scriptmode has not is what its errors say."""

import inspect
import json
import subprocess

import pytest
from docs.documents import DOCS
from references import environment

from scriptmode import SpecError, TensorFlow, TrainingJob
from scriptmode.spec.arguments import GONE, MISSING_METHODS

GUIDE = (DOCS / "guides" / "coming_from_sagemaker_v2.md").read_text()
#: The second column of the table by the names in the first.
ROWS = dict(
    [cell.strip().replace("`", "") for cell in line.split("|")[1:3]]
    for line in GUIDE.partition("## Not included")[2].partition("## Errors")[0].splitlines()
    if line.startswith("| ") and "sagemaker v2" not in line
)


def test_each_missing_method_is_in_the_guide_with_the_advice_of_its_error():
    listed = {name: advice for names, advice in ROWS.items() for name in names.split(", ")}
    assert {name: listed.get(name) for name in MISSING_METHODS} == MISSING_METHODS


def test_a_missing_argument_has_the_advice_of_its_error():
    assert ROWS["compiler_config"] == GONE["compiler_config"]


@pytest.mark.parametrize("kind", ["smdistributed", "torch_distributed", "pytorchddp", "pytorchxla"])
def test_a_distribution_of_aws_has_the_advice_of_its_error(kind):
    with pytest.raises(SpecError) as caught:
        TensorFlow(entry_point="train.py", distribution={kind: {}}, instance_type="ml.m5.large")
    (advice,) = [advice for names, advice in ROWS.items() if kind in names]
    assert caught.value.advice.replace("'", '"') == advice.replace("'", '"')


@pytest.mark.slow
def test_each_public_name_of_v2_s_estimators_and_jobs_is_there_or_in_the_list():
    program = (
        "import json, logging; logging.disable(50)\n"
        "from sagemaker.estimator import _TrainingJob\n"
        "from sagemaker.tensorflow import TensorFlow\n"
        "print(json.dumps([[n for n in dir(c) if not n.startswith('_')] for c in (TensorFlow, _TrainingJob)]))"
    )
    printed = subprocess.run(
        [environment("sagemaker<3") / "python", "-c", program], check=True, capture_output=True, text=True
    ).stdout
    estimator, job = json.loads(printed.splitlines()[-1])
    ours = {*dir(TensorFlow), *inspect.signature(TensorFlow).parameters}
    missing = [name for name in estimator if name.islower() and name not in MISSING_METHODS and name not in ours]
    assert missing == []
    # Internal functions of v2, without an underscore.
    internal = {"get_train_args", "start_new", "update"}
    assert [name for name in job if name not in internal and name not in {"name", *dir(TrainingJob)}] == []
