"""The training programs read TFRecords from pipes: which channel is a rank's, and how long an epoch is."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"


@pytest.fixture
def hyperparameters(monkeypatch):
    """The module as the programs import it, forgotten afterwards: its name is everybody's."""
    monkeypatch.syspath_prepend(str(CODE))
    module = importlib.import_module("hyperparameters")
    monkeypatch.delitem(sys.modules, "hyperparameters")
    return module


@pytest.mark.tf
@pytest.mark.long
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


@pytest.mark.tf
@pytest.mark.long
@pytest.mark.slow
def test_records_are_written_for_each_rank(tmp_path):
    images = NOTEBOOKS / "data" / "fashion_mnist" / "train"
    command = [
        sys.executable, str(CODE / "write_records.py"), str(images), str(tmp_path), "--ranks", "2", "--files", "2",
    ]  # fmt: skip
    subprocess.run(command, check=True, timeout=600)
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.tfrecord"))
    assert files == [f"{rank}/part-0000{number}.tfrecord" for rank in (0, 1) for number in (0, 1)]
