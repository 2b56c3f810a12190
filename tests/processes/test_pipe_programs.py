"""The training programs read TFRecords from pipes, as jobs, and learn from them as from files."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from scriptmode import MPI, Estimator, TrainingInput

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
TRAINING_IMAGES = 10_000
BATCH = 64


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """The images for two processes of a host, in the folders ``0`` and ``1``."""
    folder = tmp_path_factory.mktemp("records of images")
    command = [sys.executable, str(CODE / "write_records.py"), str(DATA / "train"), str(folder)]
    subprocess.run([*command, "--ranks", "2", "--files", "2"], check=True, stdout=subprocess.PIPE)
    return folder


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture
def hyperparameters(monkeypatch):
    """The module as the programs import it, forgotten afterwards: its name is everybody's."""
    monkeypatch.syspath_prepend(str(CODE))
    module = importlib.import_module("hyperparameters")
    monkeypatch.delitem(sys.modules, "hyperparameters")
    return module


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_each_rank_of_a_host_reads_a_pipe_of_its_own(records):
    inputs = {f"train_{rank}": TrainingInput((records / str(rank)).as_uri(), input_mode="Pipe") for rank in (0, 1)}
    estimator = Estimator(
        entry_point="train_hvd.py", source_dir=str(CODE), instance_type="local_process", max_run=900,
        distribution=MPI(processes_per_host=2),
        hyperparameters={"epochs": 1, "steps-per-epoch": TRAINING_IMAGES // BATCH // 2},
    )  # fmt: skip
    job = estimator.fit({**inputs, "eval": (DATA / "eval").as_uri()})
    (line,) = [event.message for event in job.logs() if "summary:" in event.message]
    said = dict(re.findall(r"(\S+)=(\S+)", line))
    assert (said["layout"], said["trainers"]) == ("horovod", "2")
    assert float(said["accuracy"]) > 0.7


@pytest.mark.tf
@pytest.mark.slow
def test_without_our_reader_the_program_says_what_to_do():
    code = "import sys; sys.modules['scriptmode_runtime'] = None; import records; records.stream('train')"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True, cwd=CODE)
    assert done.returncode == 1
    assert "channel 'train' is in Pipe mode, and PipeModeDataset is not installed" in done.stderr
    assert "use an image that has scriptmode, or TrainingInput(..., input_mode='File')" in done.stderr


def variables(**modes):
    config = {name: {"TrainingInputMode": mode} for name, mode in modes.items()}
    return {"SM_INPUT_DATA_CONFIG": json.dumps(config), "SM_CHANNELS": json.dumps(sorted(modes))}


def test_a_rank_takes_its_own_channel_and_two_ranks_cannot_share_a_pipe(hyperparameters):
    own = variables(train_0="Pipe", train_1="Pipe")
    assert [hyperparameters.rank_channel(rank, 2, own) for rank in (0, 1)] == ["train_0", "train_1"]
    assert hyperparameters.rank_channel(0, 1, variables(train="Pipe")) == "train"
    assert hyperparameters.rank_channel(1, 2, variables(train="File")) == "train"
    assert hyperparameters.rank_channel(1, 2, {}) == "train"
    message = "the 2 ranks of a host cannot share its pipe: .*own channel: 'train_0', 'train_1'"
    with pytest.raises(SystemExit, match=message):
        hyperparameters.rank_channel(0, 2, variables(train="Pipe"))


def test_an_epoch_of_a_pipe_needs_a_number_of_steps(hyperparameters):
    parse = hyperparameters.parser("x").parse_args
    assert hyperparameters.steps_of_pipe(parse(["--steps-per-epoch", "7"]), "train") == 7
    with pytest.raises(SystemExit, match="'train' is in Pipe mode, .* give the hyperparameter 'steps-per-epoch'"):
        hyperparameters.steps_of_pipe(parse([]), "train")
