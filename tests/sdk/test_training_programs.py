"""The modules that the training programs share, and the images that come with the project."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CODE = NOTEBOOKS / "code"
DATA = NOTEBOOKS / "data"


@pytest.fixture
def program(monkeypatch):
    """Import a module as the programs do, and forget it afterwards: their names are everybody's."""
    monkeypatch.syspath_prepend(str(CODE))
    monkeypatch.syspath_prepend(str(DATA))

    def load(name):
        module = importlib.import_module(name)
        monkeypatch.delitem(sys.modules, name)
        return module

    return load


@pytest.fixture
def images(program):
    return program("images")


@pytest.fixture
def ten(images):
    return images.Images(np.arange(10 * 28 * 28, dtype=np.uint8).reshape(10, 28, 28), np.arange(10, dtype=np.uint8))


# --- the subset --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("channel", "files", "size"), [("train", 4, 10_000), ("eval", 2, 2_000)])
def test_every_file_of_the_subset_has_as_many_images_of_each_class(images, channel, files, size):
    paths = sorted((DATA / "fashion_mnist" / channel).glob("*.npz"))
    assert len(paths) == files
    for path in paths:
        with np.load(path) as arrays:
            assert (arrays["x"].dtype, arrays["y"].dtype) == (np.uint8, np.uint8)
            assert np.bincount(arrays["y"]).tolist() == [size // files // 10] * 10
    assert len(images.load(DATA / "fashion_mnist" / channel)) == size


def test_no_held_out_image_is_a_training_image(images):
    train, held_out = (
        {image.tobytes() for image in images.load(DATA / "fashion_mnist" / channel).x} for channel in ("train", "eval")
    )
    assert not train & held_out


def test_the_subset_is_drawn_the_same_way_each_time(program, tmp_path):
    make_subset = program("make_subset")
    labels = np.tile(np.arange(10, dtype=np.uint8), 1000)
    pixels = np.arange(10_000 * 784, dtype=np.uint32).astype(np.uint8).reshape(10_000, 28, 28)
    full = tmp_path / "full.npz"
    np.savez(full, x_train=pixels, y_train=labels, x_test=pixels, y_test=labels)
    for folder in ("first", "second"):
        assert make_subset.main([str(full), str(tmp_path / folder)]) == 0
    written = sorted((tmp_path / "first").rglob("*.npz"))
    assert len(written) == 6
    for path in written:
        assert path.read_bytes() == (tmp_path / "second" / path.relative_to(tmp_path / "first")).read_bytes()


# --- shares ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_the_shares_of_a_replicated_channel_are_all_images_once(images, ten, count):
    shares = [images.Trainer(index, count).share(ten, sharded=False).y for index in range(count)]
    assert sorted(np.concatenate(shares)) == list(range(10))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_trainers_of_a_host_divide_its_shard_among_themselves(images, ten):
    shares = [images.Trainer(index, 4, index % 2, 2).share(ten, sharded=True).y.tolist() for index in (2, 3)]
    assert shares == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_a_part_that_does_not_exist_is_an_error(ten):
    with pytest.raises(ValueError, match="part 2 of 2"):
        ten.part(2, 2)


def test_a_folder_without_images_is_an_error(images, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"contains no \.npz file"):
        images.load(tmp_path)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"pixels": np.zeros((2, 28, 28))}, "contains the arrays"),
        ({"x": np.zeros((2, 32, 32)), "y": np.zeros(2)}, "not [n, 28, 28]"),
        ({"x": np.zeros((2, 28, 28)), "y": np.zeros(3)}, "not [n, 28, 28]"),
    ],
    ids=["other names", "other size", "other number of labels"],
)
def test_a_file_with_other_arrays_is_an_error(images, tmp_path, arrays, message):
    np.savez(tmp_path / "part-0.npz", **arrays)
    with pytest.raises(ValueError) as raised:
        images.load(tmp_path)
    assert message in str(raised.value)
    assert "part-0.npz" in str(raised.value)


# --- hyperparameters and variables -------------------------------------------------------------------------------


def test_hyperparameters_arrive_as_script_mode_passes_them(program):
    parser = program("hyperparameters").parser("Train.\n\nMore.")
    arguments = parser.parse_args(["--batch-size", "32", "--epochs", "2", "--model_dir", "s3://bucket/job/model"])
    assert (arguments.batch_size, arguments.epochs, arguments.steps_per_epoch) == (32, 2, None)


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many"])
def test_a_count_below_one_is_an_error_of_the_command_line(program, capsys, text):
    with pytest.raises(SystemExit) as raised:
        program("hyperparameters").parser("Train.").parse_args(["--epochs", text])
    assert raised.value.code == 2
    assert f"{text!r} is not a whole number of at least 1" in capsys.readouterr().err


