"""`Session`: an account, a Region and a default bucket, with the names of the SageMaker SDK v2's session."""

from __future__ import annotations

import os
import warnings
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from scriptmode.aws import local_bucket
from scriptmode.aws.s3 import S3, SCHEME, parse_s3_uri
from scriptmode.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS
from scriptmode.aws.session import Connection, default_bucket_name
from scriptmode.errors import CredentialsError, DataAccessError, DataError, DataNotFoundError, invalid
from scriptmode.messages import did_you_mean_path
from scriptmode.spec.hosts import LOCAL_ACCOUNT, LOCAL_REGION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scriptmode.aws.config import SageMakerConfig
    from scriptmode.clock import Clock

#: What reads and writes objects.
Store = Union[S3, local_bucket.LocalBucket]
#: Names of the SageMaker SDK's session that this one does not have, and what to use instead.
_INSTEAD = {
    **dict.fromkeys(("train", "tune"), "use the estimator's fit()"),
    **dict.fromkeys(("logs_for_job", "wait_for_job"), "use TrainingJob.attach(name).follow() or wait()"),
    "describe_training_job": "use TrainingJob.attach(name).describe()",
    "stop_training_job": "use TrainingJob.attach(name).stop()",
    "expand_role": "give the role's name, which the estimators look up",
    "get_caller_identity_arn": "use get_execution_role(), or boto_session.client('sts').get_caller_identity()",
    **dict.fromkeys(("s3_client", "s3_resource"), "use boto_session.client('s3')"),
    **dict.fromkeys(("sagemaker_runtime_client", "create_model", "endpoint_from_production_variants"), (
        "scriptmode does not deploy models: use boto_session.client('sagemaker-runtime') or the sagemaker package"
    )),
}  # fmt: skip


