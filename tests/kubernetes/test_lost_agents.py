"""Whatever process of a job in pods is killed, the script ends, and the reason names the process."""

import pytest
from fakes.processes import until

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]

SLEEPS = "import time; print('up', flush=True); time.sleep(600)"


def test_a_killed_agent_of_a_pod_is_the_reason_and_its_script_ends(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    jobs.kill(name, "agent of algo-1")
    assert "the agent of algo-1 on its machine ended with" in jobs.failed(name)


def test_a_pod_whose_job_lost_its_agent_ends_its_script(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    jobs.kill(name)
    pod = jobs.pod(name)

    def has_ended():
        found = jobs.cluster.get("pods", "--selector=scriptmode/host=algo-1")["items"]
        assert [each["metadata"]["name"] for each in found] == [pod]
        return found[0]["status"]["phase"] in ("Failed", "Succeeded")

    until(has_ended)
