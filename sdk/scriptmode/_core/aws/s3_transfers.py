"""`S3Uploader` and `S3Downloader`, with the names and methods of the SageMaker SDK v2's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Union

from scriptmode._core.aws import local_bucket
from scriptmode._core.aws.s3 import S3, require_credentials
from scriptmode._core.aws.s3_uris import SCHEME, is_on_this_machine, parse_s3_uri
from scriptmode._core.aws.session import Connection
from scriptmode._core.machine import drafts
from scriptmode._core.text.messages import did_you_mean_path
from scriptmode.errors import DataError, DataNotFoundError, invalid

#: What reads and writes objects.
Store = Union[S3, local_bucket.LocalBucket]


class S3Uploader:
    """Uploads to S3, and to the bucket of a session without an account.

    ``sagemaker_session`` is a session as the estimators take it, by default boto3's own settings; ``kms_key`` encrypts
    the objects, where they are in S3. The methods return the URI, and raise `DataNotFoundError` for a file or a bucket
    that does not exist.
    """

    @staticmethod
    def upload(
        local_path: str | os.PathLike[str],
        desired_s3_uri: str,
        kms_key: str | None = None,
        sagemaker_session: object = None,
    ) -> str:
        """Upload a file, which keeps its name below the URI, or all files below a directory.

        Raises:
            DataError: The directory is empty, or a file cannot be read or stored.
        """
        extra = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": kms_key} if kms_key else None
        path = parse_path("local_path", local_path)
        return upload_path(_store_of(desired_s3_uri, sagemaker_session), path, desired_s3_uri, extra)

    @staticmethod
    def upload_bytes(b: bytes, s3_uri: str, kms_key: str | None = None, sagemaker_session: object = None) -> str:
        """Store bytes at a URI."""
        content = b.getvalue() if hasattr(b, "getvalue") else b
        if not isinstance(content, (bytes, bytearray, memoryview)):
            raise invalid("b", f"is {type(b).__name__}", "give bytes; upload_string_as_file_body stores a string")
        _store_of(s3_uri, sagemaker_session).upload_bytes(bytes(content), s3_uri, kms_key=kms_key)
        return s3_uri

    @staticmethod
    def upload_string_as_file_body(
        body: str, desired_s3_uri: str, kms_key: str | None = None, sagemaker_session: object = None
    ) -> str:
        """Store a text at a URI, as UTF-8."""
        if not isinstance(body, str):
            raise invalid("body", f"is {type(body).__name__}", "give a string; upload_bytes stores bytes")
        return S3Uploader.upload_bytes(body.encode(), desired_s3_uri, kms_key, sagemaker_session)


class S3Downloader:
    """Downloads from S3, from the bucket of a session without an account, and from ``file://`` URIs of local jobs.

    ``sagemaker_session`` is a session as the estimators take it, by default boto3's own settings. The methods raise
    `DataNotFoundError` for an object or a bucket that does not exist.
    """

    @staticmethod
    def download(
        s3_uri: str, local_path: str | os.PathLike[str], kms_key: str | None = None, sagemaker_session: object = None
    ) -> list[str]:
        """Download an object, or all objects below a prefix, into a directory; return the paths of the files.

        Args:
            s3_uri: The object's URI, or a prefix as a directory.
            local_path: The directory, which is created if it does not exist.
            kms_key: Refused (`SpecError`): S3 decrypts what it encrypted with a KMS key by itself.
            sagemaker_session: A session as the estimators take it.

        Raises:
            DataError: The files cannot be written.
        """
        if kms_key is not None:
            raise invalid("kms_key", f"is {kms_key!r}", "leave it out: S3 decrypts by itself what KMS keys encrypt")
        path = parse_path("local_path", local_path)
        return [str(file) for file in _store_of(s3_uri, sagemaker_session).fetch(s3_uri, path)]

    @staticmethod
    def read_bytes(s3_uri: str, sagemaker_session: object = None) -> bytes:
        """Return an object's bytes."""
        return _store_of(s3_uri, sagemaker_session).read_bytes(s3_uri)

    @staticmethod
    def read_file(s3_uri: str, sagemaker_session: object = None) -> str:
        """Return an object's text; raise `DataError` for one that is not UTF-8."""
        return decode_text(S3Downloader.read_bytes(s3_uri, sagemaker_session), s3_uri)

    @staticmethod
    def list(s3_uri: str, sagemaker_session: object = None) -> list[str]:
        """Return the URIs of the objects that begin with a URI, in the order of their keys."""
        return _store_of(s3_uri, sagemaker_session).uris(s3_uri)


