"""The URIs of Amazon S3, and what they name. Pure."""

from __future__ import annotations

from typing import NamedTuple

from scriptmode.errors import DataError

SCHEME, _FILE_SCHEME = "s3://", "file://"
#: The bucket that is a directory of this machine (`local_bucket`). S3 allows no underscores in the names of buckets,
#: so there is none of this name.
LOCAL_BUCKET = "scriptmode_local"
LOCAL_BUCKET_URI = f"{SCHEME}{LOCAL_BUCKET}"


class S3Location(NamedTuple):
    """A bucket, and a key or the beginning of keys in it."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"


class S3Object(NamedTuple):
    """One stored object; ``size`` in bytes, ``etag`` as S3 writes it, quotes included."""

    location: S3Location
    size: int
    etag: str = ""


def parse_s3_uri(uri: str) -> S3Location:
    """Parse an ``s3://bucket/key`` URI; raise `DataError` for anything else."""
    bucket, _, key = uri[len(SCHEME) :].partition("/")
    if not uri.startswith(SCHEME) or not bucket:
        raise DataError(f"{uri!r} is not an S3 URI", f"write {SCHEME}bucket/key")
    return S3Location(bucket, key)


def is_in_local_bucket(uri: str) -> bool:
    """Return whether a URI names the local bucket or an object of it."""
    return uri == LOCAL_BUCKET_URI or uri.startswith(f"{LOCAL_BUCKET_URI}/")


def is_on_this_machine(uri: str) -> bool:
    """Return whether this machine has what a URI names: an object of the local bucket, or a ``file://`` location."""
    return is_in_local_bucket(uri) or uri.startswith(_FILE_SCHEME)
