"""S3 through boto3's standard settings, against a real server; every error is one of ours."""

import os

import pytest

from scriptmode._core.aws.s3 import S3, SMALL_OBJECT
from scriptmode._core.aws.s3_uris import S3Location, S3Object, parse_s3_uri
from scriptmode.errors import CredentialsError, DataError
from scriptmode_local import LocalPlatform

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bucket(s3_server):
    objects = {f"many/{number:04}": b"" for number in range(1100)}
    return s3_server.bucket("s3-tests", {"one": b"1", "ü 'b'": b"22", **objects})


def test_an_s3_uri_is_a_bucket_and_a_key():
    assert [parse_s3_uri(uri) for uri in ("s3://b/a/c", "s3://b", "s3://b/", "s3://b/a b/ü?#")] == [
        S3Location("b", "a/c"), S3Location("b", ""), S3Location("b", ""), S3Location("b", "a b/ü?#"),
    ]  # fmt: skip
    for uri in ("", "file:///a", "s3:///a", "S3://b/a"):
        with pytest.raises(DataError, match="is not an S3 URI"):
            parse_s3_uri(uri)


def test_objects_are_listed_in_order_over_many_pages(s3, bucket):
    keys = [found.location.key for found in S3().objects(f"s3://{bucket}/many/")]
    assert keys == [f"many/{number:04}" for number in range(1100)]
    assert [(found.location.key, found.size) for found in S3().objects(f"s3://{bucket}/ü")] == [("ü 'b'", 2)]


@pytest.mark.parametrize("size", [0, 10, SMALL_OBJECT + 1])
def test_what_is_uploaded_is_downloaded(s3, bucket, tmp_path, size):
    (tmp_path / "source").write_bytes(os.urandom(size))
    uri = f"s3://{bucket}/round trip/{size}"
    assert not S3().exists(uri)
    S3().upload_file(tmp_path / "source", uri)
    assert S3().exists(uri)
    S3().download(S3Object(parse_s3_uri(uri), size), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == (tmp_path / "source").read_bytes()
    S3().upload_bytes(b"other", uri)
    S3().download(S3Object(parse_s3_uri(uri), 5), tmp_path / "target")
    assert (tmp_path / "target").read_bytes() == b"other"


ACTIONS = {
    "list": lambda uri, _: list(S3().objects(uri)),
    "download": lambda uri, path: S3().download(S3Object(parse_s3_uri(uri), 1), path),
    "download large": lambda uri, path: S3().download(S3Object(parse_s3_uri(uri), SMALL_OBJECT + 1), path),
    "upload": lambda uri, path: S3().upload_file(path, uri),
    "upload bytes": lambda uri, _: S3().upload_bytes(b"x", uri),
}


@pytest.mark.parametrize(
    ("action", "bucket_name", "message"),
    [
        ("download", "s3-tests", "s3://s3-tests/none: there is no such object"),
        ("download large", "s3-tests", "s3://s3-tests/none: there is no such object"),
        ("list", "no-bucket", "s3://no-bucket/none: there is no bucket 'no-bucket'"),
    ],
)
@pytest.mark.usefixtures("s3", "bucket")
def test_an_object_or_a_bucket_that_is_missing_is_named(tmp_path, action, bucket_name, message):
    with pytest.raises(DataError, match=message):
        ACTIONS[action](f"s3://{bucket_name}/none", tmp_path / "target")


@pytest.fixture
def weak(s3, monkeypatch):
    """Credentials that allow nothing."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "weak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "weak-secret")


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
@pytest.mark.usefixtures("weak")
def test_a_location_without_access_is_named(bucket, tmp_path, action):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(DataError, match=rf"s3://{bucket}/one: access denied"):
        action(f"s3://{bucket}/one", tmp_path / "file")
    assert not S3().exists(f"s3://{bucket}/one")


def test_who_may_write_but_neither_read_nor_list_stores_a_source(s3, bucket, monkeypatch, tmp_path):
    with monkeypatch.context() as changed:
        changed.setenv("AWS_ACCESS_KEY_ID", "write")
        changed.setenv("AWS_SECRET_ACCESS_KEY", "write-secret")
        with pytest.raises(DataError, match="access denied"):
            list(S3().objects(f"s3://{bucket}/sources"))
        LocalPlatform(data_dir=tmp_path).put_source(b"archive", f"s3://{bucket}/sources/sourcedir.tar.gz")
    S3().download(S3Object(parse_s3_uri(f"s3://{bucket}/sources/sourcedir.tar.gz"), 7), tmp_path / "stored")
    assert (tmp_path / "stored").read_bytes() == b"archive"


@pytest.mark.parametrize("action", ["list", "download", "upload", "upload bytes"])
@pytest.mark.parametrize("variable", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
@pytest.mark.usefixtures("s3")
def test_wrong_credentials_raise_an_error_with_how_to_give_them(bucket, tmp_path, monkeypatch, action, variable):
    monkeypatch.setenv(variable, "wrong")
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(CredentialsError, match=rf"s3://{bucket}/one: S3 does not accept .*aws configure"):
        ACTIONS[action](f"s3://{bucket}/one", tmp_path / "file")


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS.keys())
def test_no_credentials_raise_an_error_with_how_to_give_them(no_credentials, tmp_path, action):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(CredentialsError, match=r"s3://bucket/one: there are no AWS credentials; run 'aws configure'"):
        action("s3://bucket/one", tmp_path / "file")


def test_an_endpoint_that_cannot_be_reached_is_named(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(DataError, match=r"s3://b/x: the S3 endpoint http://127.0.0.1:9 cannot .*nothing listens"):
        S3().upload_bytes(b"", "s3://b/x")
