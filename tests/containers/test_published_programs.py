"""Programs of tests/foreign, which run on process hosts there, run on hosts that are containers without a change."""

import json
from pathlib import Path

import pytest
from containers.estimator_jobs import ContainerJob
from fakes.local_jobs import unpacked

PROGRAMS = Path(__file__).parents[1] / "foreign" / "programs"

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.fixture
def run(tmp_path, built):
    """A function that trains with a program and returns the job."""
    jobs = []

    def run(program, **fields):
        job = ContainerJob(tmp_path, entry_point=str(PROGRAMS / program), image_uri=built("2.15.1"), **fields)
        jobs.append(job)
        job.job.follow(logs=False)
        return job

    yield run
    for job in jobs:
        job.close()


def test_a_scheduler_and_workers_of_the_programs_own_connect_on_one_port(run):
    job = run("own_cluster.py", instance_count=2)
    assert json.loads(unpacked(job.delivered())["squares.json"]) == [number**2 for number in range(10)]


def test_flags_positional_and_multi_valued_arguments_reach_the_program(run):
    words = ["data.yaml", "--hidden_units", "128", "32", "--fp16-allreduce", "--opt", "b=two words", "-vv"]
    log = run("arguments.py", instance_count=1, arguments=words).log()
    (parsed,) = [json.loads(line.partition("parsed ")[2]) for line in log.splitlines() if "parsed {" in line]
    assert (parsed["config"], parsed["hidden_units"], parsed["verbose"]) == ("data.yaml", [128, 32], 2)
    assert (parsed["fp16_allreduce"], parsed["opt"]) == (True, ["b=two words"])
