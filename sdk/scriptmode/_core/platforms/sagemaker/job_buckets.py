"""`JobBuckets`: the buckets of jobs' sources and outputs, of which a default one is created where it is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from scriptmode._core.aws.s3_uris import SCHEME, parse_s3_uri
from scriptmode._core.aws.session import Connection
from scriptmode._core.platforms.sagemaker.job_defaults import default_bucket_of_role
from scriptmode._core.spec.names import account_of_role
from scriptmode.errors import CredentialsError, DataAccessError, DataNotFoundError


class JobBuckets:
    """The buckets of one account and Region; ``configured`` is the default one of the SageMaker config file."""

    def __init__(self, connection: Connection, configured: str | None) -> None:
        self._connection = connection
        self._named = (connection.default_bucket, configured)
        #: A default bucket that is known to exist.
        self._ready: str | None = None

    def upload(self, content: bytes, uri: str, kms_key: str | None, role: str | None) -> None:
        """Upload an object unless it exists.

        Without ``kms_key`` it is encrypted with the AWS managed key of S3, like the SageMaker SDK v2 does.
        """
        bucket, s3 = parse_s3_uri(uri).bucket, self._connection.s3
        owner = self._owner_of(bucket, role)
        if not s3.exists(uri, kms_key=kms_key, owner=owner):
            with _hint_at_owner(owner):
                try:
                    s3.upload_bytes(content, uri, kms_key=kms_key or "", owner=owner)
                except DataNotFoundError:
                    if not self._is_default(bucket, owner):
                        raise
                    self._create(bucket, owner)
                    s3.upload_bytes(content, uri, kms_key=kms_key or "", owner=owner)
        self._ready = bucket

    def prepare_output(self, path: str, role: str) -> None:
        """Create the default bucket where a job's output goes to it and it does not exist."""
        if not path.startswith(SCHEME):
            return
        bucket = parse_s3_uri(path).bucket
        owner = self._owner_of(bucket, role)
        if bucket == self._ready or not self._is_default(bucket, owner):
            return
        with _hint_at_owner(owner):
            if not self._connection.s3.has_bucket(bucket, owner=owner):
                self._create(bucket, owner)
        self._ready = bucket

    def _owner_of(self, bucket: str, role: str | None) -> str | None:
        """Return the account that must own the default bucket, which anyone could have created; else ``None``."""
        if role is None or bucket != default_bucket_of_role(role, self._connection.region):
            return None
        return account_of_role(role)

    def _is_default(self, bucket: str, owner: str | None) -> bool:
        """Return whether a bucket is the default, not chosen for this job: it is created where it is missing."""
        return bucket in self._named or owner is not None

    def _create(self, bucket: str, owner: str | None) -> None:
        """Create a default bucket; only the account in its name may create it."""
        if owner is not None:
            account = self._connection.caller_identity()["Account"]
            if account != owner:
                what = f"the role is one of account {owner}, but the credentials in use are of account {account}"
                step = "a job is started by the account of its role: correct role, or the profile"
                raise CredentialsError(what, step)
        self._connection.s3.create_bucket(bucket, region=self._connection.region)


@contextmanager
def _hint_at_owner(owner: str | None) -> Iterator[None]:
    """Add a hint to the error of a bucket that is named for the account ``owner`` and cannot be used."""
    try:
        yield
    except DataAccessError as error:
        if owner is None:
            raise
        raise DataAccessError(
            f"{error}. The bucket may belong to another account than {owner}, which is in its name: give output_path, "
            "or DefaultS3Bucket in the SageMaker config file"
        ) from error
