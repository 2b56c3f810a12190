"""Which directories TensorBoard's command line of a job names."""

import shlex

import pytest
from fakes.sagemaker_jobs import started

from scriptmode import DataAccessError, DataError
from scriptmode._results.tensorboard import tensorboard_command
from scriptmode.testing import Life, ServiceError

pytestmark = pytest.mark.usefixtures("data_dir")

EVENTS = "events.out.tfevents.1.host"
WRITE = f"""
import os, pathlib, time
folder = pathlib.Path(os.environ["SM_OUTPUT_DATA_DIR"])
(folder / {EVENTS!r}).touch()
print("wrote", flush=True)
"""


def runs(command):
    """Return the names of runs and their directories."""
    *_, option, value = shlex.split(command)
    if option == "--logdir":
        return {"": value}
    return dict(part.split(":", 1) for part in value.split(","))


def test_of_a_job_that_ended_the_first_artifact_with_event_files_is_named():
    _, job = started(Life.completed(model={f"eval/{EVENTS}": b"1"}))
    with pytest.raises(DataError, match="has no event files on this machine.*call again"):
        job.tensorboard()
    job.wait()
    folder = runs(job.tensorboard())[""]
    assert folder.endswith("/model")


def test_what_may_not_be_read_is_not_taken_for_a_missing_file():
    fake, job = started(Life.completed())
    job.wait()
    fake.fault("head_object", ServiceError("403", "Forbidden", 403), times=9)
    fake.fault("list_objects_v2", ServiceError("AccessDenied", "Access Denied", 403), times=9)
    with pytest.raises(DataAccessError):
        job.tensorboard()


def test_the_hosts_of_a_running_job_are_read_where_they_write(jobs):
    name = jobs.start(f"{WRITE}\ntime.sleep(600)", hosts=2)
    for host in ("algo-1", "algo-2"):
        jobs.until_line(name, f"{host}: wrote")
    assert list(runs(tensorboard_command(jobs.platform, name))) == ["algo-1/output", "algo-2/output"]


def test_a_failed_jobs_hosts_are_read_where_they_are_kept(jobs):
    name = jobs.start(f"{WRITE}\nraise SystemExit(1)")
    jobs.wait(name)
    assert runs(tensorboard_command(jobs.platform, name))[""].endswith("algo-1/output")


def test_a_directory_that_a_hyperparameter_names_is_read_and_one_for_data_is_not(jobs, tmp_path):
    for folder in ("logs", "images"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / EVENTS).touch()
    given = {"log-dir": f"file://{tmp_path}/logs", "data_dir": str(tmp_path / "images"), "model_dir": "/opt/ml/model"}
    name = jobs.start("pass", hyperparameters=given)
    jobs.wait(name)
    assert runs(tensorboard_command(jobs.platform, name)) == {"": f"{tmp_path}/logs"}
