"""A source on S3, served by moto on this machine."""

import boto3
import pytest
from fakes.host_folders import pack, write_files, write_host
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


@pytest.fixture
def bucket():
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    keys = {name.removeprefix("AWS_").lower(): value for name, value in KEYS.items()}
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=keys["default_region"],
        aws_access_key_id=keys["access_key_id"],
        aws_secret_access_key=keys["secret_access_key"],
    )
    client.create_bucket(Bucket="sources")
    yield client, {**KEYS, "AWS_ENDPOINT_URL": endpoint}
    server.stop()


def test_a_source_is_fetched_from_s3(tmp_path, launch, bucket):
    client, variables = bucket
    archive = pack(tmp_path / "a.tar.gz", write_files(tmp_path / "s", {"train.py": "print('from S3')"}))
    client.upload_file(str(archive), "sources", "job/source/sourcedir.tar.gz")
    uri = "s3://sources/job/source/sourcedir.tar.gz"
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=uri)
    launcher = launch(base, **variables)
    assert launcher.wait() == 0, launcher.output
    assert "from S3" in launcher.output


def test_a_source_that_is_not_there_is_named(tmp_path, launch, bucket):
    _, variables = bucket
    uri = "s3://sources/absent.tar.gz"
    base = write_host(tmp_path / "algo-1", sagemaker_program="train.py", sagemaker_submit_directory=uri)
    launcher = launch(base, **variables)
    assert launcher.wait() == 1
    assert launcher.failure.startswith("algo-1, source: exit code 1\n")
    assert f"{uri} cannot be downloaded" in launcher.failure
    assert "Traceback" not in launcher.failure
