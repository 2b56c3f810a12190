"""`Session`: an account, a Region and a default bucket, with the names of the SageMaker SDK v2's session."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

from scriptmode._core.aws import local_bucket
from scriptmode._core.aws.iam_role import find_execution_role, resolve_role_arn
from scriptmode._core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS
from scriptmode._core.aws.s3_transfers import Store, decode_text, parse_path, upload_path
from scriptmode._core.aws.s3_uris import LOCAL_BUCKET, SCHEME, is_on_this_machine, parse_s3_uri
from scriptmode._core.aws.sagemaker_config import SageMakerConfig
from scriptmode._core.aws.session import Connection, default_bucket_name
from scriptmode._core.machine.clock import Clock
from scriptmode._core.platforms.job_platforms import find_job_platform, find_tuning_platform
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.hosts import LOCAL_ACCOUNT, LOCAL_REGION
from scriptmode.errors import CredentialsError, DataAccessError, invalid

_T = TypeVar("_T")


class Session:
    """An AWS account with a default bucket; without AWS credentials, this machine with a directory as the bucket.

    The estimators, ``attach`` and `get_execution_role` take it as ``sagemaker_session``. Without credentials, jobs on
    this machine read and write the bucket's ``s3://`` URIs as files below the data directory, and Amazon SageMaker
    is refused.

    The attribute ``sagemaker_session`` of estimators, tuners and jobs is always one: the `Session` that was given; one
    that wraps the boto3 or ``sagemaker`` session that was given, is equal to it, and has its other attributes too; or
    one of boto3's own settings. What does not exist is a `DataNotFoundError` or, a job, a `JobNotFoundError`.

    Args:
        boto_session: A ``boto3.Session``; by default boto3's own settings.
        sagemaker_client: A boto3 client of Amazon SageMaker; by default one of ``boto_session``.
        sagemaker_runtime_client: What the attribute of this name reads as; by default a client of ``boto_session``.
        default_bucket: Name of the default bucket in S3, which `default_bucket` creates if it does not exist; by
            default that of the SageMaker config file, else ``sagemaker-<region>-<account>``.
        default_bucket_prefix: Beginning of keys in the default bucket; by default the config file's.
        local_mode: Whether the bucket is a directory of this machine; by default where there are no AWS credentials.

    Raises:
        CredentialsError: There are credentials but no Region, or AWS's settings name a profile that does not exist.
        SpecError: An argument is wrong.
    """

    #: Whether it is equal to the session that it was made of, which has all its settings.
    _is_wrapper = False

    def __init__(
        self,
        boto_session: object = None,
        sagemaker_client: object = None,
        sagemaker_runtime_client: object = None,
        *,
        default_bucket: str | None = None,
        default_bucket_prefix: str | None = None,
        local_mode: bool | None = None,
    ) -> None:
        _check_arguments(boto_session, sagemaker_client, default_bucket, local_mode)
        self._given = boto_session
        self._sagemaker_client = sagemaker_client
        self._runtime_client = sagemaker_runtime_client
        # The names under which estimators look for them, also in sessions of the SageMaker SDK.
        self._default_bucket = None if default_bucket is None else _check_bucket_name("default_bucket", default_bucket)
        self.default_bucket_prefix = default_bucket_prefix
        self._settings = Connection(boto_session)
        #: The platform of `describe_training_job` and the others; ``None`` looks for the one that has the job.
        self._platform: Platform | None = None
        if local_mode is None and sagemaker_client is None and self.local_mode:
            _fall_back(default_bucket)
            local_mode = True
        self.local_mode = bool(local_mode)
        _ = self.boto_region_name  # raises where there is none

    @cached_property
    def local_mode(self) -> bool:
        """Whether the session is one of this machine: by default where there are no AWS credentials."""
        # A fake session has none to look up.
        is_fake = self._given is not None and not hasattr(self._given, "get_credentials")
        return not is_fake and not self._settings.credentials_source

    @cached_property
    def boto_region_name(self) -> str:
        """The Region; without credentials that of AWS's settings, else us-east-1."""
        try:
            return self._settings.region
        except CredentialsError:
            if not self.local_mode:
                raise
            return LOCAL_REGION

    @cached_property
    def _connection(self) -> Connection:
        is_without_region = self.local_mode and self._given is None
        return Connection(region=self.boto_region_name) if is_without_region else self._settings

    def __repr__(self) -> str:
        where = "local_mode=True" if self.local_mode else f"boto_region_name={self.boto_region_name!r}"
        return f"Session({where})"

    def __eq__(self, other: object) -> bool:
        """Return whether the other is a `Session` with equal arguments, or the session that this one wraps."""
        if isinstance(other, Session):
            return self is other or self._arguments == other._arguments
        return self._given is other if self._given is not None and self._is_wrapper else NotImplemented

    def __hash__(self) -> int:
        return hash(Session if self._given is None else self._given)

    @property
    def _arguments(self) -> tuple[object, ...]:
        clients = (self._sagemaker_client, self._runtime_client)
        return (self._given, *clients, self._default_bucket, self.default_bucket_prefix, self.local_mode)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the boto3 or ``sagemaker`` session that this wraps; called for names of none here."""
        if not name.startswith("_"):
            wrapped = self.boto_session if self._given is None else self._given
            if hasattr(wrapped, name):
                return getattr(wrapped, name)
        raise AttributeError(f"'Session' object has no attribute {name!r}")

    @property
    def boto_session(self) -> Any:
        """The ``boto3.Session`` of all calls."""
        return self._connection.boto_session

    @property
    def sagemaker_client(self) -> Any:
        """The boto3 client of Amazon SageMaker; for a session of this machine, one that describes and stops its jobs.

        The operations that a session of this machine does not have raise `CredentialsError`.
        """
        if self.local_mode:
            return _LocalClient(
                describe_training_job=_named("TrainingJobName", self.describe_training_job),
                stop_training_job=_named("TrainingJobName", self.stop_training_job),
                describe_hyper_parameter_tuning_job=_named("HyperParameterTuningJobName", self.describe_tuning_job),
                stop_hyper_parameter_tuning_job=_named("HyperParameterTuningJobName", self.stop_tuning_job),
            )
        return self._sagemaker_client or self._connection.client("sagemaker")

    @property
    def sagemaker_runtime_client(self) -> Any:
        """The client that invokes endpoints: the given one, the wrapped session's, or boto3's; scriptmode has none."""
        own = self._runtime_client or getattr(self._given, "sagemaker_runtime_client", None)
        return own or self._connection.client("sagemaker-runtime")

    @property
    def sagemaker_config(self) -> Any:
        """The content of the SageMaker config file that the session brings along; ``None`` if it is read."""
        return self._connection.settings

    @property
    def clock(self) -> Clock:
        """The clock of waiting, which fake sessions bring along."""
        return self._connection.clock

    @property
    def uses_own_settings(self) -> bool:
        """Whether AWS is called with other settings than boto3's own, which are those of jobs on this machine."""
        return self._given is not None or self._sagemaker_client is not None

    def account_id(self) -> str:
        """Return the number of the account; ``000000000000`` for this machine.

        Raises:
            CredentialsError: AWS does not accept the credentials.
        """
        return LOCAL_ACCOUNT if self.local_mode else self._connection.caller_identity()["Account"]

    def get_caller_identity_arn(self) -> str:
        """Return the ARN of the role that `get_execution_role` finds for this session, with the same errors."""
        return find_execution_role(self)

    def expand_role(self, role: str) -> str:
        """Return the ARN of a role, which is looked up in IAM if it is a name; raise `SpecError` if there is none."""
        return resolve_role_arn(role, self._connection)

    def default_bucket(self) -> str:
        """Return the name of the default bucket, which is created if it does not exist.

        Raises:
            DataError: The bucket cannot be created.
            DataAccessError: The bucket is another account's, or the credentials do not allow its use.
        """
        return LOCAL_BUCKET if self.local_mode else self._ready_bucket

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
            raise DataAccessError(f"{error.message}", "name a bucket: Session(default_bucket=...)") from error
        return name

    def upload_data(
        self,
        path: str | os.PathLike[str],
        bucket: str | None = None,
        key_prefix: str = "data",
        callback: Callable[[int], object] | None = None,
        extra_args: Mapping[str, object] | None = None,
    ) -> str:
        """Upload a file, or all files below a directory; return the URI of the object or of the prefix.

        Args:
            path: The file or the directory.
            bucket: The bucket; by default the default bucket.
            key_prefix: Beginning of the objects' keys.
            callback: A function that is called with the number of bytes of each part that was uploaded.
            extra_args: boto3's ``ExtraArgs``, such as ``{"ServerSideEncryption": "aws:kms"}``; a bucket that is a
                directory ignores them.

        Raises:
            DataNotFoundError: There is no such file or directory, or no such bucket.
            DataError: The directory is empty, or a file cannot be read or stored.
        """
        uri = self._uri(bucket, key_prefix)
        return upload_path(self.store_of(uri), parse_path("path", path), uri, extra_args, callback)

    def upload_string_as_file_body(self, body: str, bucket: str | None, key: str, kms_key: str | None = None) -> str:
        """Store a text as an object; return its URI.

        Args:
            body: The text, stored as UTF-8.
            bucket: The bucket; ``None`` for the default one.
            key: The object's key.
            kms_key: The KMS key that encrypts the object.
        """
        uri = self._uri(bucket, key)
        if not isinstance(body, str):
            raise invalid("body", f"is {type(body).__name__}", "give a string; S3Uploader.upload_bytes stores bytes")
        self.store_of(uri).upload_bytes(body.encode(), uri, kms_key=kms_key)
        return uri

    def upload_string(self, body: str, key: str, bucket: str | None = None) -> str:
        """Store a text as an object of the default bucket, or of ``bucket``; return its URI."""
        return self.upload_string_as_file_body(body, bucket, key)

    def download_data(self, path: str | os.PathLike[str], bucket: str, key_prefix: str = "") -> list[str]:
        """Download an object, or all objects below a prefix, into a directory; return the paths of the files.

        Where there are no such objects, it warns.

        Args:
            path: The directory, which is created if it does not exist.
            bucket: The bucket.
            key_prefix: The object's key, or a prefix as a directory.

        Raises:
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
            DataError: The object is not UTF-8 text.
        """
        uri = self._uri(bucket, key_prefix)
        return decode_text(self.store_of(uri).read_bytes(uri), uri)

    def list_s3_files(self, bucket: str, key_prefix: str) -> list[str]:
        """Return the keys that begin with ``key_prefix``, in their order."""
        uri = self._uri(bucket, key_prefix)
        return [parse_s3_uri(file).key for file in self.store_of(uri).uris(uri)]

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
        return f"{SCHEME}{_check_bucket_name('bucket', bucket)}/{key}"

    def describe_training_job(self, job_name: str) -> dict[str, Any]:
        """Return the description of a training job: the response of DescribeTrainingJob.

        Without settings of its own, a session finds jobs of this machine, and then those of Amazon SageMaker.
        """
        return self._platform_of(job_name).describe(job_name).response

    def stop_training_job(self, job_name: str) -> None:
        """Request that a training job stops, and return at once; a job that ended is left as it is."""
        self._platform_of(job_name).stop(job_name)

    def wait_for_job(self, job: str, poll: float = 5) -> dict[str, Any]:
        """Wait for a job and print its statuses; return its description. Errors are those of `TrainingJob.wait`.

        Args:
            job: The job's name.
            poll: Seconds between two requests for the job's description.
        """
        from scriptmode._core.handle import log_lines, outcome

        platform = self._platform_of(job)
        description = outcome.wait_for_end(job, platform, None, poll, show=log_lines.StatusLines())
        outcome.raise_for_status(description, platform)
        return description.response

    def logs_for_job(
        self,
        job_name: str,
        wait: bool = False,  # noqa: FBT001, FBT002 - positional in the SageMaker SDK
        poll: float = 10,
        log_type: str = "All",
        timeout: float | None = None,
    ) -> None:
        """Print the log lines of a training job, each with the name of its host; errors are those of `wait_for_job`.

        Args:
            job_name: The job's name.
            wait: Whether to print more lines, and status lines, until the job has ended.
            poll: Seconds between two requests for the job's description, once its log has ended.
            log_type: One of the SageMaker SDK's words ``All``, ``Training``, ``Rules`` and ``None``.
            timeout: Seconds for which to wait for the end, once the log has ended; by default there is no limit.
        """
        from scriptmode._core.handle import log_filter, log_lines, outcome
        from scriptmode._core.spec.arguments import shows_logs

        platform = self._platform_of(job_name)
        if shows_logs(log_type):
            status, lines = log_lines.StatusLines() if wait else None, log_filter.ALL_LINES
            log_lines.show(log_filter.filtered_events(platform, job_name, lines, follow=wait, on_description=status))
        if wait:
            outcome.raise_for_status(outcome.wait_for_end(job_name, platform, timeout, poll), platform)

    def describe_tuning_job(self, job_name: str) -> dict[str, Any]:
        """Return the description of a tuning job: the response of DescribeHyperParameterTuningJob."""
        return self._tuning_platform_of(job_name).tuning.describe(job_name)

    def stop_tuning_job(self, name: str) -> None:
        """Request that a tuning job and its training jobs stop, and return at once."""
        self._tuning_platform_of(name).tuning.stop(name)

    def _platform_of(self, job_name: str) -> Platform:
        return self._platform or find_job_platform(job_name, self._chosen)

    def _tuning_platform_of(self, job_name: str) -> Platform:
        return self._platform or find_tuning_platform(job_name, self._chosen)

    @property
    def _chosen(self) -> Session | None:
        """What `find_job_platform` is given: ``None`` for both this machine and Amazon SageMaker."""
        return self if self.uses_own_settings or self.local_mode else None

    @cached_property
    def _config(self) -> SageMakerConfig:
        return self._connection.read_config("the config of boto_session")


