"""What the comparison is made of: coloured images, what the interface moved, the seconds to an accuracy, the table."""

import importlib
import json
import subprocess
import sys

import numpy as np
import pytest
from notebooks.execution import NOTEBOOKS

CODE = NOTEBOOKS / "code"
SUBSET = NOTEBOOKS / "data" / "fashion_mnist"


@pytest.fixture
def program(monkeypatch):
    """Import a module as the programs do, and forget it and theirs afterwards: their names are everybody's."""
    monkeypatch.syspath_prepend(str(CODE))
    monkeypatch.syspath_prepend(str(NOTEBOOKS))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(NOTEBOOKS) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


# --- the images --------------------------------------------------------------------------------------------------


@pytest.fixture
def grey(program):
    return program("images").Images(np.full((50, 28, 28), 255, np.uint8), np.arange(50, dtype=np.uint8) % 10)


def test_coloured_images_have_the_size_of_cifar_and_the_classes_they_had(program, grey):
    coloured = program("colour_images").coloured(grey, seed=1)
    assert (coloured.x.shape, coloured.x.dtype, coloured.shape) == ((50, 32, 32, 3), np.uint8, (32, 32, 3))
    assert (coloured.y == grey.y).all()


def test_coloured_images_are_the_same_each_time_and_others_by_another_seed(program, grey):
    coloured = program("colour_images").coloured
    assert (coloured(grey, seed=1).x == coloured(grey, seed=1).x).all()
    assert (coloured(grey, seed=1).x != coloured(grey, seed=2).x).any()


def test_articles_are_moved_and_lie_on_a_ground_of_many_colours(program, grey):
    whole = program("colour_images").coloured(grey, seed=1).x
    # A whole article hides what is below it; where it is not, the ground is.
    middles = {pixels[16, 16].tobytes() for pixels in whole}
    corners = {pixels[corner].tobytes() for pixels in whole for corner in ((0, 0), (0, 31), (31, 0), (31, 31))}
    assert len(middles) > 45
    assert len(corners) > 150
    tops = [next(row for row in range(32) if (pixels[row, 16] == pixels[16, 16]).all()) for pixels in whole]
    assert set(tops) == {0, 1, 2, 3, 4}


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
def test_records_in_several_objects_are_read_back_as_files(program, tmp_path):
    command = [sys.executable, "-c", READ_BACK, str(tmp_path), str(SUBSET)]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=CODE).stdout.splitlines()
    assert said[0].startswith("2600 images of 32 x 32 x 3 in 3 files of each channel")
    found = json.loads(said[-1])
    images = program("images")
    grey = images.load(SUBSET / "train")
    pixels = program("colour_images").coloured(images.Images(grey.x[:600], grey.y[:600]), seed=0).x
    assert found["files"] == [f"part-{index:05}.tfrecord" for index in range(3)]
    assert found["train"] == [600, [32, 32, 3], int(pixels.sum())]
    assert found["eval"] == [2000, [32, 32, 3]]


@pytest.mark.parametrize(("size", "shape"), [(784, (28, 28)), (3072, (32, 32, 3))])
def test_the_bytes_of_an_image_say_its_shape(program, size, shape):
    assert program("images").shape_of(size) == shape


def test_bytes_of_no_image_are_an_error(program):
    with pytest.raises(ValueError, match="an image has 785 bytes"):
        program("images").shape_of(785)


# --- what the network moved --------------------------------------------------------------------------------------

TABLE = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 1234567    8901    0    0    0     0          0         0  7654321    8901    0    0    0     0       0          0
  eth0:42 1 0 0 0 0 0 0 17 1 0 0 0 0 0 0
"""


@pytest.mark.parametrize(
    ("environ", "received"),
    [
        ({"SM_NETWORK_INTERFACE_NAME": "lo"}, 1_234_567),
        ({"SM_NETWORK_INTERFACE_NAME": "eth0"}, 42),
        ({"SM_NETWORK_INTERFACE_NAME": "eth1"}, None),
        ({}, None),
    ],
    ids=["loopback", "a number right behind the name", "another interface", "outside a job"],
)
def test_the_interface_of_the_job_is_read(program, tmp_path, environ, received):
    path = tmp_path / "dev"
    path.write_text(TABLE)
    assert program("traffic").received(environ, path) == received


def test_a_system_that_counts_nothing_has_received_nothing(program, tmp_path):
    assert program("traffic").received({"SM_NETWORK_INTERFACE_NAME": "lo"}, tmp_path / "dev") is None


def test_only_bytes_within_epochs_count(program):
    counts = iter([1000, 3000, 9000, 10_000])
    written = []
    progress = program("progress").Progress("horovod", 2, 64, 128, write=written.append, received=lambda: next(counts))
    for _ in range(2):
        progress.begin_epoch()
        progress.end_epoch(10, loss=1.0, accuracy=0.5)
    progress.summarize(0.5)
    assert program("progress").read_summary(written[-1])["bytes/step"] == "150"


# --- the seconds to an accuracy ----------------------------------------------------------------------------------

LOG = """algo-1 | evaluation 1: accuracy=0.5000 seconds=1.25
algo-1 | [1,0]<stdout>: evaluation 2: accuracy=0.7500 seconds=2.50
algo-1 | evaluation 3: accuracy=0.7400 seconds=3.75
"""


@pytest.mark.parametrize(("accuracy", "seconds"), [(0.3, 1.25), (0.75, 2.5), (0.76, None)])
def test_the_first_evaluation_that_is_good_enough_says_the_seconds(program, accuracy, seconds):
    assert program("progress").seconds_to(accuracy, LOG) == seconds


# --- the table and the picture -----------------------------------------------------------------------------------


@pytest.fixture
def rows(program):
    row = program("compare").Row
    return [
        row("parameter servers", 2, 64, 4321.4, 100, 1_250_000.0, 12.34, 0.81239),
        row("Horovod", 2, 64, 10.0, 50, 0.0, None, 0.1),
    ]


def test_the_table_has_a_line_for_each_job_in_columns(program, rows):
    assert program("compare").table(rows).splitlines() == [
        "           layout  workers  width  images/s  s to accuracy  MB/step  accuracy at the end",
        "parameter servers        2     64     4,321           12.3     1.25               0.8124",
        "          Horovod        2     64        10              -     0.00               0.1000",
    ]


def test_each_quantity_has_a_panel_with_both_ways_side_by_side(program, rows):
    panels = program("compare").panels(rows)
    case = "width 64\n2 workers"
    assert list(panels) == ["images/s", "seconds to the accuracy", "MB a step"]
    assert panels["seconds to the accuracy"] == {case: {"parameter servers": 12.34, "Horovod": None}}
    assert panels["MB a step"] == {case: {"parameter servers": 1.25, "Horovod": 0.0}}


def test_the_command_says_what_it_takes():
    command = [sys.executable, str(NOTEBOOKS / "compare.py"), "--help"]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    assert all(option in said for option in ("--workers", "--widths", "--epochs", "--images", "--accuracy", "--data"))
