"""What can be done with a job while it runs: its usage, two jobs at once."""

import pytest
from fakes.processes import until

from scriptmode._core.spec.host_values import HostActivity

#: Computes half of the time.
COMPUTES = """
    import sys, time
    content = bytearray(100_000_000)
    print("up", flush=True)
    print("\\r 10%\\r 20%", end="", flush=True)
    while True:
        end = time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        time.sleep(0.05)
"""


@pytest.fixture(scope="module")
def name(jobs):
    """A job of two hosts that compute."""
    started = jobs.start(COMPUTES, hosts=2)
    jobs.until_up(started)
    return started


def test_the_usage_of_each_host_and_the_line_that_it_writes_are_known(jobs, name):
    def known():
        activity = jobs.platform.activity(name)
        found = [activity.get(host, HostActivity()) for host in ("algo-1", "algo-2")]
        return all((each.memory_bytes or 0) > 100e6 and (each.cpu_percent or 0) > 10 for each in found) and found

    for each in until(known):
        assert each.line == "\r 10%\r 20%"
        assert each.memory_bytes < 1e9
        assert each.cpu_percent < 200
        assert each.silent_seconds is not None


def test_two_jobs_at_once_share_neither_directories_nor_addresses(engine, jobs):
    # A machine that is a host has one address for all its jobs.
    port = 0 if engine.machine_of_each_host else 7077
    script = """
        import os, socket, time
        server = socket.create_server((os.environ["SM_CURRENT_HOST"], int(os.environ["PORT"])))
        with open("/opt/ml/model/name", "w") as file:
            file.write(os.environ["TRAINING_JOB_NAME"])
        print("up", flush=True)
        while not os.path.exists("/opt/ml/checkpoints/go"):
            time.sleep(0.02)
    """
    names = [jobs.start(script, hosts=2, more={"Environment": {"PORT": str(port)}}) for _ in range(2)]
    for each in names:
        jobs.until_up(each)
    for each in names:
        for host in ("algo-1", "algo-2"):
            jobs.release(each, host)
    for each in names:
        assert jobs.model(jobs.completed(each)) == {"name": each.encode()}
