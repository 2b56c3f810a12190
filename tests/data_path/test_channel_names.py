"""Which path an object of a prefix has below its channel."""

import pytest

from scriptmode.data.listing import channel_name
from scriptmode.errors import DataError


@pytest.mark.parametrize(
    ("prefix", "key", "name"),
    [
        ("train", "train/a/b", "a/b"),
        ("train/", "train/a/b", "a/b"),
        ("data/part", "data/part-1.csv", "part-1.csv"),
        ("data/file.csv", "data/file.csv", "file.csv"),
        ("data/train", "data/train2/a", "train2/a"),
        ("", "a/b", "a/b"),
    ],
)
def test_an_objects_path_in_its_channel_is_its_key_after_the_prefix(prefix, key, name):
    assert channel_name(prefix, key) == name


@pytest.mark.parametrize("key", ["up/../../a", "a//b", "up/./a", "/a", "..", "nul\0"])
def test_a_key_that_leads_out_of_the_channel_is_refused(key):
    with pytest.raises(DataError, match="cannot be a file's path"):
        channel_name("", key)