class Session:
    """An AWS account with a default bucket; without AWS credentials, this machine with a directory as the bucket.

    The estimators, ``attach`` and `get_execution_role` take it as ``sagemaker_session``. Without credentials, jobs on
    this machine read and write the bucket's ``s3://`` URIs as files below the data directory, and Amazon SageMaker
    is refused.

    Args:
        boto_session: A ``boto3.Session``; by default boto3's own settings.
        sagemaker_client: A boto3 client of Amazon SageMaker; by default one of ``boto_session``.
        default_bucket: Name of the default bucket in S3, which `default_bucket` creates if it does not exist; by
            default that of the SageMaker config file, else ``sagemaker-<region>-<account>``.
        default_bucket_prefix: Beginning of keys in the default bucket; by default the config file's.
        local_mode: Whether the bucket is a directory of this machine; by default where there are no AWS credentials.

    Attributes:
        boto_region_name: The Region; without credentials that of AWS's settings, else us-east-1.
        local_mode: Whether the session is one of this machine.

    Raises:
        CredentialsError: There are credentials but no Region, or AWS's settings name a profile that does not exist.
        SpecError: An argument is wrong.
    """

    def __init__(
        self,
        boto_session: Any = None,
        sagemaker_client: Any = None,
        *,
        default_bucket: str | None = None,
        default_bucket_prefix: str | None = None,
        local_mode: bool | None = None,
    ) -> None:
        _check_arguments(boto_session, sagemaker_client, default_bucket, local_mode)
        self._is_default = boto_session is None and sagemaker_client is None
        self._sagemaker_client = sagemaker_client
        # The names under which estimators look for them, also in sessions of the SageMaker SDK.
        self._default_bucket = None if default_bucket is None else _bucket_name("default_bucket", default_bucket)
        self.default_bucket_prefix = default_bucket_prefix
        self._connection = Connection(boto_session)
        self.local_mode = bool(local_mode)
        if local_mode is None and sagemaker_client is None and not _has_credentials(self._connection, boto_session):
            self._fall_back(default_bucket)
        self.boto_region_name: str = _region_of(self._connection, is_local=self.local_mode)
        if self.local_mode and boto_session is None:
            self._connection = Connection(region=self.boto_region_name)

    def _fall_back(self, default_bucket: str | None) -> None:
        what = "there are no AWS credentials"
        if default_bucket is not None:
            raise CredentialsError(
                f"default_bucket is {default_bucket!r}, a bucket in S3, but {what}",
                argument="default_bucket",
                advice=f"{HOW_TO_GIVE_CREDENTIALS}; or leave it out to use a directory of this machine",
            )
        self.local_mode = True
        warnings.warn(
            f"{what}: this session's bucket is a directory of this machine, {str(local_bucket.bucket_folder())!r}, for "
            "jobs on this machine (instance_type 'local_process' or 'local'); Session(local_mode=True) says so "
            "without this warning",
            UserWarning,
            stacklevel=3,
        )

    def __repr__(self) -> str:
        where = "local_mode=True" if self.local_mode else f"boto_region_name={self.boto_region_name!r}"
        return f"Session({where})"

    def __getattr__(self, name: str) -> Any:
        if name in _INSTEAD:
            raise AttributeError(f"Session has no {name!r}; {_INSTEAD[name]}")
        raise AttributeError(f"'Session' object has no attribute {name!r}")

    @property
    def boto_session(self) -> Any:
        """The ``boto3.Session`` of all calls."""
        return self._connection.session

    @property
    def sagemaker_client(self) -> Any:
        """The boto3 client of Amazon SageMaker.

        Raises:
            CredentialsError: The session is one of this machine.
        """
        if self.local_mode:
            raise CredentialsError(
                "sagemaker_client calls Amazon SageMaker, but this is a session of this machine",
                advice="use TrainingJob.attach(name) and TrainingJob.list() for jobs on this machine, or "
                + HOW_TO_GIVE_CREDENTIALS,
            )
        return self._sagemaker_client or self._connection.client("sagemaker")

    @property
    def sagemaker_config(self) -> Any:
        """The content of the SageMaker config file that the boto3 session carries; ``None`` if it is read."""
        return self._connection.settings

    @property
    def clock(self) -> Clock:
        """The clock of waiting, which fake sessions bring along."""
        return self._connection.clock

    @property
    def uses_own_settings(self) -> bool:
        """Whether AWS is called with other settings than boto3's own, which are those of jobs on this machine."""
        return not self._is_default

    def account_id(self) -> str:
        """Return the number of the account; ``000000000000`` for this machine.

        Raises:
            CredentialsError: AWS does not accept the credentials.
        """
        if self.local_mode:
            return LOCAL_ACCOUNT
        return self._connection.caller_identity()["Account"]

    def default_bucket(self) -> str:
        """Return the name of the default bucket, which is created if it does not exist.

        Raises:
            DataError: The bucket cannot be created.
            DataAccessError: The bucket is another account's, or the credentials do not allow its use.
        """
        return local_bucket.NAME if self.local_mode else self._ready_bucket

    @cached_property
    def _ready_bucket(self) -> str:
        name, owner = self._default_bucket or self._config.default_bucket, None
        if name is None:
            owner = self.account_id()
            name = default_bucket_name(self.boto_region_name, owner)
        s3 = self._connection.s3
        try:
            if not s3.has_bucket(name, owner=owner):
                s3.create_bucket(name, region=self.boto_region_name)
        except DataAccessError as error:
            raise DataAccessError(f"{error.message}", advice="name a bucket: Session(default_bucket=...)") from error
        return name

    def upload_data(
        self,
        path: str | os.PathLike[str],
        bucket: str | None = None,
        key_prefix: str = "data",
        *,
        extra_args: Mapping[str, object] | None = None,
    ) -> str:
        """Upload a file, or all files below a directory.

        Args:
            path: The file or the directory.
            bucket: The bucket; by default the default bucket.
            key_prefix: Beginning of the objects' keys.
            extra_args: boto3's ``ExtraArgs``, such as ``{"ServerSideEncryption": "aws:kms"}``; a bucket that is a
                directory ignores them.

        Returns:
            The URI of the object, or for a directory that of the prefix.

        Raises:
            DataNotFoundError: There is no such file or directory, or no such bucket.
            DataError: The directory is empty, or a file cannot be read or stored.
        """
        uri = self._uri(bucket, key_prefix)
        return upload_path(self.store_of(uri), parse_path("path", path), uri, extra_args)

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
            The paths of the files.

        Raises:
            DataNotFoundError: There is no such object or bucket.
            DataError: The files cannot be written.
        """
        uri = self._uri(bucket, key_prefix)
        return [str(file) for file in self.store_of(uri).fetch(uri, parse_path("path", path))]

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
        if local_bucket.is_on_this_machine(uri):
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
        return f"{SCHEME}{_bucket_name('bucket', bucket)}/{key}"

    @cached_property
    def _config(self) -> SageMakerConfig:
        return self._connection.read_config("the config of boto_session")


def parse_path(argument: str, value: object) -> Path:
    """Return a path; raise `SpecError` for what is neither a string nor a ``Path``, and for ""."""
    if (isinstance(value, str) and value) or isinstance(value, Path):
        return Path(value).expanduser()
    raise invalid(argument, f"is {value!r}", "give a path")


def upload_path(store: Store, path: Path, prefix: str, extra: Mapping[str, object] | None) -> str:
    """Upload a file, or all files below a directory, below a URI; return the object's URI, or the prefix's."""
    files = _files_to_upload(path)
    prefix = prefix.rstrip("/")
    if not path.is_dir():
        store.upload_file(path, f"{prefix}/{path.name}", extra)
        return f"{prefix}/{path.name}"
    for file in files:
        store.upload_file(file, f"{prefix}/{file.relative_to(path).as_posix()}", extra)
    return prefix


def _files_to_upload(path: Path) -> list[Path]:
    """Return a file, or all files below a directory in order; raise `DataError` for what cannot be uploaded."""
    if path.is_dir():
        found = sorted(_walk(path))
        if not found:
            raise DataError(f"path {str(path)!r} is an empty directory", argument="path", advice="put files there")
    elif path.exists():
        found = [path]
    else:
        raise DataNotFoundError(
            f"path {str(path)!r} does not exist",
            argument="path",
            advice=did_you_mean_path(path) or "give a file or a directory",
        )
    for file in found:
        # A FIFO would be waited for.
        if not file.is_file() or not os.access(file, os.R_OK):
            what = "cannot be read" if file.is_file() else "is not a regular file"
            raise DataError(f"path {str(file)!r} {what}", argument="path", advice="remove it, or name another path")
    return found


def _walk(path: Path) -> Iterator[Path]:
    for folder, _, names in os.walk(path):
        yield from (Path(folder, name) for name in names)


def decode_text(content: bytes, uri: str) -> str:
    """Return the text of UTF-8 bytes; raise `DataError` for others."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise DataError(
            f"{uri}: the object is not UTF-8 text: {error}", advice="use S3Downloader.read_bytes"
        ) from error


