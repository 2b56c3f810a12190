"""The jobs of `make chaos`: some of them, and that each kind of violation is found."""

import pytest
from chaos import kills
from chaos.__main__ import Server, run
from chaos.jobs import TRAIN
from chaos.plans import plan_of

pytestmark = pytest.mark.slow

QUIET = plan_of("quiet", 0, "none")._replace(layout="single", mode="File", phase="Pending", seconds=0.1)
LIES = """
    import os
    open(os.environ["SM_MODEL_DIR"] + "/weights", "wb").write(b"another model")
"""


@pytest.fixture
def server(monkeypatch):
    # The server sets these for all of its jobs.
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "")
    with Server() as running:
        yield running


@pytest.mark.long
def test_twenty_jobs_end_truly(server):
    ends = [run(plan_of("twenty", index), server) for index in range(20)]
    assert [(plan.seed, end, error) for plan, end, error in ends if error] == []


def test_a_job_with_retries_whose_agent_is_killed_counts_each_step_once(server):
    plan = QUIET._replace(fault="SIGKILL", phase="Training", role=0.0, retries=1)
    assert run(plan, server)[1:] == ("Completed", None)


def test_a_step_that_counts_twice_after_a_restart_is_a_lie(server):
    twice = TRAIN.replace('f"{number + 1} {chain}"', 'f"{number} {chain}"')
    assert run(QUIET._replace(retries=1), server, train=twice)[1:] == ("Completed", None)
    # The script has saved a step by then.
    plan = QUIET._replace(fault="SIGKILL", phase="Training", role=0.0, retries=1, delay=1.0)
    _, end, error = run(plan, server, train=twice)
    assert (end, error.partition(" (")[0]) == ("lie", "Completed with another model")


def test_another_model_is_a_lie(server):
    _, end, error = run(QUIET, server, train=LIES)
    assert (end, error) == ("lie", "Completed with another model (victim ('none', 0))")


def test_a_job_that_does_not_end_in_time_hangs(server):
    assert run(QUIET._replace(seconds=20.0), server, bound=0.5)[1] == "hang"


def test_an_end_that_the_fault_does_not_explain_is_a_lie(server):
    _, end, error = run(QUIET, server, train=TRAIN + "\nraise ValueError('of the script')\n")
    assert end == "lie"
    assert "Failed is not possible here" in error


@pytest.mark.long
@pytest.mark.tf
@pytest.mark.mpi
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("layout", kills.LAYOUTS)
def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(tmp_path, layout):
    kills.write_data(tmp_path)
    undisturbed = kills.KilledJob(layout, (), tmp_path).play()
    killed = kills.KilledJob(layout, (("all", 12, 0.0),), tmp_path).play()
    assert kills.problem_of(killed, [undisturbed, undisturbed]) == ""
    assert (killed.victims, killed.resumed) == (("all",), 1)