def parse_s3_url(url: str) -> tuple[str, str]:
    """Return the bucket and the key of an ``s3://`` URI; raise `DataError` for another one."""
    return parse_s3_uri(url).bucket, parse_s3_uri(url).key


def s3_path_join(*args: str | None, with_end_slash: bool = False) -> str:
    """Join parts of an S3 URI or key by single slashes; leave out empty parts, and slashes at the beginning and end.

    Args:
        args: The parts; the first may begin with ``s3://``.
        with_end_slash: Whether a path that is not empty ends with a slash.

    Returns:
        The path.
    """
    joined = "/".join(part for part in args if part)
    scheme = SCHEME if joined.startswith(SCHEME) else ""
    path = "/".join(part for part in joined[len(scheme) :].split("/") if part)
    return f"{scheme}{path}/" if with_end_slash and path else f"{scheme}{path}"


def determine_bucket_and_prefix(
    bucket: str | None = None, key_prefix: str | None = None, sagemaker_session: Any = None
) -> tuple[str, str | None]:
    """Return a bucket and a prefix as they are, or the session's default bucket with its own prefix before the other.

    Args:
        bucket: The bucket; by default that of the session.
        key_prefix: The prefix.
        sagemaker_session: A `Session`.
    """
    if bucket is not None:
        return bucket, key_prefix
    joined = s3_path_join(sagemaker_session.default_bucket_prefix, key_prefix)
    return sagemaker_session.default_bucket(), joined or None


def _store_of(uri: Any, session: Any) -> Store:
    if not isinstance(uri, str):
        raise invalid("the URI", f"is {uri!r}", "give a string such as 's3://bucket/key'")
    if is_on_this_machine(uri):
        return local_bucket.LocalBucket()
    parse_s3_uri(uri)
    if session is None:
        require_credentials(uri)
    # Sessions of local mode have settings for S3 as well.
    return Connection(session.boto_session if getattr(session, "local_mode", False) else session).s3


def parse_path(argument: str, value: object) -> Path:
    """Return a path; raise `SpecError` for what is neither a string nor a ``Path``, and for ""."""
    if (isinstance(value, str) and value) or isinstance(value, Path):
        return Path(value).expanduser()
    raise invalid(argument, f"is {value!r}", "give a path")


def upload_path(
    store: Store,
    path: Path,
    prefix: str,
    extra: Mapping[str, object] | None,
    callback: Callable[[int], object] | None = None,
) -> str:
    """Upload a file, or all files below a directory, below a URI; return the object's URI, or the prefix's.

    ``callback`` is called with the number of bytes of each part that was uploaded.
    """
    prefix, root = prefix.rstrip("/"), path if path.is_dir() else path.parent
    for file in _files_to_upload(path):
        store.upload_file(file, f"{prefix}/{file.relative_to(root).as_posix()}", extra, callback)
    return prefix if path.is_dir() else f"{prefix}/{path.name}"


def _files_to_upload(path: Path) -> list[Path]:
    """Return a file, or all files below a directory in order; raise `DataError` for what cannot be uploaded."""
    if not path.exists():
        step = did_you_mean_path(path) or "give a file or a directory"
        raise DataNotFoundError(f"path {str(path)!r} does not exist", step, argument="path")
    if not (files := sorted(_files(path))):
        raise DataError(f"path {str(path)!r} is an empty directory", "put files there", argument="path")
    for file in files:
        # A FIFO would be waited for.
        if not file.is_file() or not os.access(file, os.R_OK):
            what = "cannot be read" if file.is_file() or file.is_dir() else "is not a regular file"
            raise DataError(f"path {str(file)!r} {what}", "remove it, or name another path", argument="path")
    return files


def _files(path: Path, *above: Path) -> Iterator[Path]:
    """Yield a file, or those below a directory, links followed, except drafts and links to one of their own parents."""
    # What cannot be listed is yielded, and refused as a file is that cannot be read.
    if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
        yield path
    elif not (path.name.startswith(drafts.PREFIX) or (path.is_symlink() and any(map(path.samefile, above)))):
        for entry in path.iterdir():
            yield from _files(entry, path, *above)


def decode_text(content: bytes, uri: str) -> str:
    """Return the text of UTF-8 bytes; raise `DataError` for others."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{uri}: the object is not UTF-8 text: {error}", "use S3Downloader.read_bytes") from error
