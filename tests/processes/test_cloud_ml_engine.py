"""The program that Cloud ML Engine would run, alone on one host; its cluster is that of the notebook's test."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scriptmode import TrainingJob

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
PACKAGES = NOTEBOOKS / "code" / "cloud_ml"
DATA = NOTEBOOKS / "data" / "fashion_mnist"

pytestmark = [pytest.mark.tf, pytest.mark.slow, pytest.mark.timeout(180)]


def submit(name, folder, steps):
    """Submit the package for one machine, and give what its one process said."""
    scriptmode = str(Path(sys.executable).with_name("scriptmode"))
    words = (
        "jobs", "submit", "training", name, "--package-path", str(PACKAGES / "trainer"), "--module-name", "trainer.task",
        "--job-dir", str(folder / "job"), "--scale-tier", "basic", "--stream-logs", "--input", f"train={DATA / 'train'}",
        "--input", f"eval={DATA / 'eval'}", "--", f"--max_steps={steps}", "--log_every=50", "--eval_every=10000",
    )  # fmt: skip
    done = subprocess.run((scriptmode, *words), check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return done.stdout


def test_one_machine_trains_alone_and_the_next_job_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    first = submit("first", tmp_path, 300)
    assert "master 0: made 300 of the first 300 steps" in first
    losses = [float(loss) for loss in re.findall(r"step \d+: loss=(\S+)", first)]
    assert len(losses) == 6
    assert sum(losses[-2:]) < sum(losses[:2])
    assert float(re.search(r"evaluation at step 300: eval_accuracy=(\S+)", first)[1]) > 0.7  # guessing gives 0.1
    assert "master 0: made 40 of the first 340 steps" in submit("second", tmp_path, 340)
    assert max(path.name for path in (tmp_path / "job").glob("*.index")) == "model.ckpt-340.index"
    assert len(list((tmp_path / "job").glob("events.out.tfevents.*"))) == 2
    assert (TrainingJob.attach("second").model / "1" / "saved_model.pb").is_file()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--max_step=3"], "unrecognized arguments: --max_step=3"),
        ([], "--job-dir is required outside a training job"),
        (["--job-dir=x", f"--train_data={PACKAGES}", "--eval_data=x"], "contains no .npz file"),
    ],
    ids=["argument", "folder", "data"],
)
def test_what_the_program_cannot_work_with_ends_it_with_a_message(words, message, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SM_", "TF_CONFIG"))}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW, *words],
        check=False, capture_output=True, text=True, cwd=PACKAGES, env=environment, timeout=60,
    )  # fmt: skip
    assert done.returncode != 0
    assert message in done.stderr


#: Runs the module as ``python -m`` does; its arguments and files are looked at before anything of TensorFlow's is.
WITHOUT_TENSORFLOW = """
import runpy, sys
from unittest.mock import MagicMock
for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
    sys.modules[name] = MagicMock()
runpy.run_module("trainer.task", run_name="__main__", alter_sys=True)
"""
