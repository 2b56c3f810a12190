"""Amazon S3, or any endpoint that boto3's standard settings name. Every botocore error leaves as one of ours."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from scriptmode.errors import CredentialsError, DataAccessError, DataError, DataNotFoundError, PlatformError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SCHEME = "s3://"
#: Up to this size one plain GET is faster than s3transfer's HEAD and ranged GETs.
SMALL_OBJECT = 8 * 1024 * 1024
HOW_TO_GIVE_CREDENTIALS = (
    "run 'aws configure', set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile in AWS_PROFILE"
)
_CREDENTIAL_CODES = frozenset(
    {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException", "InvalidToken"}
)
#: Another process of this account makes the bucket at the same moment, or has just made it.
_BEING_MADE = ("BucketAlreadyOwnedByYou", "OperationAborted")
_ADVICE = {
    "PermanentRedirect": "the bucket is in another Region; use one in the job's own",
    "SlowDown": "try again later",
    "InternalError": "try again later",
    "ServiceUnavailable": "try again later",
    "RequestTimeTooSkewed": "set this machine's clock",
    "BucketAlreadyExists": "another account has a bucket of that name; give output_path",
}
_MISSING_CODES = frozenset({"404", "NoSuchKey", "NotFound"})
_DENIED_CODES = frozenset({"403", "AccessDenied", "Forbidden", "AllAccessDisabled"})


@dataclass(frozen=True)
class S3Location:
    """A bucket, and a key or the beginning of keys in it."""

    bucket: str
    key: str

    def __str__(self) -> str:
        return f"{SCHEME}{self.bucket}/{self.key}"


@dataclass(frozen=True)
class S3Object:
    """One stored object; ``size`` in bytes."""

    location: S3Location
    size: int


def parse(uri: str) -> S3Location:
    """Take an ``s3://bucket/key`` URI apart; raise `DataError` for anything else."""
    bucket, _, key = uri[len(SCHEME) :].partition("/")
    if not uri.startswith(SCHEME) or not bucket:
        raise DataError(f"{uri!r} is not an S3 URI; write {SCHEME}bucket/key")
    return S3Location(bucket, key)


def require_credentials(uri: str) -> None:
    """Raise `CredentialsError` when boto3's standard settings give no credentials for ``uri``; asks no bucket."""
    import botocore.session

    with _translated(uri):
        if botocore.session.Session().get_credentials() is None:
            raise CredentialsError(f"{uri}: there are no AWS credentials; {HOW_TO_GIVE_CREDENTIALS}")


class S3:
    """An S3 client whose methods raise only `scriptmode.errors`; safe to share between threads."""

    def __init__(self, client: Any = None) -> None:
        self._client = client

    def objects(self, prefix: str) -> Iterator[S3Object]:
        """Yield every object whose key begins with the URI's, in the order of keys (UTF-8 bytes)."""
        location = parse(prefix)
        with _translated(prefix):
            pages = self._connected(prefix).get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=location.bucket, Prefix=location.key):
                for item in page.get("Contents", ()):
                    yield S3Object(S3Location(location.bucket, item["Key"]), int(item["Size"]))

    def exists(self, uri: str, *, kms_key: str | None = None, owner: str | None = None) -> bool:
        """Say whether there is an object of exactly that key, encrypted with ``kms_key``; no where one may not know.

        Without the right to list, S3 answers for a missing object as for a forbidden one: 403 (HeadObject, S3 API).
        """
        location = parse(uri)
        try:
            with _translated(uri):
                found = self._connected(uri).head_object(Bucket=location.bucket, Key=location.key, **_owned(owner))
        except (DataNotFoundError, DataAccessError):
            return False
        # S3 answers with the key's ARN, whichever way it was named; what an alias stands for is not told.
        used = str(found.get("SSEKMSKeyId", ""))
        return kms_key is None or used.endswith(kms_key.rpartition("/")[2]) or (bool(used) and "alias/" in kms_key)

    def download(self, item: S3Object, path: Path) -> None:
        """Write an object's bytes to ``path``."""
        bucket, key = item.location.bucket, item.location.key
        with _translated(str(item.location)):
            client = self._connected(str(item.location))
            if item.size > SMALL_OBJECT:
                with _unwrapped():
                    client.download_file(bucket, key, str(path))
                return
            body = client.get_object(Bucket=bucket, Key=key)["Body"]
            import shutil

            with body, path.open("wb") as file:
                shutil.copyfileobj(body, file, 1024 * 1024)

    def upload_file(self, path: Path, uri: str) -> None:
        """Store a file's bytes at ``uri``."""
        location = parse(uri)
        with _translated(uri), _unwrapped():
            self._connected(uri).upload_file(str(path), location.bucket, location.key)

    def read_bytes(self, uri: str) -> bytes:
        """Return an object's bytes."""
        location = parse(uri)
        with _translated(uri):
            body = self._connected(uri).get_object(Bucket=location.bucket, Key=location.key)["Body"]
            with body:
                return bytes(body.read())

    def fetch(self, uri: str, folder: Path) -> list[Path]:
        """Copy the object of that key into ``folder``, or else all objects below it; return the files written."""
        key = parse(uri).key
        found = {item.location.key: item for item in self.objects(uri)}
        below = f"{key.rstrip('/')}/".lstrip("/")
        names = {item: name[len(below) :] for name, item in found.items() if name.startswith(below)}
        if key in found and not key.endswith("/"):
            names = {found[key]: key.rpartition("/")[2]}
        written = []
        for item, name in names.items():
            if not name or name.endswith("/"):
                continue
            path = folder / name
            if folder.resolve() not in path.resolve().parents:
                raise DataError(f"{item.location} would be written outside of {str(folder)!r}; it is left alone")
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                self.download(item, path)
            except OSError as error:
                raise DataError(f"{item.location} cannot be stored as {str(path)!r}: {error}") from error
            written.append(path)
        if not written:
            raise DataNotFoundError(f"{uri}: there is no such object; correct the URI")
        return written

    def upload_bytes(self, content: bytes, uri: str, *, kms_key: str | None = None, owner: str | None = None) -> None:
        """Store bytes at ``uri``, encrypted with ``kms_key``; ``""`` is the key that AWS keeps for S3 in each account.

        ``owner`` is the account that the bucket must belong to.
        """
        location = parse(uri)
        key = {} if kms_key is None else {"ServerSideEncryption": "aws:kms"}
        if kms_key:
            key["SSEKMSKeyId"] = kms_key
        with _translated(uri):
            self._connected(uri).put_object(
                Bucket=location.bucket, Key=location.key, Body=content, **key, **_owned(owner)
            )

    def has_bucket(self, bucket: str, *, owner: str | None) -> bool:
        """Say whether there is a bucket; raise `DataAccessError` where it is another account's than ``owner``."""
        uri = f"{SCHEME}{bucket}"
        try:
            with _translated(uri):
                self._connected(uri).head_bucket(Bucket=bucket, **_owned(owner))
        except DataNotFoundError:
            return False
        return True

    def create_bucket(self, bucket: str, *, region: str) -> None:
        """Make a bucket; fine where another process of the account makes it at the same moment."""
        uri = f"{SCHEME}{bucket}"
        # S3's first Region is the one that must not be named (CreateBucket, S3 API).
        place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
        with _translated(uri), _unless(*_BEING_MADE):
            self._connected(uri).create_bucket(Bucket=bucket, **place)

    def _connected(self, uri: str) -> Any:
        if self._client is None:
            require_credentials(uri)
            import boto3

            try:
                self._client = boto3.session.Session().client("s3")
            except ValueError as error:
                raise DataError(f"{uri}: {error}; correct AWS_ENDPOINT_URL or AWS_ENDPOINT_URL_S3") from error
        return self._client


