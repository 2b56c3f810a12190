"""The SageMaker Python SDK v3 trains through `scriptmode serve`."""

import json
from pathlib import Path

import pytest
from references import environment

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(1200)]


def test_model_trainer_trains_a_script_and_follows_it(served, tmp_path):
    client = Path(__file__).with_name("v3_client.py")
    out = served.execute(environment("sagemaker>=3") / "python", client, tmp_path)
    assert json.loads(out.partition("FOUND ")[2]) == ["Completed", ["weights"]]
    assert out.count("words hello epochs 3") == 1
