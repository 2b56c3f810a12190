"""Objects of a real S3 server: every key there may be, listed in order, found and read byte for byte."""

import os

import pytest
from conftest import HOSTILE_NAMES
from fakes.faulty_s3 import FaultyS3

from scriptmode.errors import CredentialsError, DataAccessError, DataError, DataNotFoundError
from scriptmode_local._data.object_store import StoredObject
from scriptmode_local._data.s3_store import S3Store
from scriptmode_local._inputs import s3_locations

pytestmark = pytest.mark.slow

WEAK = {"AWS_ACCESS_KEY_ID": "weak", "AWS_SECRET_ACCESS_KEY": "weak-secret"}
SIZES = {"empty": 0, "one": 1, "part": 8 * 1024 * 1024, "more": 8 * 1024 * 1024 + 1, "middle": 5_000_001}


@pytest.fixture(scope="module")
def contents():
    return {f"sizes/{name}": os.urandom(size) for name, size in SIZES.items()}


@pytest.fixture(scope="module")
def bucket(s3_server, contents):
    names = [f"hostile/{name}/x" for name in HOSTILE_NAMES.values() if not {"\n", "\\"} & set(name)]
    names += ["hostile/%2e%2e/x", "hostile/a+b&c=d?e#f", "hostile/tilde~"]
    more = [*names, "data/part-1", "data/part-2", "data/p", "data-"]
    return s3_server.bucket("store-tests", {**contents, **{key: key.encode() for key in more}})


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.usefixtures("s3")
def test_any_range_of_an_object_is_read(bucket, contents, name):
    store, content = S3Store(), contents[f"sizes/{name}"]
    item = store.find(f"s3://{bucket}/sizes/{name}")
    assert item.size == len(content)
    for start, end in [(0, item.size), (0, 1), (item.size - 1, item.size), (item.size // 3, item.size // 2)]:
        if 0 <= start < end <= item.size:
            assert b"".join(store.read(item, start, end)) == content[start:end]


@pytest.mark.usefixtures("s3")
def test_every_key_is_listed_found_and_read_as_it_is_written(bucket):
    store = S3Store()
    found = list(store.objects(f"s3://{bucket}/hostile/"))
    assert len(found) == 9
    for item in found:
        key = item.uri.partition(f"s3://{bucket}/")[2]
        assert b"".join(store.read(item, 0, item.size)) == key.encode()
        assert store.find(item.uri) == item
    # S3 accepted every signature that boto3 did not make.
    assert store._s3._direct[bucket] is not None


@pytest.mark.usefixtures("s3")
def test_a_prefix_is_the_beginning_of_keys_and_not_a_directory(bucket):
    expected = {
        "data/part": ["data/part-1", "data/part-2"], "data/p": ["data/p", "data/part-1", "data/part-2"], "none": [],
    }  # fmt: skip
    for prefix, keys in expected.items():
        found = S3Store().objects(f"s3://{bucket}/{prefix}")
        assert [item.uri for item in found] == [f"s3://{bucket}/{key}" for key in keys]


@pytest.mark.parametrize("key", ["none", "sizes"])
@pytest.mark.usefixtures("s3")
def test_a_missing_object_is_an_error(bucket, key):
    with pytest.raises(DataNotFoundError, match=rf"s3://{bucket}/{key}: there is no such object; correct the URI"):
        S3Store().find(f"s3://{bucket}/{key}")


@pytest.mark.parametrize(
    ("variables", "uri", "error", "message"),
    [
        ({}, "s3://no-bucket/x", DataNotFoundError, "s3://no-bucket/x: there is no bucket 'no-bucket'"),
        (WEAK, "s3://store-tests/x", DataAccessError, "s3://store-tests/x: access denied"),
        ({"AWS_SECRET_ACCESS_KEY": "wrong"}, "s3://store-tests/x", CredentialsError, "S3 does not accept the credentials"),
        (
            {"AWS_ENDPOINT_URL": "http://127.0.0.1:9"}, "s3://b/x", DataError,
            "s3://b/x: the S3 endpoint http://127.0.0.1:9 cannot be reached: .*AWS_ENDPOINT_URL",
        ),
    ],
    ids=["no bucket", "no permission", "wrong credentials", "no server"],
)  # fmt: skip
@pytest.mark.usefixtures("s3", "bucket")
def test_what_a_server_refuses_is_an_error_of_listing_and_of_reading(monkeypatch, variables, uri, error, message):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    store = S3Store(retry_seconds=0.5)
    for ask in (lambda: list(store.objects(uri)), lambda: store.read(StoredObject(uri, 1), 0, 1)):
        with pytest.raises(error, match=message):
            ask()


@pytest.mark.usefixtures("s3")
def test_an_object_that_is_overwritten_is_not_mixed_with_the_old_one(s3_server, bucket):
    s3_server.client.put_object(Bucket=bucket, Key="changing", Body=b"first")
    store = S3Store()
    item = store.find(f"s3://{bucket}/changing")
    s3_server.client.put_object(Bucket=bucket, Key="changing", Body=b"other")
    with pytest.raises(
        DataError,
        match=r"changing: the object was changed while the job read it \(ETag .* at first; it has the ETag .* now\); do not",
    ):
        store.read(item, 0, 5)
    s3_server.client.delete_object(Bucket=bucket, Key="changing")
    with pytest.raises(DataNotFoundError, match=r"changing: the object was deleted while the job read its channel; do"):
        store.read(item, 0, 5)


def test_checks_of_jobs_keep_their_store_while_the_settings_of_aws_are_the_same(monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "one")
    first = s3_locations.shared_store()
    assert s3_locations.shared_store() is first
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    assert s3_locations.shared_store() is not s3_locations.shared_store()


def test_a_check_of_a_prefix_lists_two_keys_at_a_time_until_one_is_an_object(monkeypatch):
    with FaultyS3(dict.fromkeys(("in/", "in/a/", *(f"in/b{number}" for number in range(9))), b"")) as running:
        running.use(monkeypatch)
        store = s3_locations.shared_store()
        assert next(store.objects("s3://bkt/in/")).uri == "s3://bkt/in/b0"
        assert len(running.asked) == 2
        assert len(list(store.objects("s3://bkt/in/"))) == 9
