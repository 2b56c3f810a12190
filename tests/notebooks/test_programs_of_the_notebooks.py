"""What the notebooks' programs promise of a step, which no log tells."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks.execution import NOTEBOOKS

pytestmark = [pytest.mark.tf, pytest.mark.slow]


@pytest.fixture(scope="module")
def looked():
    child = Path(__file__).parent / "children" / "steps.py"
    return subprocess.run(
        [sys.executable, str(child)], check=False, capture_output=True, text=True, cwd=NOTEBOOKS / "code", timeout=100
    )


@pytest.fixture(scope="module")
def found(looked):
    assert looked.stdout, looked.stderr
    return json.loads(looked.stdout)


def test_the_input_context_gives_each_worker_its_own_images(found):
    assert found["labels"] == [[0, 2, 4, 6, 8, 10], [1, 3, 5, 7, 9, 11]]


def test_two_devices_step_as_one_with_the_same_global_batch_does(found):
    # Learning rates are for a device's batch: 2 x 0.001 on two devices, 0.002 on one.
    assert found["two devices"] == pytest.approx(found["one device"], rel=1e-4)


def test_the_estimator_program_says_which_tensorflow_it_needs(looked):
    assert looked.returncode == 1
    assert "has no tf.estimator, which 2.16 removed: use TensorFlow 2.15" in looked.stderr
    assert "train_mwms.py" in looked.stderr
