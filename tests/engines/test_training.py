"""The demo as jobs of each engine: real TensorFlow clusters, by the public call."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "notebooks" / "demo.py"


@pytest.mark.tf
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_demo_reaches_its_accuracy_in_both_layouts(jobs, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")
    done = subprocess.run(
        [sys.executable, str(DEMO), "--instance-type", jobs.instance_type, "--epochs", "3"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    rows = [line for line in done.stdout.splitlines() if line.startswith("fashion-mnist-")]
    assert len(rows) == 2
    for row in rows:
        assert float(re.search(r"0\.\d{4}", row)[0]) >= 0.80