def _check_bucket_name(argument: str, bucket: object) -> str:
    """Return a bucket's name; raise `SpecError` for what is none."""
    if isinstance(bucket, str) and bucket and "/" not in bucket:
        return bucket
    name = parse_s3_uri(bucket).bucket if isinstance(bucket, str) and bucket.startswith(SCHEME) else ""
    raise invalid(argument, f"is {bucket!r}", f"give the bucket's name: {name!r}" if name else "give a bucket's name")


class _LocalClient:
    """A boto3 client of Amazon SageMaker of a session of this machine: it has ``operations`` alone."""

    def __init__(self, **operations: Callable[[str], object]) -> None:
        vars(self).update(operations)

    def __getattr__(self, operation: str) -> Any:
        """Raise the error of an operation that needs an account."""
        if operation.startswith("_"):
            raise AttributeError(operation)
        raise CredentialsError(
            f"sagemaker_client.{operation} calls Amazon SageMaker, but this is a session of this machine",
            "use TrainingJob.attach(name) and TrainingJob.list() for jobs on this machine, or "
            + HOW_TO_GIVE_CREDENTIALS,
        )


def _named(argument: str, call: Callable[[str], _T]) -> Callable[..., _T]:
    """Return a call by the name that the only argument has in boto3."""
    return lambda **given: call(given.pop(argument), **given)


