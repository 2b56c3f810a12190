"""The programs read a data set as it is published, in one file with both splits, as well as folders of files."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from notebooks.execution import NOTEBOOKS


@pytest.fixture
def images(monkeypatch):
    """The module as the programs import it, forgotten afterwards: its name is everybody's."""
    monkeypatch.syspath_prepend(str(NOTEBOOKS / "code"))
    module = importlib.import_module("images")
    monkeypatch.delitem(sys.modules, "images")
    return module


@pytest.fixture
def mnist(tmp_path):
    """A file with the arrays that MNIST is published in: three images to learn from, two to test with."""
    path = tmp_path / "mnist.npz"
    pixels, labels = np.zeros((5, 28, 28), np.uint8), np.arange(5, dtype=np.uint8)
    np.savez(path, x_train=pixels[:3], y_train=labels[:3], x_test=pixels[3:], y_test=labels[3:])
    return path


@pytest.mark.parametrize(("split", "labels"), [("train", [0, 1, 2]), ("test", [3, 4])])
def test_a_file_of_both_splits_gives_the_one_asked_for(images, mnist, split, labels):
    assert images.load(mnist, split).y.tolist() == labels
    assert images.load(mnist.parent, split).y.tolist() == labels


def test_a_file_of_both_splits_is_refused_where_no_split_is_named(images, mnist):
    with pytest.raises(ValueError, match="mnist.npz contains the arrays .*x_test.*, not x and y"):
        images.load(mnist)


def test_both_channels_of_one_file_are_that_file(images, mnist):
    assert images.channels(mnist) == {"train": mnist.as_uri(), "eval": mnist.as_uri()}
    assert images.held_out(mnist).y.tolist() == [3, 4]


def test_the_channels_of_a_folder_are_its_folders(images):
    folder = NOTEBOOKS / "data" / "fashion_mnist"
    found = images.channels(folder)
    assert found == {"train": (folder / "train").as_uri(), "eval": (folder / "eval").as_uri()}
    assert all(Path(uri[len("file://") :]).is_dir() for uri in found.values())
    assert len(images.held_out(folder)) == 2000
