"""A million objects are listed, sharded and shuffled with little memory; without a seed the first come at once."""

import gc
import json
import os
from pathlib import Path

import pytest
from fakes.memory_objects import MemoryObjects

from scriptmode.data import listing
from scriptmode.data.channel_source import ChannelSource
from scriptmode.data.object_store import StoredObject

pytestmark = pytest.mark.slow

MILLION = 1_000_000
URI = "s3://lists/manifest"


class Many(MemoryObjects):
    """A million objects; or a text of that many parts, all alike, between a beginning and an end."""

    def __init__(self, part=b"", begin=b"", end=b"", uri=URI):
        super().__init__()
        self.uri = uri
        self.part, self.begin, self.end = part, begin, end

    def objects(self, prefix):
        return (
            StoredObject(f"{prefix}folder/object-{number:07}.tfrecord", 1000, '"etag"') for number in range(MILLION)
        )

    def find(self, uri):
        size = len(self.begin) + len(self.part) * MILLION + len(self.end)
        return StoredObject(uri, size if uri == self.uri else 1)

    def read(self, item, start, end):
        whole, skipped = [], start - len(self.begin)
        if start == 0:
            whole, skipped = [self.begin], 0
        number, into = divmod(skipped, len(self.part))
        parts = self.part * min((end - start) // len(self.part) + 2, MILLION - number)
        return [b"".join([*whole, parts[into:], self.end])[: end - start]]


def memory_used():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def most_memory(channel, objects, spool, **place):
    """Count the pieces, and the bytes of memory that were taken for them at most."""
    gc.collect()
    before = most = memory_used()
    count = 0
    for _ in listing.pieces(channel, objects.of, spool=spool, **place):
        count += 1
        if count % 10_000 == 1:
            most = max(most, memory_used())
    return count, most - before


@pytest.mark.parametrize("count", [1, 2])
def test_a_prefix_streams(tmp_path, count):
    channel = ChannelSource("c", "Pipe", "S3Prefix", "s3://b/", is_sharded=True)
    found, memory = most_memory(channel, Many(), tmp_path, epoch=0, host=0, count=count)
    assert found == MILLION // count
    assert memory < 4_000_000


def test_a_shuffled_prefix_keeps_a_few_bytes_of_each_object(tmp_path):
    channel = ChannelSource("c", "Pipe", "S3Prefix", "s3://b/", is_sharded=True, shuffle_seed=1)
    found, memory = most_memory(channel, Many(), tmp_path, epoch=0, host=0, count=2)
    assert found == MILLION // 2
    assert memory < 30_000_000


def test_a_manifest_streams(tmp_path):
    uri = "file:///lists/manifest"
    objects = Many(b', "folder/object.tfrecord"', b'[{"prefix": "file:///data/"}', b"]", uri=uri)
    channel = ChannelSource("c", "Pipe", "ManifestFile", uri)
    found, memory = most_memory(channel, objects, tmp_path, epoch=0, host=0, count=1)
    assert found == MILLION
    # A part of the manifest, as bytes and as text.
    assert memory < 30_000_000


def test_an_augmented_manifest_streams(tmp_path):
    objects = Many(json.dumps({"line": "Call me Ishmael", "book": "Moby Dick"}).encode() + b"\n")
    channel = ChannelSource("c", "Pipe", "AugmentedManifestFile", URI, attribute_names=("line",))
    found, memory = most_memory(channel, objects, tmp_path, epoch=0, host=0, count=1)
    assert found == MILLION
    assert memory < 30_000_000
