"""What an entry of InputDataConfig says, and which objects a prefix has: their names, shards and order."""

import os
from itertools import chain, islice

import pytest
from fakes.memory_objects import MemoryObjects

from scriptmode._core.request.parse import parse_request
from scriptmode.errors import DataError
from scriptmode_local._data import listing
from scriptmode_local._data.channel_source import ChannelSource, source_of
from scriptmode_local._data.file_store import FileStore
from scriptmode_local._data.object_store import StoredObject


def source(uri="s3://b/data/", **fields):
    return ChannelSource("train", "Pipe", "S3Prefix", uri, **fields)


def store(count=10):
    return MemoryObjects({f"s3://b/data/{index:03}": b"x" * index for index in range(count)})


def uris(channel, objects, *, epoch=0, host=0, count=1):
    found = listing.pieces(channel, objects.of, epoch=epoch, host=host, count=count)
    return [piece.uri for piece in found]


@pytest.mark.parametrize("seed", [None, 7, -1, 0])
@pytest.mark.parametrize("count", [1, 2, 3, 12])
def test_each_sharded_object_goes_to_one_host_and_shards_are_equal(seed, count):
    channel = source(is_sharded=True, shuffle_seed=seed)
    shares = [uris(channel, store(), host=host, count=count) for host in range(count)]
    assert sorted(chain.from_iterable(shares)) == uris(source(), store())
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_an_epoch_is_shuffled_the_same_on_every_host_and_another_epoch_otherwise():
    channel = source(shuffle_seed=5)
    orders = {
        epoch: {tuple(uris(channel, store(), epoch=epoch, host=host, count=3)) for host in range(3)}
        for epoch in range(4)
    }
    assert all(len(order) == 1 for order in orders.values())
    assert len(set.union(*orders.values())) == 4
    assert tuple(uris(source(shuffle_seed=6), store())) not in orders[0]


def test_objects_are_shuffled_before_sharding_so_a_host_gets_others_in_the_next_epoch():
    channel = source(is_sharded=True, shuffle_seed=1)
    shares = [frozenset(uris(channel, store(100), epoch=epoch, count=2)) for epoch in range(3)]
    assert len(set(shares)) == 3


def test_shuffled_objects_are_those_that_were_listed():
    objects = MemoryObjects(
        {"s3://b/data/図 \n": b"12", "s3://b/data/" + os.fsdecode(b"\xff"): b"", "s3://b/data/x" * 99: b"1"}
    )
    shuffled = listing.pieces(source(shuffle_seed=1), objects.of, epoch=0, host=0, count=1)
    assert sorted(shuffled) == sorted(objects.objects("s3://b/data/"))


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("s3://b/other/", "s3://b/other/: no object's key begins with it"),
        ("file:///nowhere/", "file:///nowhere/: there is nothing in it"),
    ],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_a_uri_without_objects_is_an_error(uri, why, seed):
    with pytest.raises(DataError, match=why):
        uris(source(uri, shuffle_seed=seed), store())


def test_a_host_with_an_empty_shard_gets_nothing_and_no_error():
    assert uris(source(is_sharded=True), store(2), host=2, count=3) == []


def test_the_first_objects_come_before_the_last_is_listed():
    class Endless(MemoryObjects):
        def objects(self, prefix):
            number = 0
            while True:
                yield StoredObject(f"{prefix}{(number := number + 1)}", 1)

    found = listing.entries(source(is_sharded=True), Endless().of, epoch=0, host=1, count=2)
    assert [entry.name for entry in islice(found, 3)] == ["2", "4", "6"]


@pytest.mark.parametrize(
    ("prefix", "key", "name"),
    [
        ("data/", "data/a/b.csv", "a/b.csv"), ("data", "data/a/b.csv", "a/b.csv"),
        ("data/part", "data/part-1/x", "part-1/x"), ("data/part-1.csv", "data/part-1.csv", "part-1.csv"),
        ("", "a/b", "a/b"),
    ],
)  # fmt: skip
def test_an_entrys_name_is_its_key_below_the_prefix(prefix, key, name):
    objects = MemoryObjects({f"s3://b/{key}": b""})
    found = listing.entries(source(f"s3://b/{prefix}"), objects.of, epoch=0, host=0, count=1)
    assert [entry.name for entry in found] == [name]


@pytest.mark.parametrize("key", ["data/../../etc", "data/a//b", "data/a/./b", "data/..", "data/a\0b"])
def test_a_key_that_cannot_be_a_path_is_refused_as_a_file_and_valid_in_a_pipe(key):
    objects = MemoryObjects({f"s3://b/{key}": b""})
    assert uris(source("s3://b/data/"), objects) == [f"s3://b/{key}"]
    with pytest.raises(DataError, match="cannot be a file's path; rename the object"):
        list(listing.entries(source("s3://b/data/"), objects.of, epoch=0, host=0, count=1))


@pytest.mark.parametrize("is_encoded", [True, False])
def test_names_of_files_are_their_paths_in_the_directory(tmp_path, hostile_name, is_encoded):
    folder = tmp_path / hostile_name
    (folder / hostile_name).mkdir(parents=True)
    (folder / hostile_name / hostile_name).write_text("x")
    uri = folder.as_uri() if is_encoded else f"file://{folder}"
    found = listing.entries(source(uri), lambda _: FileStore(), epoch=0, host=0, count=1)
    assert [entry.name for entry in found] == [f"{hostile_name}/{hostile_name}"]


def request(**algorithm):
    return {"AlgorithmSpecification": {"TrainingImage": "i", **algorithm}}


def parse(request, entry):
    job = parse_request({**request, "InputDataConfig": [entry]})
    return source_of(job, job.channels[0])


def entry(source=(), **fields):
    s3 = {"S3DataType": "S3Prefix", "S3Uri": "s3://b/x", **dict(source)}
    return {"ChannelName": "train", "DataSource": {"S3DataSource": s3}, **fields}


def test_every_field_of_an_entry_is_parsed():
    source = {
        "S3DataType": "AugmentedManifestFile",
        "S3DataDistributionType": "ShardedByS3Key",
        "AttributeNames": ["image-ref", "label"],
    }
    fields = {
        "InputMode": "Pipe", "CompressionType": "Gzip", "RecordWrapperType": "RecordIO",
        "ShuffleConfig": {"Seed": 0}, "ContentType": "text/csv",
    }  # fmt: skip
    assert parse(request(TrainingInputMode="File"), entry(source, **fields)) == ChannelSource(
        name="train", mode="Pipe", data_type="AugmentedManifestFile", uri="s3://b/x", is_sharded=True,
        is_gzipped=True, is_wrapped=True, attribute_names=("image-ref", "label"), shuffle_seed=0,
        content_type="text/csv",
    )  # fmt: skip


def test_defaults_are_those_of_the_service_and_a_channels_mode_comes_before_the_jobs():
    smallest = ChannelSource("train", "File", "S3Prefix", "s3://b/x")
    nones = {"CompressionType": "None", "RecordWrapperType": "None"}
    assert parse(request(), entry()) == smallest
    assert parse(request(), entry({"S3DataDistributionType": "FullyReplicated"}, **nones)) == smallest
    assert parse(request(TrainingInputMode="Pipe"), entry()).mode == "Pipe"
    assert parse(request(TrainingInputMode="Pipe"), entry(InputMode="FastFile")).mode == "FastFile"
