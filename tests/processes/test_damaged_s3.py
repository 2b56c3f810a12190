"""A job whose input was damaged on its way from S3, or did not arrive, fails with that as its reason."""

import base64
import zlib

import pytest
from fakes.faulty_s3 import Fault, FaultyS3
from fakes.local_jobs import channel
from processes.launchers import CHILDREN

pytestmark = pytest.mark.slow

CONTENT = bytes(range(256)) * 4_000
READ = {
    "File": 'open(os.environ["SM_CHANNEL_TRAIN"] + "/x", "rb").read()',
    "FastFile": 'open(os.environ["SM_CHANNEL_TRAIN"] + "/x", "rb").read()',
    "Pipe": 'open(os.environ["SM_CHANNEL_TRAIN"] + "_0", "rb").read()',
}


@pytest.fixture
def server(monkeypatch, no_credentials):
    with FaultyS3({"train/x": CONTENT}) as running:
        running.use(monkeypatch)
        yield running


@pytest.mark.parametrize("mode", READ)
def test_a_job_whose_bytes_are_damaged_each_time_fails_with_that_reason(jobs, server, mode):
    server.etags["train/x"] = CONTENT, '"no-md5-1"'
    server.checksums["train/x"] = {"crc32": base64.b64encode(zlib.crc32(CONTENT).to_bytes(4, "big")).decode()}
    offsets = iter(range(100_000))
    server.fault = lambda request: Fault(flip=next(offsets)) if request.is_get else None
    description = jobs.run(f"import os; {READ[mode]}", channels=[channel("train", "s3://bkt/train/", InputMode=mode)])
    assert description["TrainingJobStatus"] == "Failed"
    told = description["FailureReason"] + "\n".join(jobs.lines(description["TrainingJobName"]))
    assert "s3://bkt/train/x: the downloaded bytes are not the object's: their CRC32 is" in told
    if mode != "FastFile":
        assert "the downloaded bytes are not the object's" in description["FailureReason"]


@pytest.mark.parametrize("mode", READ)
def test_a_job_whose_bytes_were_damaged_once_completes_with_the_right_ones(jobs, server, mode):
    server.etags["train/x"] = CONTENT, '"no-md5-1"'
    server.checksums["train/x"] = {"crc32": base64.b64encode(zlib.crc32(CONTENT).to_bytes(4, "big")).decode()}
    left = [Fault(flip=500)]
    server.fault = lambda request: left.pop() if request.is_get and left else None
    script = f"import os, zlib; content = {READ[mode]}; assert zlib.crc32(content) == {zlib.crc32(CONTENT)}"
    description = jobs.run(script, channels=[channel("train", "s3://bkt/train/", InputMode=mode)])
    assert description["TrainingJobStatus"] == "Completed", description
    assert not left


def test_jobs_whose_connection_is_dead_fail_with_that_reason(jobs, server, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(CHILDREN / "short_retries"))
    server.fault = lambda request: Fault(cut=True) if request.is_get else None
    names = [
        jobs.start(f"import os; {READ[mode]}", channels=[channel("train", "s3://bkt/train/", InputMode=mode)])
        for mode in READ
    ]
    for name in names:
        description = jobs.wait(name, 150)
        assert description["TrainingJobStatus"] == "Failed"
        told = description["FailureReason"] + "\n".join(jobs.lines(name))
        assert f"s3://bkt/train/x: the connection to the S3 endpoint {server.endpoint} broke: it was closed" in told
