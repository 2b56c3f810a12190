"""The SageMaker Python SDK, v2 and v3, trains through `scriptmode serve`, by its environment alone."""

import json
from pathlib import Path

import pytest
from references import SAGEMAKER_V3, environment

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent


def test_v2_trains_follows_attaches_and_fails(served, v2, tmp_path):
    out = served.execute(v2.python, HERE / "v2_client.py", tmp_path)
    found = json.loads(out.partition("FOUND ")[2])
    assert found["image"].startswith("763104351884.dkr.ecr.us-east-1.amazonaws.com/tensorflow-training:2.14")
    model = found["model"][0]
    assert found["attached"] == ["1", "ml.p3.2xlarge", model]
    assert found["model"] == [model, 1]
    assert "ClientError: The image 'example.com/unknown:1' cannot be used" in found["failure"][0]
    assert found["failure"][1:] == ["Failed", ["Completed", "Stopped"]]
    assert found["metrics"][0] == ["loss", 0.25]
    # Each host's lines once, while the job was followed.
    assert out.count("cluster ['master', 'ps', 'worker']") == 2
    assert out.count("words hello") == 2


def test_v2_tunes_analyzes_attaches_and_stops(served, v2, tmp_path):
    out = served.execute(v2.python, HERE / "v2_tuner.py", tmp_path)
    found = json.loads(out.partition("FOUND ")[2])
    common = {"status": "Completed", "is the best": True, "attached": True, "the best one's lr": True, "rows": 2}
    assert found["one"] == found["hyperband"] == common
    assert found["stopped"] == "Stopped"


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_model_trainer_of_v3_trains_a_script_and_follows_it(served, tmp_path):
    out = served.execute(environment(SAGEMAKER_V3) / "python", HERE / "v3_client.py", tmp_path)
    assert json.loads(out.partition("FOUND ")[2]) == ["Completed", ["weights"]]
    assert out.count("words hello epochs 3") == 1
