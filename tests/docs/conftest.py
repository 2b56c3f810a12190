"""The environment in which documents are executed: a directory like a clone, a data directory, and moto as AWS."""

import io
import json
import os
import sys
import tarfile
import warnings
from pathlib import Path

import pytest
from docs.documents import ROOT
from docs.reader import Reader, end

from scriptmode import TrainingJob
from scriptmode.platforms.local import LocalPlatform

#: The content of the account that the guides use: a bucket, a role, and the models of jobs that they download.
BUCKET, ROLE = "bucket", "training"
OBJECTS = {"train/part-0": b"1\n2\n3\n", "train/part-1": b"4\n5\n6\n", "eval/part-0": b"7\n"}
MODELS = ("vision-1",)


@pytest.fixture(scope="session")
def account():
    """The environment variables with which boto3 uses moto, with the credentials of a role."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # moto's own deprecations
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        endpoint = "http://{}:{}".format(*server.get_host_and_port())
        yield {"AWS_ENDPOINT_URL": endpoint, "AWS_DEFAULT_REGION": "eu-west-1", **fill_account(endpoint)}
        server.stop()


def fill_account(endpoint):
    """Create the bucket and the role; return the role's credentials."""
    import boto3

    session = boto3.Session(aws_access_key_id="key", aws_secret_access_key="secret", region_name="eu-west-1")
    s3, iam, sts = (session.client(service, endpoint_url=endpoint) for service in ("s3", "iam", "sts"))
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    models = {f"models/{name}/output/model.tar.gz": archive() for name in MODELS}
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


def archive():
    """Return the archive of a job's model."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        member = tarfile.TarInfo("weights.txt")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"0.5\n"))
    return buffer.getvalue()


@pytest.fixture
def reader(tmp_path, account):
    """A reader in a directory with the content of a clone."""
    folder, home, data = tmp_path / "clone", tmp_path / "home", tmp_path / "data"
    folder.mkdir()
    home.mkdir()
    for name in ("notebooks", "container", "tests", "Makefile"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.prefix))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "SCRIPTMODE_", "SAGEMAKER_", "SM_"))}  # fmt: skip
    environment = {
        **kept,
        **account,
        "HOME": str(home),
        # The pipe reader's binary is compiled once for all documents.
        "XDG_CACHE_HOME": os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "SCRIPTMODE_DATA_DIR": str(data),
        "SCRIPTMODE_VIEW": "plain",
        "TERM": "dumb",
        "COLUMNS": "120",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "PYTHONUNBUFFERED": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    reader = Reader(folder, tmp_path / "state", environment)
    yield reader
    reader.close()
    if data.exists():
        platform = LocalPlatform(data_dir=data)
        for summary in TrainingJob.list(platform, status="InProgress"):
            end(TrainingJob(summary["TrainingJobName"], platform))
