"""Uploads of ``output/intermediate``."""

import os
import subprocess
import sys

import pytest
from fakes.aws_server import aws_server
from fakes.host_folders import write_files, write_host

ACCOUNT = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "eu-west-1"}
PROGRAM = "import os, signal, sys, scriptmode_runtime._environment as e, scriptmode_runtime._launch.aws_programs as it;"


def run(base, program, **variables):
    write_host(base, sagemaker_s3_output="s3://uploads")
    write_files(base / "output", {".intermediate-uploaded": '["torn', "intermediate/z": "z"})
    env, command = {**os.environ, **ACCOUNT, **variables}, [sys.executable, "-c", PROGRAM + program]
    return subprocess.run([*command, base], env=env, capture_output=True, text=True, check=False, timeout=300)


def test_a_file_that_cannot_be_uploaded_keeps_no_other_one(tmp_path):
    folder = write_files(tmp_path / "output/intermediate", {"a\udcff": "", "../other": ""})
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("../other")
    with aws_server("uploads") as endpoint:
        program = "it.upload_rest(e.read(sys.argv[1], dict()))"
        done = run(tmp_path, program, S3_ENDPOINT_URL="http://127.0.0.1:9", AWS_ENDPOINT_URL_S3=endpoint)
    assert (done.stderr.count("cannot be uploaded"), done.stderr.count(r"'a\udcff'")) == (1, 1), done
    assert (folder / "../.intermediate-uploaded").read_text().startswith('["torn["z", 1, ')


def test_an_error_is_written_once_and_the_upload_goes_on(tmp_path):
    rounds = "rounds = iter(range(5)); it.time.sleep = lambda _: next(rounds); it._upload(sys.argv[1], 's3://b')"
    done = run(tmp_path, rounds, S3_ENDPOINT_URL="localhost:9")
    assert "StopIteration" in done.stderr
    assert done.stderr.count("intermediate cannot be uploaded to s3://b: 'z': Invalid endpoint: l") == 1, done


@pytest.mark.parametrize("end", ["it._LAST = 0.5", "signal.pthread_sigmask(0, [15]); os.kill(os.getpid(), 15)"])
def test_a_deadline_or_a_signal_ends_the_last_upload(tmp_path, silent_s3, end):
    program = f"it._LAST = 600; {end}; it.upload_rest(e.read(sys.argv[1], dict())); print('ended')"
    done = run(tmp_path, program, S3_ENDPOINT_URL=f"http://127.0.0.1:{silent_s3.getsockname()[1]}")
    assert (done.stdout, "is not uploaded to its end" in done.stderr) == ("ended\n", True), done
