"""The training programs read TFRecords from pipes, as jobs, and learn from them as from files."""

import importlib
import json
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from scriptmode import MPI, Estimator, ParameterServer, TrainingInput

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data" / "fashion_mnist"
TRAINING_IMAGES = 10_000
BATCH = 64


def write_records(folder, target, *options):
    command = [sys.executable, str(CODE / "write_records.py"), str(folder), str(target), *options]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """``train`` and ``eval`` for whole hosts, ``ranks/0`` and ``ranks/1`` for two processes of a host."""
    folder = tmp_path_factory.mktemp("records of images")
    write_records(DATA / "train", folder / "train")
    write_records(DATA / "train", folder / "ranks", "--ranks", "2", "--files", "2")
    write_records(DATA / "eval", folder / "eval", "--files", "1")
    return folder


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")


@pytest.fixture
def program(monkeypatch):
    """Import a module as the programs do, and forget it afterwards: their names are everybody's."""
    monkeypatch.syspath_prepend(str(CODE))

    def load(name):
        module = importlib.import_module(name)
        monkeypatch.delitem(sys.modules, name)
        return module

    return load


def fit(entry_point, distribution, inputs, *, hosts, steps, input_mode="File"):
    estimator = Estimator(
        entry_point=entry_point,
        source_dir=str(CODE),
        instance_count=hosts,
        instance_type="local_process",
        distribution=distribution,
        input_mode=input_mode,
        hyperparameters={"epochs": 1, "steps-per-epoch": steps},
        max_run=900,
    )
    return estimator.fit(inputs)


def piped(folder, *, sharded):
    how = "ShardedByS3Key" if sharded else "FullyReplicated"
    return TrainingInput(folder.as_uri(), distribution=how, input_mode="Pipe")


def summary(job):
    (line,) = [event.message for event in job.logs() if "summary:" in event.message]
    return dict(re.findall(r"(\S+)=(\S+)", line))


@pytest.mark.tf
@pytest.mark.slow
@pytest.mark.timeout(1200)
# The notebook that compares parameter servers with Horovod trains by sharded pipes in each run, the ranks below by their
# own, and test_input_modes.py has every mode and distribution on each host.
@pytest.mark.thorough
@pytest.mark.parametrize("sharded", [True, False], ids=["sharded", "replicated"])
def test_workers_read_the_pipes_of_their_own_hosts(records, sharded):
    inputs = {"train": piped(records / "train", sharded=sharded), "eval": piped(records / "eval", sharded=False)}
    job = fit("train_ps.py", ParameterServer(coordinator=True), inputs, hosts=2, steps=40, input_mode="Pipe")
    said = summary(job)
    assert (said["layout"], said["trainers"]) == ("parameter_server", "2")
    # So few steps give 0.65 to 0.82; guessing gives 0.10.
    assert float(said["accuracy"]) > 0.5


@pytest.mark.tf
@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("hosts", "ranks", "folders"),
    [
        # In each run parameter servers train from sharded pipes of two hosts, in the notebook that compares strategies.
        pytest.param(2, 1, {"train_0": "train"}, id="a rank on each of two hosts, sharded", marks=pytest.mark.thorough),
        pytest.param(1, 2, {"train_0": "ranks/0", "train_1": "ranks/1"}, id="two ranks of a host, a channel each"),
    ],
)
def test_each_rank_reads_a_pipe_of_its_own(records, hosts, ranks, folders):
    inputs = {name: piped(records / folder, sharded=True) for name, folder in folders.items()}
    inputs["eval"] = (DATA / "eval").as_uri()
    job = fit("train_hvd.py", MPI(processes_per_host=ranks), inputs, hosts=hosts, steps=TRAINING_IMAGES // BATCH // 2)
    said = summary(job)
    assert (said["layout"], said["trainers"]) == ("horovod", "2")
    assert float(said["accuracy"]) > 0.7


@pytest.mark.tf
@pytest.mark.slow
def test_every_image_is_in_one_record(records, program):
    images = program("images")
    whole = images.load(DATA / "train")
    for layout, files in {"train": 4, "ranks": 4}.items():
        paths = sorted((records / layout).rglob("*.tfrecord"))
        payloads = [payload for path in paths for payload in payloads_of(path.read_bytes())]
        assert len(paths) == files
        assert len(payloads) == len(whole) == TRAINING_IMAGES
        # Files of the folders are written in turn, images to the files in turn.
        of_last = whole.part(3, 4)
        last = list(payloads_of(paths[-1].read_bytes()))
        assert all(image.tobytes() in payload for image, payload in zip(of_last.x, last))


def payloads_of(content):
    """Take a TFRecord file apart: a length of 8 bytes, its checksum, the data, its checksum."""
    at = 0
    while at < len(content):
        (length,) = struct.unpack_from("<Q", content, at)
        yield content[at + 12 : at + 12 + length]
        at += 16 + length


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


def test_a_rank_takes_its_own_channel_where_there_is_one(program):
    hyperparameters = program("hyperparameters")
    own = variables(train_0="Pipe", train_1="Pipe")
    assert [hyperparameters.rank_channel(rank, 2, own) for rank in (0, 1)] == ["train_0", "train_1"]
    assert hyperparameters.rank_channel(0, 1, variables(train="Pipe")) == "train"
    assert hyperparameters.rank_channel(1, 2, variables(train="File")) == "train"
    assert hyperparameters.rank_channel(1, 2, {}) == "train"


def test_two_ranks_cannot_share_a_pipe(program):
    with pytest.raises(
        SystemExit, match="the 2 ranks of a host cannot share its pipe: .*own channel: 'train_0', 'train_1'"
    ):
        program("hyperparameters").rank_channel(0, 2, variables(train="Pipe"))


def test_an_epoch_of_a_pipe_needs_a_number_of_steps(program):
    hyperparameters = program("hyperparameters")
    parse = hyperparameters.parser("x").parse_args
    assert hyperparameters.steps_of_pipe(parse(["--steps-per-epoch", "7"]), "train") == 7
    with pytest.raises(SystemExit, match="'train' is in Pipe mode, .* give the hyperparameter 'steps-per-epoch'"):
        hyperparameters.steps_of_pipe(parse([]), "train")


def test_a_job_without_modes_has_files(program):
    hyperparameters = program("hyperparameters")
    assert not hyperparameters.is_piped("train", {})
    assert not hyperparameters.is_piped("train", variables(train="File"))
    assert hyperparameters.is_piped("train", variables(train="Pipe"))
