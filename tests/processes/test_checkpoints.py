"""Checkpoints are copied to their place while the script trains, and are there for the next job."""

import os
import signal

import pytest
from fakes.processes import until

from scriptmode.platforms.local.store.job_store import JobFolder

pytestmark = pytest.mark.slow

#: Counts on from what it finds, a step for each file; waits where it is told to stop.
STEPS = """
    import os, time
    folder = "/opt/ml/checkpoints".replace("/opt/ml", os.environ["SAGEMAKER_BASE_DIR"])
    done = len(os.listdir(folder))
    print("found", done)
    for step in range(done, int(os.environ["LAST"])):
        path = os.path.join(folder, f"step-{step}")
        with open(path + "_temp", "w") as file:
            file.write("w" * step)
        os.rename(path + "_temp", path)
    print("reached", len(os.listdir(folder)))
    while os.environ["WAIT"] == "1":
        time.sleep(0.1)
"""


def request(jobs, place, *, last, wait):
    asked = jobs.request(STEPS)
    asked["Environment"] = {"LAST": str(last), "WAIT": str(int(wait))}
    asked["CheckpointConfig"] = {"S3Uri": place}
    jobs.platform.create(asked)
    return asked["TrainingJobName"]


def stored(s3, bucket):
    """Every key, and when it was written."""
    return {each["Key"]: each["LastModified"] for each in s3.client.list_objects_v2(Bucket=bucket).get("Contents", ())}


def test_a_job_goes_on_where_one_that_was_killed_had_come(jobs):
    place = jobs.folder / "kept"
    name = request(jobs, place.as_uri(), last=3, wait=True)
    until(lambda: sorted(path.name for path in place.glob("*")) == ["step-0", "step-1", "step-2"])
    os.kill(JobFolder(jobs.data_dir / "jobs" / name).read_processes()["agent"].pid, signal.SIGKILL)
    assert jobs.wait(name)["TrainingJobStatus"] == "Failed"
    name = request(jobs, place.as_uri(), last=5, wait=False)
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    assert "algo-1: found 3" in jobs.lines(name)
    assert (place / "step-4").read_text() == "wwww"


def test_checkpoints_in_s3_are_there_for_the_next_job(jobs, s3):
    bucket = s3.bucket("interrupted", {})
    place = f"s3://{bucket}/checkpoints"
    name = request(jobs, place, last=2, wait=True)
    until(lambda: set(stored(s3, bucket)) == {"checkpoints/step-0", "checkpoints/step-1"})
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    name = request(jobs, place, last=4, wait=False)
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    assert {"algo-1: found 2", "algo-1: reached 4"} <= set(jobs.lines(name))
    assert sorted(stored(s3, bucket)) == [f"checkpoints/step-{step}" for step in range(4)]


def test_what_did_not_change_is_not_stored_again(jobs, s3):
    bucket = s3.bucket("unchanged", {})
    jobs.wait(request(jobs, f"s3://{bucket}/kept", last=2, wait=False))
    before = stored(s3, bucket)
    jobs.wait(request(jobs, f"s3://{bucket}/kept/", last=3, wait=False))
    after = stored(s3, bucket)
    assert {key: after[key] for key in before} == before
    assert set(after) - set(before) == {"kept/step-2"}
