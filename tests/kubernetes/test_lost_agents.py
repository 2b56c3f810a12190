"""Whatever process of a job in pods is killed, the script ends, and the reason names the process."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from fakes.local_jobs import SLEEPS
from fakes.processes import open_files, processes_naming, until
from fakes.promptness import soon

pytestmark = [pytest.mark.kubernetes, pytest.mark.slow, pytest.mark.timeout(1800)]


def test_a_killed_agent_of_a_pod_is_the_reason_and_its_script_ends(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    jobs.kill(name, "agent of algo-1")
    assert "the agent of algo-1 on its machine ended with" in jobs.failed(name)


def test_a_pod_whose_job_lost_its_agent_ends_its_script(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    jobs.kill(name)
    until(lambda: jobs.cluster.pod(jobs.pod(name))["status"]["phase"] in ("Failed", "Succeeded"))


def watch_of(jobs, name):
    """The process of a job, other than its agent, that is connected to the API server."""
    port = f":{6443:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    sockets = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port) and row[3] == "01"}
    found = set(processes_naming(f"{jobs.job_folder(name).path}\0")) - {jobs.pid(name, "agent")}
    return next((pid for pid in found if sockets & open_files(pid)), None)


def calls(jobs):
    """The calls of scriptmode that the API server has answered."""
    answered = map(json.loads, jobs.cluster.audit_log.read_text().splitlines())
    return sum(each["userAgent"] == "scriptmode" for each in answered)


@pytest.mark.prompt
def test_a_cut_connection_ends_a_job_within_two_minutes_unless_it_comes_back(jobs, monkeypatch):
    """So does a pod alone, and a job whose watch of the cluster was killed."""
    cut, alone = jobs.start(SLEEPS), jobs.start(SLEEPS)
    (short,) = jobs.start_printing("short")
    for name in (cut, alone):
        jobs.until_up(name)
    jobs.use(monkeypatch, node_selector={"none": "has"})
    waits = jobs.start(SLEEPS)
    os.kill(until(lambda: watch_of(jobs, waits)), signal.SIGKILL)
    pod, pod_alone, pod_short = (jobs.pod(name) for name in (waits, alone, short))
    begun, before = time.time(), calls(jobs)
    for name in (cut, alone, short):
        jobs.cluster.cut(jobs.pod(name))
    jobs.kill(alone)
    jobs.cluster.kubectl("delete", "pod", pod, "--wait=false")
    until(lambda: time.time() > begun + 20)
    jobs.cluster.mend(pod_short)
    jobs.until_line(short, f"line {int(jobs.lines(short)[-1].split()[-1]) + 50}")
    jobs.end("short")
    assert jobs.each_line_once(short) > 200
    assert "the pod of algo-1 was deleted" in jobs.failed(waits)
    assert "algo-1 is lost: its machine, or the network to it, does not answer" in jobs.failed(cut)
    for name, most in ((waits, 110), (cut, 130)):
        ended = jobs.job_folder(name).read_state().transitions[-1].started
        print(f"{name} has ended after {ended - begun:.0f} s")
        soon(ended - begun, most)
    until(lambda: jobs.cluster.pod(pod_alone)["status"]["phase"] in ("Failed", "Succeeded"))
    soon(time.time() - begun, 180)
    jobs.platform.describe(alone)
    until(lambda: not jobs.remains(alone))
    # Of three jobs that were followed, and their ends.
    print(f"{calls(jobs) - before} calls in {time.time() - begun:.0f} s")
    assert calls(jobs) - before < 3 * 10 * (time.time() - begun) / 60
