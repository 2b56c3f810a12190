"""Kill or stop any process of any job at any moment: the job ends, its reason is true, nothing is left over.

Each run draws other jobs: many runs together find what one run of many jobs would. ``SCRIPTMODE_VICTIMS`` is the number
of jobs (a few by default, more with ``--tier thorough``); ``SCRIPTMODE_VICTIMS_SEED`` repeats those of an earlier run.
"""

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults.victims import Run, make_data, plan_of

pytestmark = [pytest.mark.long, pytest.mark.mpi, pytest.mark.slow]
_WANTED = os.environ.get("SCRIPTMODE_VICTIMS")
#: Jobs of each run, and those of a thorough one.
FEW, MANY = (int(_WANTED), int(_WANTED)) if _WANTED else (8, 24)
SEED = os.environ.get("SCRIPTMODE_VICTIMS_SEED") or os.urandom(4).hex()
_AT_ONCE = (os.cpu_count() or 1) + 1


@pytest.fixture(scope="module")
def results(request, tmp_path_factory):
    """Run the jobs of the tests that were selected, a few at once, because most of them wait most of the time."""
    data = make_data(tmp_path_factory.mktemp("data"))

    def happen(number):
        run = Run(plan_of(f"{SEED}-{number}"), tmp_path_factory.mktemp(f"victim-{number}"), data)
        try:
            return run, run.play(), None
        except BaseException as error:  # raised by the test that asks for it
            return run, run.jobs.platform.describe(run.name).response, error
        finally:
            run.close()

    wanted = [item.callspec.params["number"] for item in request.session.items if "results" in item.fixturenames]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield {number: pool.submit(happen, number) for number in wanted}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "number", [*range(FEW), *(pytest.param(number, marks=pytest.mark.thorough) for number in range(FEW, MANY))]
)
def test_a_job_ends_with_a_true_status_whichever_of_its_processes_is_lost(results, number):
    run, description, error = results[number].result()
    shown = {key: description.get(key) for key in ("SecondaryStatus", "FailureReason", "SecondaryStatusTransitions")}
    told = f"SCRIPTMODE_VICTIMS_SEED={SEED}\n{run.plan}\nvictim {run.victim}\n{shown}"
    if error:
        raise AssertionError(f"{error}\n{told}") from error