def _check_arguments(boto_session: Any, sagemaker_client: Any, default_bucket: Any, local_mode: Any) -> None:
    if local_mode not in (None, True, False):
        raise invalid("local_mode", f"is {local_mode!r}", "give True or False, or leave it out")
    is_session = hasattr(boto_session, "client") and hasattr(boto_session, "region_name")
    if boto_session is not None and (isinstance(boto_session, type) or not is_session):
        raise invalid("boto_session", f"is {boto_session!r}", "give boto3.Session(...), or leave it out")
    if local_mode:
        given = {"boto_session": boto_session, "sagemaker_client": sagemaker_client, "default_bucket": default_bucket}
        for name, value in given.items():
            if value is not None:
                raise invalid(name, f"is {value!r}, but local_mode is True, which uses this machine", "keep one")


def _bucket_name(argument: str, bucket: Any) -> str:
    if isinstance(bucket, str) and bucket and "/" not in bucket:
        return bucket
    name = parse_s3_uri(bucket).bucket if isinstance(bucket, str) and bucket.startswith(f"{SCHEME}") else ""
    raise invalid(argument, f"is {bucket!r}", f"give the bucket's name: {name!r}" if name else "give a bucket's name")


def _has_credentials(connection: Connection, boto_session: Any) -> bool:
    # A fake session has none to look up.
    is_fake = boto_session is not None and not hasattr(boto_session, "get_credentials")
    return is_fake or bool(connection.credentials_source)


def _region_of(connection: Connection, *, is_local: bool) -> str:
    try:
        return connection.region
    except CredentialsError:
        if not is_local:
            raise
        return LOCAL_REGION
