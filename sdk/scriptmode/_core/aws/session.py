"""The session, Region and clients of AWS calls, from any kind of session, and the translation of their errors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from scriptmode._core.aws.sagemaker_config import SageMakerConfig, parse_config, read_config
from scriptmode._core.machine.clock import SYSTEM, Clock
from scriptmode._core.spec.pipeline_variables import INSTEAD_OF_PIPELINES
from scriptmode.errors import CredentialsError, invalid

if TYPE_CHECKING:
    from scriptmode._core.aws.s3 import S3

_T = TypeVar("_T")
#: Seconds: longer than any response of these services takes. Botocore's 60 s would hold a dead connection too long.
_TIMEOUTS = {"connect_timeout": 10, "read_timeout": 30}
#: For a user who waits to see whether there is any answer at all.
_BRIEF_TIMEOUTS = {"connect_timeout": 3, "retries": {"total_max_attempts": 1}}


class Connection:
    """The clients of one session: a boto3 session, a ``sagemaker`` session (v2 or v3), or boto3's own settings.

    boto3 is imported by the first call that needs it. If the session has a ``clock``, waiting uses it. ``region``
    replaces the session's own.
    """

    def __init__(self, session: Any = None, *, region: str | None = None) -> None:
        if getattr(session, "local_mode", False):
            raise invalid(
                "sagemaker_session",
                f"is {session!r}, a session of local mode (of this machine, as without AWS credentials), but the "
                "instance type is Amazon SageMaker's",
                "give a session with credentials, or instance_type='local_process' to train on this machine",
            )
        if any(base.__name__ == "PipelineSession" for base in type(session).__mro__):
            what = "is a PipelineSession, which records pipeline steps instead of starting jobs"
            raise invalid("sagemaker_session", what, f"give a boto3.Session; {INSTEAD_OF_PIPELINES}")
        is_session = hasattr(session, "boto_session") or (
            hasattr(session, "client") and hasattr(session, "region_name")
        )
        if session is not None and (isinstance(session, type) or not is_session):
            what = f"is {session!r}"
            step = "give a boto3.Session, a scriptmode.Session or the session of an installed sagemaker"
            raise invalid("sagemaker_session", what, step)
        #: The session that was given; ``None`` for boto3's own settings.
        self.given = session
        self._region = region
        self._boto_session = getattr(session, "boto_session", session)
        self._clients: dict[str, object] = {}
        #: ARNs of roles by their names; each is looked up once.
        self.role_arns: dict[str, str] = {}
        self.clock: Clock = getattr(session, "clock", SYSTEM)

    @property
    def region(self) -> str:
        """The requested Region, else the session's; raises `CredentialsError` if none is set."""
        if self._region:
            return self._region
        if self.given is not None:
            region = getattr(self._boto_session, "region_name", None)
        else:
            # The common case, without importing boto3, which itself reads the first of the two alone.
            region = (
                os.environ.get("AWS_DEFAULT_REGION") or os.environ.get("AWS_REGION") or self.boto_session.region_name
            )
        if not region:
            raise CredentialsError(
                "no AWS region is set", "set AWS_DEFAULT_REGION or run 'aws configure'", argument="region"
            )
        return str(region)

    @property
    def boto_session(self) -> Any:
        """The boto3 session that clients are made from."""
        if self._boto_session is None:
            import boto3

            with _settings_of("the AWS settings"):
                self._boto_session = boto3.session.Session(region_name=self._region)
        return self._boto_session

    @property
    def settings(self) -> Any:
        """The ``sagemaker_config`` of a ``sagemaker`` session; ``None`` if the config file must be read."""
        return getattr(self.given, "sagemaker_config", None)

    @property
    def default_bucket(self) -> str | None:
        """The bucket that a ``sagemaker`` session was created with; its own default would need calls."""
        for name in ("_default_bucket", "_default_bucket_name_override"):
            if bucket := getattr(self.given, name, None):
                return str(bucket)
        return None

    @property
    def default_bucket_prefix(self) -> str | None:
        """The prefix in the bucket that a ``sagemaker`` session was created with."""
        prefix = getattr(self.given, "default_bucket_prefix", None)
        return str(prefix) if prefix else None

    def client(self, service: str) -> Any:
        """Return the boto3 client of a service, the same each time; raise `PlatformError` for wrong settings."""
        if service not in self._clients:
            own = {"sagemaker": "sagemaker_client", "s3": "s3_client"}.get(service)
            client = getattr(self.given, own, None) if own else None
            with _settings_of(f"the connection to {service}"):
                self._clients[service] = client or self._new_client(service)
        return self._clients[service]

    def call(self, subject: str, call: Callable[[], _T]) -> _T:
        """Return a call's result; boto3's errors become `scriptmode.errors` that name ``subject``."""
        from scriptmode._core.aws.error_translation import translate_errors

        with translate_errors(subject):
            return call()

    def list_all(self, subject: str, service: str, operation: str, key: str, arguments: Mapping[str, Any]) -> list[Any]:
        """Return the entries ``key`` of all pages of an operation's answer."""
        return self.call(
            subject, lambda: [*self.client(service).get_paginator(operation).paginate(**arguments).search(key)]
        )

    @cached_property
    def s3(self) -> S3:
        """The objects of Amazon S3, by this session's client."""
        from scriptmode._core.aws.s3 import S3

        return S3(self.call("Amazon S3", lambda: self.client("s3")))

    def read_config(self, whose: str) -> SageMakerConfig:
        """Return the settings that the session brings along, which errors call ``whose``, else the config files'."""
        if self.settings is not None:
            return parse_config(self.settings, whose)
        return read_config(os.environ, lambda uri: self.s3.read_bytes(uri))  # noqa: PLW0108 - `s3` makes a client

    def caller_identity(self) -> Mapping[str, str]:
        """Call GetCallerIdentity of STS: the account and the ARN of the credentials."""
        caller: Mapping[str, str] = self.call("the caller's identity", lambda: self.client("sts").get_caller_identity())
        return caller

    def brief_client(self, service: str, read_timeout: int = 3, **arguments: Any) -> Any:
        """Return a client without retries and with short timeouts; raise `PlatformError` for wrong settings."""
        with _settings_of(f"the connection to {service}"):
            return self._new_client(service, {**_BRIEF_TIMEOUTS, "read_timeout": read_timeout}, **arguments)

    @property
    def credentials_source(self) -> str:
        """The source of boto3's credentials, such as ``env`` or ``shared-credentials-file``; "" without any."""
        with _settings_of("the AWS credentials"):
            credentials = self.boto_session.get_credentials()
        return str(credentials.method) if credentials is not None else ""

    def _new_client(self, service: str, settings: dict[str, Any] = _TIMEOUTS, **arguments: Any) -> Any:
        from scriptmode._core.aws.direct_endpoints import create_client

        return create_client(self.boto_session, service, settings, region_name=self.region, **arguments)


def _settings_of(what: str) -> AbstractContextManager[None]:
    """Translate errors of boto3's settings; a request that calls nothing loads no translation."""
    from scriptmode._core.aws.error_translation import translate_setup_errors

    return translate_setup_errors(what)


def default_bucket_name(region: str, account: str) -> str:
    """Return the bucket that the SageMaker SDK creates for an account and a Region."""
    return f"sagemaker-{region}-{account}"
