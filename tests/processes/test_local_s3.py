"""Jobs of the local platform whose sources, inputs, checkpoints and outputs are in S3: a real server, and a faulty one."""

import base64
import io
import json
import os
import tarfile
import zlib

import pytest
from fakes.faulty_s3 import Fault, FaultyS3
from fakes.local_jobs import channel
from fakes.processes import until
from processes.launchers import host

from scriptmode.errors import DataError, DataNotFoundError

READ = """
    import json, os, pathlib
    root = pathlib.Path(os.environ["SM_CHANNEL_TRAIN"])
    found = {str(path.relative_to(root)): len(path.read_bytes()) for path in root.rglob("*") if path.is_file()}
    pathlib.Path(os.environ["SM_MODEL_DIR"], os.environ["SM_CURRENT_HOST"]).write_text(json.dumps(found))
"""


@pytest.fixture(scope="module")
def bucket(s3_server):
    return s3_server.bucket(
        "training",
        {
            "train/a": b"1", 'train/it\'s "b"/ü': b"22", "train/big": b"x" * (9 * 1024 * 1024), "train/empty": b"",
            "train-other/c": b"333", "folder/": b"",
        },
    )  # fmt: skip


def stored(s3, bucket, key):
    body = s3.client.get_object(Bucket=bucket, Key=key)["Body"].read()
    with tarfile.open(fileobj=io.BytesIO(body)) as tar:
        return {name: tar.extractfile(name).read() for name in tar.getnames()}


def test_a_job_reads_source_and_input_from_s3_and_writes_to_s3(jobs, s3, bucket):
    s3.client.upload_file(jobs.source(READ).removeprefix("file://"), bucket, "source.tar.gz")
    source = {"sagemaker_submit_directory": f"s3://{bucket}/source.tar.gz"}
    channels = [channel("train", f"s3://{bucket}/train/")]
    description = jobs.run("", hosts=2, hyperparameters=source, channels=channels, output=f"s3://{bucket}/out")
    assert description["TrainingJobStatus"] == "Completed", description
    assert description["ModelArtifacts"]["S3ModelArtifacts"] == f"s3://{bucket}/out/job-1/output/model.tar.gz"
    model = stored(s3, bucket, "out/job-1/output/model.tar.gz")
    expected = {"a": 1, 'it\'s "b"/ü': 2, "big": 9 * 1024 * 1024, "empty": 0}
    assert {host: json.loads(content) for host, content in model.items()} == {"algo-1": expected, "algo-2": expected}
    assert not (jobs.data_dir / "jobs/job-1/output/model.tar.gz").exists()


@pytest.mark.parametrize(
    ("argument", "fields", "message"),
    [
        (
            "inputs",
            {"channels": [channel("train", "s3://no-such-bucket/train")]},
            "there is no bucket 'no-such-bucket'; ",
        ),
        ("inputs", {"channels": [channel("train", "s3://training/nothing")]}, "no object's key begins with it; "),
        ("inputs", {"channels": [channel("train", "s3://training/folder/")]}, "no object's key begins with it; "),
        ("output_path", {"output": "s3://no-such-bucket/out"}, "there is no .*; "),
        (
            "source_dir",
            {"hyperparameters": {"sagemaker_submit_directory": "s3://training/none.tar.gz"}},
            "there is no .*; ",
        ),
    ],
    ids=["no bucket", "no object", "only a folder's mark", "no bucket for outputs", "no source"],
)
def test_what_is_missing_in_s3_is_an_error_before_the_job(jobs, s3, bucket, argument, fields, message):
    place = "channel 'train'" if argument == "inputs" else argument
    with pytest.raises(DataNotFoundError, match=f"^{place}: s3://.*: {message}") as caught:
        jobs.start("pass", **fields)
    assert caught.value.argument == argument
    assert not (jobs.data_dir / "jobs").exists()