def _owned(owner: str | None) -> dict[str, str]:
    return {"ExpectedBucketOwner": owner} if owner else {}


def credential_errors() -> tuple[type[Exception], ...]:
    """Name what botocore raises for want of credentials."""
    from botocore import exceptions

    return (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.ProfileNotFound,
        exceptions.SSOError,
        exceptions.TokenRetrievalError,
    )


@contextmanager
def _translated(uri: str) -> Iterator[None]:
    """Turn what boto3 raises into one of ours that names ``uri``."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise _translation(uri, error) from error


@contextmanager
def _unless(*codes: str) -> Iterator[None]:
    """Pass over what S3 refuses with one of these codes."""
    from botocore.exceptions import ClientError

    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") not in codes:
            raise


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Give back what boto3's transfers hide in errors of their own."""
    from boto3.exceptions import Boto3Error

    try:
        yield
    except Boto3Error as error:
        if isinstance(error.__context__, Exception):
            raise error.__context__ from error
        raise DataError(str(error)) from error


def _translation(uri: str, error: Exception) -> PlatformError:
    from botocore import exceptions

    if isinstance(error, exceptions.ClientError):
        return _service_translation(uri, error)
    if isinstance(error, credential_errors()):
        return CredentialsError(f"{uri}: {error}; {HOW_TO_GIVE_CREDENTIALS}")
    if isinstance(error, (exceptions.ConnectionError, exceptions.HTTPClientError)):
        return DataError(
            f"{uri}: the S3 endpoint cannot be reached: {error}; "
            "check the network and AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_S3 and AWS_REGION"
        )
    return DataError(f"{uri}: {error}")


def _service_translation(uri: str, error: Any) -> PlatformError:
    answer = error.response.get("Error", {})
    code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
    if code in _CREDENTIAL_CODES:
        return CredentialsError(
            f"{uri}: S3 does not accept the credentials ({code}: {message}); {HOW_TO_GIVE_CREDENTIALS}"
        )
    if code == "NoSuchBucket":
        return DataNotFoundError(
            f"{uri}: there is no bucket {parse(uri).bucket!r}; correct the URI or create the bucket"
        )
    if code in _MISSING_CODES:
        return DataNotFoundError(f"{uri}: there is no such object; correct the URI")
    if code in _DENIED_CODES:
        return DataAccessError(
            f"{uri}: access denied ({message or code}); the credentials in use must be allowed to use this place"
        )
    advice = _ADVICE.get(code, "")
    return DataError(f"{uri}: S3 answered {code}: {message}" + (f"; {advice}" if advice else ""))
