"""Which images are AWS's: the accounts that the installed SageMaker SDK v2 knows, and the URIs that it looks up."""

import json
import re

import pytest
from contract.matrix import CASES
from references import environment

from scriptmode.aws.image_support import ACCOUNTS, is_aws_image

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]


def test_the_accounts_are_those_that_v2_knows():
    (file,) = environment("sagemaker<3").parent.glob(
        "lib/python*/site-packages/sagemaker/image_uri_config/tensorflow.json"
    )
    training = json.dumps(json.loads(file.read_text())["training"])
    assert set(re.findall(r'"(\d{12})"', training)) == ACCOUNTS


def test_what_v2_looks_up_is_an_image_of_aws(asked):
    _, answers = asked
    images = {
        answers["v2"][case.id]["AlgorithmSpecification"]["TrainingImage"]
        for case in CASES
        if case.id.startswith("TensorFlow: TensorFlow ")
    }
    assert len(images) > 10
    assert [image for image in images if not is_aws_image(image)] == []