def wrap_session(given: Any) -> Session:
    """Return a session as a `Session`: itself, or one that wraps a boto3 session or one of an installed ``sagemaker``.

    Raises `SpecError` for other objects.
    """
    if isinstance(given, Session):
        return given
    is_local = bool(getattr(given, "local_mode", False))
    return _create(given, Connection(given.boto_session if is_local else given), local_mode=is_local)


def session_of_platform(platform: Platform) -> Session:
    """Return the session of a platform's jobs. Nothing is looked up before it is needed."""
    connection: Connection | None = getattr(platform, "connection", None)
    if connection is None:
        # Jobs of this machine read and write S3 with boto3's own settings.
        return _create(None, Connection(), _platform=platform)
    if connection.given is None:
        return _create(None, connection, _platform=platform, local_mode=False)
    return wrap_session(connection.given)


def _create(given: object, connection: Connection, **attributes: Any) -> Session:
    made = Session.__new__(Session)
    bucket, prefix = connection.default_bucket, connection.default_bucket_prefix
    fixed = {"_given": given, "_settings": connection, "_is_wrapper": True}
    buckets = {"_default_bucket": bucket, "default_bucket_prefix": prefix}
    absent = dict.fromkeys(("_platform", "_sagemaker_client", "_runtime_client"))
    vars(made).update({**absent, **fixed, **buckets, **attributes})
    return made


