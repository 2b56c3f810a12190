"""An image of AWS's toolkit and TensorFlow adapter, with nothing of this project in it, as a host of a job."""

import json

import pytest
from fakes.local_jobs import unpacked

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(2400)]


def test_a_script_trains_on_one_host_of_it(foreign_jobs):
    job = foreign_jobs["single"]
    assert job.until_ended() == "Completed", job.job.failure_reason
    assert "Reporting training SUCCESS" in job.log()
    (seen,) = job.records().values()
    assert seen["host"] == "algo-1"
    assert seen["arguments"] == ["--learning-rate", "0.1"]
    assert seen["channel"] == ["numbers.csv"]
    assert json.loads(seen["variables"]["SM_HPS"]) == {"learning-rate": 0.1}
    assert not seen["ours"]
    assert unpacked(job.delivered()) == {"weights script": b"trained"}
    assert job.left() == []


def test_a_script_that_fails_in_it_fails_the_job_with_what_awss_launcher_says(foreign_jobs):
    job = foreign_jobs["fails"]
    assert job.until_ended() == "Failed"
    reason = job.job.failure_reason
    assert reason.startswith("AlgorithmError: ExecuteUserScriptError:\nExitCode 7\n")
    assert "of_anyone.py --ends-with 7" in reason
    assert 'ErrorMessage ""' not in reason
    assert job.left() == []


def test_two_hosts_train_by_awss_own_mpi_launch(foreign_jobs):
    job = foreign_jobs["mpi"]
    assert job.until_ended() == "Completed", job.job.failure_reason
    assert set(job.records()) == {"algo-1 0", "algo-2 1"}
    assert {seen["host"] for seen in job.records().values()} == {"algo-1", "algo-2"}
    assert job.log().count("Reporting training SUCCESS") == 2
    assert set(unpacked(job.delivered())) == {"weights 0", "weights 1"}
    assert job.left() == []
