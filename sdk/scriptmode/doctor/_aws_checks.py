"""Checks for jobs on Amazon SageMaker: credentials, Region, config file, and the service itself."""

from __future__ import annotations

import os

from scriptmode._core.aws import sagemaker_config
from scriptmode._core.aws.s3 import S3
from scriptmode._core.aws.s3_errors import HOW_TO_GIVE_CREDENTIALS
from scriptmode._core.aws.session import Connection
from scriptmode.errors import PlatformError


def credentials() -> str:
    """Query the identity of the credentials."""
    connection = Connection()
    if not (source := connection.credentials_source):
        raise PlatformError("none; Amazon SageMaker and s3:// URIs need them", HOW_TO_GIVE_CREDENTIALS)
    try:
        client = connection.brief_client("sts")
        response = connection.call("the caller's identity", client.get_caller_identity)
    except PlatformError as error:
        raise PlatformError(f"from {source}, but {error.message}", error.advice) from error
    return f"{response['Arn']}, from {source}"


def region() -> str:
    """Return the Region of jobs."""
    return str(Connection().region)


def service() -> str:
    """List a training job: the credentials must allow the call."""
    connection = Connection()
    client = connection.brief_client("sagemaker")
    connection.call("training jobs cannot be listed", lambda: client.list_training_jobs(MaxResults=1))
    return f"answers in {connection.region}"


def config_file() -> str:
    """Read the SageMaker config files like a job."""
    config = sagemaker_config.read_config(os.environ, S3().read_bytes)
    return f"role {config.role}" if config.role else "none has a role: give role= to the estimator"
