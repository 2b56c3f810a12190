"""What a `scriptmode.Session` reads and writes: the objects of its default bucket and of others."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from scriptmode.core.aws import local_bucket
from scriptmode.core.aws.s3_transfers import decode_text, parse_path, upload_path
from scriptmode.core.aws.s3_uris import SCHEME, is_on_this_machine, parse_s3_uri
from scriptmode.errors import invalid

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping

    from scriptmode.core.aws.s3_transfers import Store
    from scriptmode.core.aws.sagemaker_config import SageMakerConfig
    from scriptmode.core.aws.session import Connection


class SessionObjects:
    """The methods of a session that read and write objects."""

    default_bucket_prefix: str | None

    if TYPE_CHECKING:

        @property
        def local_mode(self) -> bool:
            """Whether the session is one of this machine."""

        @property
        def _connection(self) -> Connection: ...

        @property
        def _config(self) -> SageMakerConfig: ...

    def default_bucket(self) -> str:
        """Return the name of the default bucket."""
        raise NotImplementedError

    def upload_data(
        self,
        path: str | os.PathLike[str],
        bucket: str | None = None,
        key_prefix: str = "data",
        callback: Callable[[int], object] | None = None,
        extra_args: Mapping[str, object] | None = None,
    ) -> str:
        """Upload a file, or all files below a directory.

        Args:
            path: The file or the directory.
            bucket: The bucket; by default the default bucket.
            key_prefix: Beginning of the objects' keys.
            callback: A function that is called with the number of bytes of each part that was uploaded.
            extra_args: boto3's ``ExtraArgs``, such as ``{"ServerSideEncryption": "aws:kms"}``; a bucket that is a
                directory ignores them.

        Returns:
            The URI of the object, or for a directory that of the prefix.

        Raises:
            DataNotFoundError: There is no such file or directory, or no such bucket.
            DataError: The directory is empty, or a file cannot be read or stored.
        """
        uri = self._uri(bucket, key_prefix)
        return upload_path(self.store_of(uri), parse_path("path", path), uri, extra_args, callback)

    def upload_string_as_file_body(self, body: str, bucket: str, key: str, kms_key: str | None = None) -> str:
        """Store a text as an object; return its URI.

        Args:
            body: The text, stored as UTF-8.
            bucket: The bucket.
            key: The object's key.
            kms_key: The KMS key that encrypts the object.

        Raises:
            DataNotFoundError: There is no such bucket.
        """
        return self._upload_text(body, self._uri(bucket, key), kms_key)

    def upload_string(self, body: str, key: str, bucket: str | None = None) -> str:
        """Store a text as an object of the default bucket, or of ``bucket``; return its URI."""
        return self._upload_text(body, self._uri(bucket, key), None)

    def _upload_text(self, body: str, uri: str, kms_key: str | None) -> str:
        if not isinstance(body, str):
            raise invalid("body", f"is {type(body).__name__}", "give a string; S3Uploader.upload_bytes stores bytes")
        self.store_of(uri).upload_bytes(body.encode(), uri, kms_key=kms_key)
        return uri

    def download_data(self, path: str | os.PathLike[str], bucket: str, key_prefix: str = "") -> list[str]:
        """Download an object, or all objects below a prefix, into a directory.

        Args:
            path: The directory, which is created if it does not exist.
            bucket: The bucket.
            key_prefix: The object's key, or a prefix as a directory.

        Returns:
            The paths of the files; none, with a warning, where there are no such objects.

        Raises:
            DataNotFoundError: There is no such bucket.
            DataError: The files cannot be written.
        """
        uri = self._uri(bucket, key_prefix)
        store, directory = self.store_of(uri), parse_path("path", path)
        if not store.uris(uri):
            warnings.warn(f"{uri}: there are no such objects, nothing was downloaded", stacklevel=2)
            return []
        return [str(file) for file in store.fetch(uri, directory)]

    def read_s3_file(self, bucket: str, key_prefix: str) -> str:
        """Return an object's text.

        Raises:
            DataNotFoundError: There is no such object or bucket.
            DataError: The object is not UTF-8 text.
        """
        uri = self._uri(bucket, key_prefix)
        return decode_text(self.store_of(uri).read_bytes(uri), uri)

    def list_s3_files(self, bucket: str, key_prefix: str) -> list[str]:
        """Return the keys that begin with ``key_prefix``, in their order.

        Raises:
            DataNotFoundError: There is no such bucket.
        """
        uri = self._uri(bucket, key_prefix)
        return [parse_s3_uri(found).key for found in self.store_of(uri).uris(uri)]

    def store_of(self, uri: str) -> Store:
        """Return what reads and writes the objects of a URI: S3 with this session, or the directory."""
        if is_on_this_machine(uri):
            return local_bucket.LocalBucket()
        parse_s3_uri(uri)
        return self._connection.s3

    def _uri(self, bucket: str | None, key: str) -> str:
        if not isinstance(key, str):
            raise invalid("key_prefix", f"is {key!r}", "give a string")
        key = key.lstrip("/")
        if bucket is None:
            bucket = self.default_bucket()
            prefix = "" if self.local_mode else self.default_bucket_prefix or self._config.default_bucket_prefix
            key = f"{prefix.strip('/')}/{key}" if prefix else key
        return f"{SCHEME}{check_bucket_name('bucket', bucket)}/{key}"


def check_bucket_name(argument: str, bucket: Any) -> str:
    """Return a bucket's name; raise `SpecError` for what is none."""
    if isinstance(bucket, str) and bucket and "/" not in bucket:
        return bucket
    name = parse_s3_uri(bucket).bucket if isinstance(bucket, str) and bucket.startswith(f"{SCHEME}") else ""
    raise invalid(argument, f"is {bucket!r}", f"give the bucket's name: {name!r}" if name else "give a bucket's name")
