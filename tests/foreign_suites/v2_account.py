"""An AWS account of moto that has every role and bucket which a program names, and from which a training request returns."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Operations whose request ends a program.
TRAINING = ("CreateTrainingJob", "CreateHyperParameterTuningJob")
REGION = "us-west-2"
TRUST = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}]}'


class Requested(BaseException):
    """A training job was requested, with a request that the service's model accepts."""

    def __init__(self, operation: str, request: dict[str, Any]) -> None:
        super().__init__(operation)
        self.operation, self.request = operation, request


@contextmanager
def account(profiles: set[str]) -> Iterator[None]:
    """Run with an account in place of AWS, as a role of it; the settings have these profiles."""
    import boto3
    import botocore.client
    from moto import mock_aws

    home = Path(os.environ["HOME"])
    settings = "".join(f"[{profile}]\naws_access_key_id=key\naws_secret_access_key=secret\n" for profile in profiles)
    (home / ".aws").mkdir()
    (home / ".aws" / "credentials").write_text(settings, encoding="utf-8")
    os.environ.update(AWS_DEFAULT_REGION=REGION, AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret")
    send = botocore.client.BaseClient._make_api_call
    with mock_aws():
        role = boto3.client("iam").create_role(RoleName="notebook", AssumeRolePolicyDocument=TRUST)["Role"]["Arn"]
        found = boto3.client("sts").assume_role(RoleArn=role, RoleSessionName="notebook")["Credentials"]
        os.environ.update(
            AWS_ACCESS_KEY_ID=found["AccessKeyId"],
            AWS_SECRET_ACCESS_KEY=found["SecretAccessKey"],
            AWS_SESSION_TOKEN=found["SessionToken"],
        )
        botocore.client.BaseClient._make_api_call = lambda *call: _call(send, *call)
        try:
            yield
        finally:
            botocore.client.BaseClient._make_api_call = send


def _call(send: Any, client: Any, operation: str, request: dict[str, Any]) -> Any:
    """Call a service; create the role or the bucket that it lacks, and call it again."""
    import botocore.exceptions

    try:
        answer = send(client, operation, request)
    except botocore.exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        if operation == "GetRole" and code == "NoSuchEntity":
            send(client, "CreateRole", {"RoleName": request["RoleName"], "AssumeRolePolicyDocument": TRUST})
        elif code == "NoSuchBucket" or (operation, code) == ("HeadBucket", "404"):
            _create_bucket(send, client, request["Bucket"])
        else:
            raise
        answer = send(client, operation, request)
    if operation in TRAINING:
        raise Requested(operation, json.loads(json.dumps(request, default=str)))
    return answer


def _create_bucket(send: Any, client: Any, name: str) -> None:
    region = client.meta.region_name
    where = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    send(client, "CreateBucket", {"Bucket": name, **where})
