"""Jobs of the local platform whose inputs and outputs are in S3, against a real S3 server."""

import io
import json
import tarfile

import pytest
from fakes.local_jobs import channel

from scriptmode.errors import CredentialsError, DataNotFoundError

READ = """
    import json, os
    root = os.environ["SM_CHANNEL_TRAIN"]
    found = {}
    for folder, _, files in os.walk(root):
        for file in files:
            with open(os.path.join(folder, file), "rb") as opened:
                found[os.path.relpath(os.path.join(folder, file), root)] = len(opened.read())
    with open(os.path.join(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]), "w") as file:
        json.dump(found, file)
"""


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.bucket(
        "training",
        {
            "train/a": b"1",
            'train/it\'s "b"/ü': b"22",
            "train/big": b"x" * (9 * 1024 * 1024),
            "train/empty": b"",
            "train-other/c": b"333",
            "folder/": b"",
        },
    )


def stored(s3, bucket, key):
    body = s3.client.get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        return {name: tar.extractfile(name).read() for name in tar.getnames()}


def test_a_job_reads_from_s3_and_writes_to_s3(jobs, s3, bucket):
    description = jobs.run(
        READ, hosts=2, channels=[channel("train", f"s3://{bucket}/train/")], output=f"s3://{bucket}/out"
    )
    assert description["TrainingJobStatus"] == "Completed", description
    assert description["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{bucket}/out/job-1/output/model.tar.gz"
    model = stored(s3, bucket, "out/job-1/output/model.tar.gz")
    expected = {"a": 1, 'it\'s "b"/ü': 2, "big": 9 * 1024 * 1024, "empty": 0}
    assert {host: json.loads(content) for host, content in model.items()} == {"algo-1": expected, "algo-2": expected}
    assert not (jobs.data_dir / "jobs/job-1/output/model.tar.gz").exists()


def test_objects_in_s3_are_dealt_out_by_key(jobs, s3, bucket):
    description = jobs.run(READ, hosts=3, channels=[channel("train", f"s3://{bucket}/train/", "ShardedByS3Key")])
    shares = [list(json.loads(content)) for _, content in sorted(jobs.model(description).items())]
    assert sorted(map(len, shares)) == [1, 1, 2]
    assert sorted(name for share in shares for name in share) == ["a", "big", "empty", 'it\'s "b"/ü']


@pytest.mark.parametrize(
    ("uri", "cause"),
    [
        ("s3://no-such-bucket/train", "there is no bucket 'no-such-bucket'"),
        ("s3://training/nothing-here", "no object's key begins with it"),
        ("s3://training/folder/", "no object's key begins with it"),
    ],
    ids=["no bucket", "no object", "only a folder's mark"],
)
def test_a_missing_input_is_refused_before_the_job_with_channel_uri_and_cause(jobs, s3, bucket, uri, cause):
    with pytest.raises(DataNotFoundError) as caught:
        jobs.start(READ, channels=[channel("train", uri)])
    assert str(caught.value).startswith(f"channel 'train': {uri}: {cause}; ")
    assert caught.value.argument == "inputs"
    assert not (jobs.data_dir / "jobs").exists()


def test_an_input_that_may_not_be_listed_fails_the_job_with_channel_uri_and_cause(jobs, s3, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "weak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "weak-secret")
    description = jobs.run(READ, channels=[channel("train", f"s3://{bucket}/train/")])
    assert description["TrainingJobStatus"] == "Failed"
    told = f"ClientError: Data download failed: channel 'train', s3://{bucket}/train/: access denied"
    assert told in description["FailureReason"]


@pytest.mark.parametrize(
    ("argument", "fields"),
    [
        ("output_path", {"output": "s3://no-such-bucket/out"}),
        ("source_dir", {"hyperparameters": {"sagemaker_submit_directory": "s3://training/no-such.tar.gz"}}),
    ],
)
def test_a_missing_bucket_or_source_is_refused_before_the_job(jobs, s3, bucket, argument, fields):
    with pytest.raises(DataNotFoundError, match=f"^{argument}: s3://.*: there is no .*; ") as caught:
        jobs.start("pass", **fields)
    assert caught.value.argument == argument
    assert not (jobs.data_dir / "jobs").exists()


def test_no_credentials_are_told_before_anything_is_written(jobs, no_credentials):
    with pytest.raises(CredentialsError, match=r"s3://training/train: .*aws configure"):
        jobs.start(READ, channels=[channel("train", "s3://training/train")])
    with pytest.raises(CredentialsError, match="s3://training/out"):
        jobs.start(READ, output="s3://training/out")
    assert not (jobs.data_dir / "jobs").exists()


def test_an_output_that_may_not_be_written_fails_the_job_and_keeps_the_artifacts(jobs, s3, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "weak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "weak-secret")
    description = jobs.run("pass", output=f"s3://{bucket}/out")
    assert description["TrainingJobStatus"] == "Failed"
    assert (
        "Artifact upload failed: s3://training/out/job-1/output/model.tar.gz: access denied"
        in (description["FailureReason"])
    )
    assert (jobs.data_dir / "jobs/job-1/output/model.tar.gz").exists()


def test_a_job_stops_while_its_endpoint_does_not_answer(jobs, silent_s3):
    name = jobs.start("pass", channels=[channel("train", "s3://training/train")])
    # The first connection was that of the check before the start.
    silent_s3.accept()[0].close()
    with silent_s3.accept()[0]:
        assert jobs.platform.describe(name)["SecondaryStatus"] == "Downloading"
        jobs.platform.stop(name)
        assert jobs.wait(name, 5)["TrainingJobStatus"] == "Stopped"
