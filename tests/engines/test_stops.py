"""Jobs that are stopped, by a user or by their time limit: SIGTERM, the grace, SIGKILL, and what is delivered."""

import re
import time

import pytest
from fakes.local_jobs import SAVES
from fakes.processes import until
from fakes.promptness import soon, stretched

from scriptmode_local._agent.supervision import SHORT_GRACE_SECONDS

OUTLIVES_SIGTERM = """
    import os, signal, time
    signal.signal(signal.SIGTERM, lambda *_: os.write(1, b"signalled %f\\n" % time.monotonic()))
    with open(os.path.join(os.environ["SM_MODEL_DIR"], "kept"), "w") as file:
        file.write("before")
    os.write(1, b"up\\n")
    while True:
        os.write(1, b"lives %f\\n" % time.monotonic())
        time.sleep(0.05)
"""
#: Seconds.
GRACE = 2.0


def stopped(jobs, name, secondary="Stopped"):
    """Wait for the end of a job that was stopped and of which nothing may remain; return its description."""
    description = jobs.wait(name)
    assert (description["TrainingJobStatus"], description["SecondaryStatus"]) == ("Stopped", secondary), jobs.why(name)
    until(lambda: not jobs.remains(name))
    return description


def test_a_stopped_script_has_the_grace_to_save_its_model(jobs):
    name = jobs.start(SAVES, hosts=2)
    jobs.until_up(name)
    jobs.platform.stop(name)
    assert jobs.platform.describe(name).response["TrainingJobStatus"] in ("Stopping", "Stopped")
    jobs.platform.stop(name)
    description = stopped(jobs, name)
    passed = [transition["Status"] for transition in description["SecondaryStatusTransitions"]]
    assert [status for status in passed if status != "Pending"] == [
        "Starting", "Downloading", "Training", "Stopping", "Stopped",
    ]  # fmt: skip
    assert jobs.model(description) == {"algo-1": b"in time", "algo-2": b"in time"}
    assert not any("SM_MODEL_DIR" in line for line in jobs.lines(name))
    jobs.platform.stop(name)
    assert jobs.platform.describe(name).response == description


@pytest.mark.prompt
@pytest.mark.parametrize("is_now", [False, True], ids=["stop", "stop, then now"])
def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(engine, jobs, is_now):
    grace = SHORT_GRACE_SECONDS if is_now else GRACE
    name = jobs.start(OUTLIVES_SIGTERM, hosts=2, grace=120 if is_now else GRACE)
    jobs.until_up(name)
    begun = time.monotonic()
    jobs.platform.stop(name)
    if is_now:
        jobs.platform.stop(name, now=True)
    description = stopped(jobs, name)
    soon(time.monotonic() - begun, grace + max(6.0, engine.seconds_to_end))
    for host in ("algo-1", "algo-2"):
        text = "\n".join(line for line in jobs.lines(name) if line.startswith(f"{host}: "))
        last = {kind: float(moment) for kind, moment in re.findall(r"\b(signalled|lives) (\d+\.\d+)", text)}
        assert last["lives"] - last["signalled"] > grace - 0.3
    assert jobs.model(description)["kept"] == b"before"
    messages = {row["Status"]: row["StatusMessage"] for row in description["SecondaryStatusTransitions"]}
    assert messages["Stopping"].endswith(f", SIGKILL {grace:g} s after SIGTERM")


def test_a_job_stops_while_it_is_starting(jobs):
    name = jobs.start(SAVES)
    jobs.platform.stop(name)
    stopped(jobs, name)


def test_a_job_that_exceeds_its_time_limit_is_stopped_and_keeps_its_model(jobs):
    name = jobs.start(SAVES, max_run=5)
    description = stopped(jobs, name, "MaxRuntimeExceeded")
    assert "MaxRuntimeInSeconds" in description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert jobs.model(description) == {"algo-1": b"in time"}
    assert description["TrainingTimeInSeconds"] >= 5


def test_max_wait_counts_from_the_creation_and_ends_a_job_that_trains(jobs):
    limits = dict.fromkeys(("MaxRuntimeInSeconds", "MaxWaitTimeInSeconds"), round(stretched(10)))
    name = jobs.start(SAVES, more={"EnableManagedSpotTraining": True, "StoppingCondition": limits})
    description = stopped(jobs, name, "MaxWaitTimeExceeded")
    assert "MaxWaitTimeInSeconds" in description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert jobs.model(description) == {"algo-1": b"in time"}
