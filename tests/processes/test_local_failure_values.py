"""The failures of real jobs as values: what the runtime recorded, through the agent, to the error and the command."""

import pytest
from fakes.local_jobs import damaged_manifest

from scriptmode import Failure, TrainingJob, TrainingJobFailed

PS = {"sagemaker_parameter_server_enabled": True}
MPI = {"sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}
RAISES = """
    import os
    if os.environ["SM_CURRENT_HOST"] == "algo-2":
        raise ValueError("no such rate")
    import time; time.sleep(60)
"""


def failure_of(jobs, script, **fields):
    description = jobs.run(script, **fields)
    with pytest.raises(TrainingJobFailed) as caught:
        TrainingJob(description["TrainingJobName"], jobs.platform).wait()
    return caught.value.failure


def test_an_exception_with_its_cause(jobs):
    failure = failure_of(
        jobs,
        """
        try:
            {}["lr"]
        except KeyError as error:
            raise ValueError("no rate") from error
        """,
    )
    assert (failure.host, failure.process, failure.exit_code, failure.signal) == ("algo-1", "script", 1, "")
    assert (failure.cause, failure.exception) == ("algo-1, script: exit code 1", "ValueError")
    first, *_, last = failure.traceback.splitlines()
    assert (first, last) == ("Traceback (most recent call last):", "ValueError: no rate")
    assert "KeyError: 'lr'\n" in failure.traceback


def test_an_exit_code_without_a_traceback(jobs):
    failure = failure_of(jobs, "print('the last words'); raise SystemExit(3)")
    assert failure == Failure(
        "algo-1, script: exit code 3", "algo-1", "script", exit_code=3, traceback="the last words"
    )


def test_a_signal(jobs):
    failure = failure_of(jobs, "import os; os.kill(os.getpid(), 9)")
    assert (failure.exit_code, failure.signal, failure.traceback) == (137, "SIGKILL", "")
    assert failure.hint.startswith("If it was not killed on purpose, memory ran out")


def test_the_host_that_failed_among_several(jobs):
    failure = failure_of(jobs, RAISES, hosts=3)
    assert (failure.host, failure.process, failure.exception) == ("algo-2", "script", "ValueError")


@pytest.mark.tf
def test_a_worker_of_parameter_servers(jobs):
    failure = failure_of(jobs, RAISES, hosts=2, hyperparameters=PS)
    assert (failure.host, failure.process, failure.exit_code) == ("algo-2", "worker", 1)
    assert (failure.exception, failure.traceback.splitlines()[-1]) == ("ValueError", "ValueError: no such rate")


@pytest.mark.mpi
def test_a_rank(jobs):
    script = """
        import os, time
        if os.environ["OMPI_COMM_WORLD_RANK"] == "3":
            raise ValueError("no such rate")
        time.sleep(60)
    """
    failure = failure_of(jobs, script, hosts=2, hyperparameters=MPI)
    assert (failure.host, failure.process, failure.exit_code) == ("algo-2", "rank 3", 1)
    assert (failure.exception, failure.traceback.splitlines()[-1]) == ("ValueError", "ValueError: no such rate")


def test_a_secret_is_in_no_field(jobs):
    script = "import os, json; raise ValueError(json.loads(os.environ['SM_HPS'])['db_password'])"
    failure = failure_of(jobs, script, hyperparameters={"db_password": "correct-horse-battery"})
    assert failure.traceback.endswith("ValueError: ******")
    assert "correct-horse" not in repr(failure)


def test_a_launcher_that_was_killed(jobs):
    failure = failure_of(jobs, "import os; os.kill(os.getppid(), 9)")
    assert (failure.host, failure.process, failure.exit_code, failure.signal) == ("algo-1", "launcher", 137, "SIGKILL")


def test_a_source_without_the_script(jobs):
    failure = failure_of(jobs, "", hyperparameters={"sagemaker_program": "missing.py"})
    assert (failure.host, failure.process, failure.exit_code) == ("algo-1", "launcher", 1)
    assert "missing.py" in failure.cause


def test_an_input_that_cannot_be_read(jobs):
    failure = failure_of(jobs, "pass", channels=[damaged_manifest(jobs.folder)])
    assert failure.cause.startswith("Data download failed: channel 'train', file://")
    assert (failure.process, failure.exit_code) == ("", None)


def forge(**fields):
    """Return a script that writes a record of a failure and kills its launcher, which can then not write its own."""
    texts = dict.fromkeys(("cause", "process", "signal", "exception", "hint", "traceback"), "forged")
    record = {**texts, **fields}
    return f"""
        import json, os
        folder = os.environ["SM_OUTPUT_DIR"]
        with open(os.path.join(folder, "failure.json"), "w") as file:
            json.dump({record!r}, file)
        with open(os.path.join(folder, "failure"), "w") as file:
            file.write("my own words")
        os.kill(os.getppid(), 9)
    """


@pytest.mark.parametrize("host", ["algo-9", "algo-1; rm -rf /", "algo-1\n"])
def test_a_record_that_names_another_host_is_not_believed(jobs, host):
    assert failure_of(jobs, forge(host=host, exit_code=9)) == Failure("my own words", exit_code=137)


@pytest.mark.parametrize("exit_code", [1, None])
def test_the_observed_exit_code_takes_precedence_over_the_recorded_one(jobs, exit_code):
    failure = failure_of(jobs, forge(host="algo-1", exit_code=exit_code))
    assert (failure.cause, failure.host, failure.exit_code, failure.signal) == ("forged", "algo-1", 137, "")