def test_an_endpoint_where_nothing_listens_is_an_error_before_the_job(jobs, s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(DataError, match="'train': s3://b/x: the S3 endpoint http://127.0.0.1:9 cannot be reached"):
        jobs.start("pass", channels=[channel("train", "s3://b/x")])
    assert jobs.platform.list() == []


def test_an_input_that_may_not_be_listed_fails_the_job_with_channel_uri_and_cause(jobs, s3, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "weak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "weak-secret")
    description = jobs.run(READ, channels=[channel("train", f"s3://{bucket}/train/")])
    assert description["TrainingJobStatus"] == "Failed"
    told = f"ClientError: Data download failed: channel 'train', s3://{bucket}/train/: access denied"
    assert told in description["FailureReason"]


def test_an_output_that_may_not_be_written_fails_the_job_and_keeps_the_artifacts(jobs, s3, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "weak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "weak-secret")
    description = jobs.run("pass", output=f"s3://{bucket}/out")
    assert description["TrainingJobStatus"] == "Failed"
    reason = description["FailureReason"]
    assert "Artifact upload failed: s3://training/out/job-1/output/model.tar.gz: access denied" in reason
    assert (jobs.data_dir / "jobs/job-1/output/model.tar.gz").exists()


@pytest.mark.prompt
def test_a_job_stops_while_its_endpoint_does_not_answer(jobs, silent_s3):
    name = jobs.start("pass", channels=[channel("train", "s3://training/train")])
    # The first connection was that of the check before the start.
    silent_s3.accept()[0].close()
    with silent_s3.accept()[0]:
        assert jobs.platform.describe(name).response["SecondaryStatus"] == "Downloading"
        jobs.platform.stop(name)
        assert jobs.wait(name, 5)["TrainingJobStatus"] == "Stopped"


#: Counts on from what it finds, a step for each file; waits where it is told to stop.
STEPS = """
    import os, time
    folder = "/opt/ml/checkpoints"
    done = len(os.listdir(folder))
    print("found", done)
    for step in range(done, int(os.environ["LAST"])):
        path = os.path.join(folder, f"step-{step}")
        with open(path + "_temp", "w") as file:
            file.write("w" * step)
        os.rename(path + "_temp", path)
    while os.environ["WAIT"] == "1":
        time.sleep(0.1)
"""


@pytest.mark.slow
def test_checkpoints_are_there_for_the_next_job_which_stores_only_new_ones(jobs, s3):
    bucket = s3.bucket("interrupted", {})

    def start(last, *, wait):
        environment = {"LAST": str(last), "WAIT": str(int(wait))}
        place = {"S3Uri": f"s3://{bucket}/checkpoints"}
        return jobs.start(STEPS, more={"Environment": environment, "CheckpointConfig": place})

    def written():
        """Every key, and when it was written."""
        return {row["Key"]: row["LastModified"] for row in s3.client.list_objects_v2(Bucket=bucket).get("Contents", ())}

    name = start(2, wait=True)
    until(lambda: set(written()) == {"checkpoints/step-0", "checkpoints/step-1"})
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    before = written()
    name = start(4, wait=False)
    jobs.completed(name)
    assert "algo-1: found 2" in jobs.lines(name)
    after = written()
    assert sorted(after) == [f"checkpoints/step-{step}" for step in range(4)]
    assert {key: after[key] for key in before} == before


CONTENT = bytes(range(256)) * 4_000
READS = {
    "File": 'import os; open(os.environ["SM_CHANNEL_TRAIN"] + "/x", "rb").read()',
    "FastFile": 'import os; open(os.environ["SM_CHANNEL_TRAIN"] + "/x", "rb").read()',
    "Pipe": 'import os; open(os.environ["SM_CHANNEL_TRAIN"] + "_0", "rb").read()',
}


@pytest.fixture
def faulty(monkeypatch, no_credentials):
    with FaultyS3({"train/x": CONTENT}) as running:
        running.use(monkeypatch)
        yield running


def start_in_each_mode(jobs):
    return {
        mode: jobs.start(script, channels=[channel("train", "s3://bkt/train/", InputMode=mode)])
        for mode, script in READS.items()
    }


@pytest.mark.slow
def test_jobs_whose_bytes_are_damaged_each_time_fail_with_that_reason(jobs, faulty):
    faulty.etags["train/x"] = CONTENT, '"no-md5-1"'
    faulty.checksums["train/x"] = {"crc32": base64.b64encode(zlib.crc32(CONTENT).to_bytes(4, "big")).decode()}
    offsets = iter(range(100_000))
    faulty.fault = lambda request: Fault(flip=next(offsets)) if request.is_get else None
    for mode, name in start_in_each_mode(jobs).items():
        description = jobs.wait(name)
        assert description["TrainingJobStatus"] == "Failed"
        told = description["FailureReason"] + "\n".join(jobs.lines(name))
        assert "s3://bkt/train/x: the downloaded bytes are not the object's: their CRC32 is" in told
        assert mode == "FastFile" or "the downloaded bytes are not the object's" in description["FailureReason"]


@pytest.mark.slow
def test_a_download_that_takes_longer_than_max_run_ends_the_job(jobs, faulty):
    faulty.fault = lambda request: Fault(rate=5_000) if request.is_get else None
    description = jobs.run(READS["File"], channels=[channel("train", "s3://bkt/train/")], max_run=2)
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")
    messages = [each["StatusMessage"] for each in description["SecondaryStatusTransitions"]]
    assert "Stopping: the inputs were not there after MaxRuntimeInSeconds, 2 s" in messages


WRITES = """
import os, pathlib, time
folder = pathlib.Path(os.environ["SM_OUTPUT_INTERMEDIATE_DIR"], "inner")
folder.mkdir()
(folder / "one").write_text("first")
while not os.path.exists(os.environ["GO"]):
    time.sleep(0.05)
(folder / "one").write_text("another")
(folder / "last").write_text("last")
raise SystemExit(int(os.environ["CODE"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 3])
def test_files_are_uploaded_while_the_script_trains_and_at_its_end(tmp_path, launch, s3_server, code):
    bucket, go, client = s3_server.bucket(f"intermediate-{code}", {}), tmp_path / "go", s3_server.client
    base = host(tmp_path, WRITES, sagemaker_s3_output=f"s3://{bucket}/out/", sagemaker_job_name="job-1")
    launcher = launch(base, **s3_server.environment, GO=str(go), CODE=str(code))

    def stored():
        keys = [item["Key"] for item in client.list_objects_v2(Bucket=bucket).get("Contents", [])]
        read = {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}
        return {key.removeprefix("out/job-1/output/intermediate/inner/"): content for key, content in read.items()}

    until(lambda: stored() == {"one": b"first"})
    os.kill(int(launcher.output.partition("upload started, process ")[2].split()[0]), 9)  # as for a lack of memory
    until(lambda: "upload ended " in launcher.output)
    go.touch()
    assert launcher.wait() == code, launcher.output
    assert stored() == {"one": b"another", "last": b"last"}
