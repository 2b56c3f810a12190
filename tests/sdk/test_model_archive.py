"""A model that this machine's platform stores: whatever is in its place, fetching it ends, with the reason."""

import os

import pytest

from scriptmode.data import file_copy
from scriptmode.errors import DataError, DataNotFoundError
from scriptmode.platforms.local import LocalPlatform
from scriptmode.results import artifacts


@pytest.fixture
def stored(tmp_path):
    (tmp_path / "output").mkdir()
    return tmp_path / "output" / "model.tar.gz"


def fetched(stored, folder):
    try:
        return artifacts.download(LocalPlatform(), f"file://{stored}", folder, extract=True)
    finally:
        assert sorted(path.name for path in folder.parent.iterdir()) in (["output"], ["model", "output"])


@pytest.mark.prompt
def test_a_fifo_in_place_of_a_model_is_refused_at_once(stored, tmp_path):
    os.mkfifo(stored)
    with pytest.raises(DataError, match=r"model\.tar\.gz' cannot be read: it is a FIFO, not a regular file"):
        fetched(stored, tmp_path / "model")
    with pytest.raises(OSError, match="it is a FIFO"):
        file_copy.copy_regular_file(stored, tmp_path / "copy")


@pytest.mark.parametrize("names", [(), ("one",), ("one", "two")], ids=["empty", "one file", "two files"])
def test_a_directory_in_place_of_an_archive_is_refused(stored, tmp_path, names):
    stored.mkdir()
    for name in names:
        (stored / name).touch()
    with pytest.raises(DataError, match=r"^the model file://\S+ is a directory, not an archive; put"):
        fetched(stored, tmp_path / "model")


def test_an_empty_model_that_is_not_packed_is_an_empty_folder(tmp_path):
    (tmp_path / "output").mkdir()
    assert list(fetched(tmp_path / "output", tmp_path / "model").iterdir()) == []


def test_a_model_that_was_removed_is_gone_from_its_place(stored, tmp_path):
    with pytest.raises(DataNotFoundError, match=r"^the model of the job is gone: .*model\.tar\.gz any"):
        fetched(stored, tmp_path / "model")
