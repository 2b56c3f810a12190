"""The modules that the training programs share, and the images that come with the project."""

import importlib
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


@pytest.mark.parametrize("count", [1, 2, 3, 10])
def test_the_shares_of_a_replicated_channel_are_all_images_once(images, ten, count):
    shares = [images.Trainer(index, count).share(ten, sharded=False).y for index in range(count)]
    assert sorted(np.concatenate(shares)) == list(range(10))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_trainers_of_a_host_divide_its_shard_among_themselves(images, ten):
    shares = [images.Trainer(index, 4, index % 2, 2).share(ten, sharded=True).y.tolist() for index in (2, 3)]
    assert shares == [[0, 2, 4, 6, 8], [1, 3, 5, 7, 9]]


def test_only_time_within_epochs_counts_and_the_summary_is_read_back_from_a_log_with_prefixes(program):
    # Two epochs of 100 steps, 2 s and 3 s, with 5 s of something else between them.
    times = iter([10.0, 12.0, 17.0, 20.0])
    lines = []
    module = program("progress")
    progress = module.Progress("horovod", 2, 64, 128, clock=lambda: next(times), write=lines.append)
    for loss in (0.9, 0.5):
        progress.begin_epoch()
        progress.end_epoch(100, loss=loss, accuracy=0.75)
    progress.summarize(0.8125)
    assert lines[:2] == [
        "epoch 1: loss=0.9000 accuracy=0.7500 steps/s=50.00 images/s=6400",
        "epoch 2: loss=0.5000 accuracy=0.7500 steps/s=33.33 images/s=4267",
    ]
    assert module.read_summary("\n".join(f"algo-1 | [1,0]<stdout>: {line}" for line in lines) + "\nsaved\n") == {
        "layout": "horovod", "trainers": "2", "batch_size": "64", "steps": "200", "seconds": "5.00", "steps/s": "40.00",
        "images/s": "5120", "accuracy": "0.8125",
    }  # fmt: skip
    with pytest.raises(ValueError, match="did not reach its end"):
        module.read_summary("epoch 1: loss=0.9\n")
