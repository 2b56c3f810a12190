"""Apache Airflow trains through `scriptmode serve`."""

import json
from pathlib import Path

import pytest
from references import environment

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.timeout(1200)]


def test_the_operator_trains_and_follows_the_log_and_the_sensor_sees_the_end(served, tmp_path):
    request = {**served.request("print('from airflow')"), "TrainingJobName": "by-airflow"}
    (tmp_path / "job.json").write_text(json.dumps(request))
    python = environment("apache-airflow-providers-amazon") / "python"
    client = Path(__file__).with_name("airflow_client.py")
    out = served.execute(python, client, tmp_path / "job.json", AIRFLOW_HOME=str(tmp_path / "airflow"))
    assert json.loads(out.partition("FOUND ")[2].splitlines()[0]) == ["Completed", "ml.m5.xlarge", True]
    assert out.count("] from airflow ") == 1
