"""An AWS account of moto, with what the guides use in theirs."""

import json
import urllib.request
from contextlib import contextmanager

from fakes.archives import packed
from fakes.aws_server import aws_server

#: The content of the account that the guides use: a bucket, a role, and the models of jobs that they download.
BUCKET, ROLE = "bucket", "training"
OBJECTS = {"train/part-0": b"1\n2\n3\n", "train/part-1": b"4\n5\n6\n", "eval/part-0": b"7\n"}
MODELS = ("vision-1",)


@contextmanager
def running_account():
    """Run moto with an account that no other document changed; yield the variables with which boto3 uses it as a role."""
    with aws_server() as endpoint:
        urllib.request.urlopen(f"{endpoint}/moto-api/reset", data=b"", timeout=600).close()
        yield {"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "eu-west-1", **fill_account(endpoint)}


def fill_account(endpoint):
    """Create the bucket and the role; return the role's credentials."""
    import boto3

    session = boto3.Session(aws_access_key_id="key", aws_secret_access_key="secret", region_name="eu-west-1")
    s3, iam, sts = (session.client(service, endpoint_url=endpoint) for service in ("s3", "iam", "sts"))
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    models = {f"models/{name}/output/model.tar.gz": packed({"weights.txt": "0.5\n"}) for name in MODELS}
    for key, content in {**OBJECTS, **models}.items():
        s3.put_object(Bucket=BUCKET, Key=key, Body=content)
    trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}]}  # fmt: skip
    role = iam.create_role(RoleName=ROLE, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    found = sts.assume_role(RoleArn=role, RoleSessionName="reader")["Credentials"]
    return {
        "AWS_ACCESS_KEY_ID": found["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": found["SecretAccessKey"],
        "AWS_SESSION_TOKEN": found["SessionToken"],
    }