def test_a_missing_channel_ends_the_program_with_its_name(program):
    with pytest.raises(SystemExit, match="no channel 'train'"):
        program("hyperparameters").channel("train", {})


@pytest.mark.parametrize(
    ("config", "sharded"),
    [
        ('{"train": {"S3DistributionType": "ShardedByS3Key"}}', True),
        ('{"train": {"S3DistributionType": "FullyReplicated"}}', False),
        ('{"eval": {"S3DistributionType": "ShardedByS3Key"}}', False),
        ("", False),
    ],
    ids=["sharded", "replicated", "another channel", "outside a job"],
)
def test_the_channel_says_whether_it_is_sharded(program, config, sharded):
    assert program("hyperparameters").is_sharded("train", {"SM_INPUT_DATA_CONFIG": config}) is sharded


def test_the_task_is_what_tf_config_names(program):
    hyperparameters = program("hyperparameters")
    cluster = '{"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}}'
    assert hyperparameters.task({"TF_CONFIG": cluster}) == ("worker", 1, {"worker": ["a:1", "b:2"]})
    assert hyperparameters.task({}) == ("chief", 0, {})


@pytest.mark.parametrize(("environ", "hosts"), [({"SM_HOSTS": '["algo-1","algo-2"]'}, 2), ({}, 1)])
def test_the_hosts_are_counted(program, environ, hosts):
    assert program("hyperparameters").host_count(environ) == hosts


def test_checkpoints_are_beside_the_model(program):
    folder = program("hyperparameters").checkpoint_folder({"SM_MODEL_DIR": "/opt/ml/model"})
    assert folder == Path("/opt/ml/checkpoints")


# --- progress ----------------------------------------------------------------------------------------------------


@pytest.fixture
def lines(program):
    """Two epochs of 100 steps, 2 s and 3 s, with 5 s of something else between them."""
    times = iter([10.0, 12.0, 17.0, 20.0])
    written = []
    progress = program("progress").Progress("horovod", 2, 64, 128, clock=lambda: next(times), write=written.append)
    for loss in (0.9, 0.5):
        progress.begin_epoch()
        progress.end_epoch(100, loss=loss, accuracy=0.75)
    progress.summarize(0.8125)
    return written


def test_only_time_within_epochs_counts(lines):
    assert lines == [
        "epoch 1: loss=0.9000 accuracy=0.7500 steps/s=50.00 images/s=6400",
        "epoch 2: loss=0.5000 accuracy=0.7500 steps/s=33.33 images/s=4267",
        "summary: layout=horovod trainers=2 batch_size=64 steps=200 seconds=5.00 steps/s=40.00 images/s=5120 accuracy=0.8125",
    ]


def test_the_summary_is_read_back_from_a_log_with_prefixes(program, lines):
    log = "\n".join(f"algo-1 | [1,0]<stdout>: {line}" for line in lines) + "\nsaved\n"
    assert program("progress").read_summary(log) == {
        "layout": "horovod",
        "trainers": "2",
        "batch_size": "64",
        "steps": "200",
        "seconds": "5.00",
        "steps/s": "40.00",
        "images/s": "5120",
        "accuracy": "0.8125",
    }


def test_a_log_without_a_summary_is_an_error(program):
    with pytest.raises(ValueError, match="did not reach its end"):
        program("progress").read_summary("epoch 1: loss=0.9\n")


# --- the model ---------------------------------------------------------------------------------------------------

SAVE = """
import tarfile
from pathlib import Path
import model
folder = Path("model's folder")
model.save(model.build(), folder)
with tarfile.open("model.tar.gz", "w:gz") as archive:
    archive.add(folder, arcname=".")
"""


@pytest.mark.tf
@pytest.mark.slow
def test_a_saved_model_scores_the_same_as_a_folder_and_as_an_archive(tmp_path):
    def run(*command):
        environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(CODE)}
        done = subprocess.run(
            [sys.executable, *map(str, command)],
            cwd=tmp_path, env=environ, check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-c", SAVE)
    held_out = DATA / "fashion_mnist" / "eval"
    said = [run(CODE / "evaluate.py", model, held_out) for model in ("model's folder", "model.tar.gz")]
    accuracies = {line.partition(" ")[0] for line in said}
    assert len(accuracies) == 1
    assert accuracies.pop().startswith("accuracy=0.")
    assert all("images=2000" in line for line in said)