def _fall_back(default_bucket: str | None) -> None:
    """Warn that a session without credentials is one of this machine; raise where it has a bucket in S3."""
    what = "there are no AWS credentials"
    if default_bucket is not None:
        raise CredentialsError(
            f"default_bucket is {default_bucket!r}, a bucket in S3, but {what}",
            f"{HOW_TO_GIVE_CREDENTIALS}; or leave it out to use a directory of this machine",
            argument="default_bucket",
        )
    warnings.warn(
        f"{what}: this session's bucket is a directory of this machine, {str(local_bucket.bucket_folder())!r}, for "
        "jobs on this machine (instance_type 'local_process' or 'local'); Session(local_mode=True) says so "
        "without this warning",
        UserWarning,
        stacklevel=3,
    )


def _check_arguments(boto_session: object, client: object, default_bucket: object, local_mode: object) -> None:
    if local_mode not in (None, True, False):
        raise invalid("local_mode", f"is {local_mode!r}", "give True or False, or leave it out")
    is_session = hasattr(boto_session, "client") and hasattr(boto_session, "region_name")
    if boto_session is not None and (isinstance(boto_session, type) or not is_session):
        raise invalid("boto_session", f"is {boto_session!r}", "give boto3.Session(...), or leave it out")
    if local_mode:
        given = {"boto_session": boto_session, "sagemaker_client": client, "default_bucket": default_bucket}
        for name, value in given.items():
            if value is not None:
                raise invalid(name, f"is {value!r}, but local_mode is True, which uses this machine", "keep one")
