"""The programs beside the notebooks: the data sets that they read, and the arguments that they refuse."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
from notebooks.execution import NOTEBOOKS

SUBSET = NOTEBOOKS / "data" / "fashion_mnist"


@pytest.fixture
def program(monkeypatch):
    """Import a module as the programs do, and forget it and theirs afterwards: their names are everybody's."""
    monkeypatch.syspath_prepend(str(NOTEBOOKS / "code"))
    monkeypatch.syspath_prepend(str(NOTEBOOKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(NOTEBOOKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def mnist(tmp_path):
    """A file with the arrays that MNIST is published in: three images to learn from, two to test with."""
    path = tmp_path / "mnist.npz"
    pixels, labels = np.zeros((5, 28, 28), np.uint8), np.arange(5, dtype=np.uint8)
    np.savez(path, x_train=pixels[:3], y_train=labels[:3], x_test=pixels[3:], y_test=labels[3:])
    return path


def test_a_file_of_both_splits_gives_the_one_asked_for(program, mnist):
    images = program("images")
    for path in (mnist, mnist.parent):
        assert images.load(path, "train").y.tolist() == [0, 1, 2]
        assert images.load(path, "test").y.tolist() == [3, 4]
    with pytest.raises(ValueError, match="mnist.npz contains the arrays .*x_test.*, not x and y"):
        images.load(mnist)


def test_the_channels_of_a_data_set_are_its_file_or_its_folders(program, mnist):
    images = program("images")
    assert images.channels(mnist) == {"train": mnist.as_uri(), "eval": mnist.as_uri()}
    assert images.held_out(mnist).y.tolist() == [3, 4]
    assert images.channels(SUBSET) == {name: (SUBSET / name).as_uri() for name in ("train", "eval")}
    assert len(images.held_out(SUBSET)) == 2000


READ_BACK = """
import json, os, sys
import colour_images, records
folder = sys.argv[1]
colour_images.main([sys.argv[2], folder, "--images", "600", "--files", "3"])
os.environ.update(SM_CHANNEL_TRAIN=f"{folder}/train", SM_CHANNEL_EVAL=f"{folder}/eval")
train, held_out = records.load("train"), records.held_out()
print(json.dumps({
    "files": sorted(os.listdir(f"{folder}/train")),
    "train": [len(train), train.shape, int(train.x.sum())], "eval": [len(held_out), held_out.shape],
}))
"""


@pytest.mark.tf
@pytest.mark.slow
def test_coloured_images_are_read_back_from_records_in_several_objects(program, tmp_path):
    command = [sys.executable, "-c", READ_BACK, str(tmp_path), str(SUBSET)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=600, cwd=NOTEBOOKS / "code")
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("2600 images of 32 x 32 x 3 in 3 files of each channel")
    images = program("images")
    grey = images.load(SUBSET / "train")
    pixels = program("colour_images").coloured(images.Images(grey.x[:600], grey.y[:600]), seed=0).x
    assert json.loads(last) == {
        "files": [f"part-{index:05}.tfrecord" for index in range(3)],
        "train": [600, [32, 32, 3], int(pixels.sum())],
        "eval": [2000, [32, 32, 3]],
    }


TABLE = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1234567    8901    0    0    0     0          0         0  7654321    8901    0    0    0     0       0          0
  eth0:42 1 0 0 0 0 0 0 17 1 0 0 0 0 0 0
"""


@pytest.mark.parametrize(
    ("environ", "received"),
    [
        ({"SM_NETWORK_INTERFACE_NAME": "lo"}, 1_234_567), ({"SM_NETWORK_INTERFACE_NAME": "eth0"}, 42),
        ({"SM_NETWORK_INTERFACE_NAME": "eth1"}, None), ({}, None),
    ],
    ids=["loopback", "a number right behind the name", "another interface", "outside a job"],
)  # fmt: skip
def test_the_interface_of_the_job_is_read(program, tmp_path, environ, received):
    path = tmp_path / "dev"
    path.write_text(TABLE)
    assert program("traffic").received(environ, path) == received


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words", "code", "told"),
    [
        ("compare.py", ["--workers", "1,two"], 2, "argument --workers: '1,two' is not a list of whole numbers of at least 1"),
        ("compare.py", ["--accuracy", "70"], 2, "argument --accuracy: '70' is not a number from 0 to 1; write for example 0.7"),
        ("compare.py", ["--data", "nowhere"], 2, "'nowhere' has no directory 'train' and no directory 'eval'; name one"),
        ("demo.py", ["--epochs", "-1"], 2, "argument --epochs: '-1' is not a whole number of at least 1"),
        ("demo.py", ["--tensorflow", "new"], 1, "demo.py: framework_version is 'new'; give a version of TensorFlow"),
    ],
)  # fmt: skip
def test_an_argument_that_cannot_be_is_told_without_a_traceback(program, words, code, told, tmp_path, data_dir):
    command = [sys.executable, str(NOTEBOOKS / program), *words]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=600, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert not data_dir.exists()
