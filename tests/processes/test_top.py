"""``scriptmode top`` on real jobs, in a terminal and elsewhere."""

import json
import re
import signal
import time
from contextlib import closing

import pytest
from fakes.command_line import PROGRAM, program
from fakes.processes import until
from fakes.terminal import Terminal

pytestmark = pytest.mark.slow
WAITS = """
import os, time
print("up", flush=True)
while not os.path.exists(os.environ["END"]):
    time.sleep(0.02)
"""


@pytest.fixture
def started(jobs, tmp_path):
    """Two jobs that run until the file ``end`` is made, with their resources known."""
    environment = {"END": str(tmp_path / "end")}
    names = [jobs.start(WAITS, hosts=hosts, more={"Environment": environment}) for hosts in (1, 2)]

    def known():
        activity = [each for name in names for each in jobs.platform.activity(name).values()]
        return len(activity) == 3 and all(each.cpu_percent is not None for each in activity)

    until(known)
    yield names
    (tmp_path / "end").touch()


@pytest.fixture
def top(jobs_of_the_command):
    """Run ``scriptmode top`` without a terminal."""
    return lambda *words: program("top", *words)


def terminal(jobs, *words):
    return closing(Terminal(100, 20, [PROGRAM, "top", *words], {"SCRIPTMODE_DATA_DIR": str(jobs.data_dir)}))


def until_shown(watched, pattern):
    return until(lambda: watched.read() and [line for line in watched.shown() if re.search(pattern, line)])


def test_without_a_terminal_the_table_of_all_running_jobs_is_printed_once(started, top):
    one, two = started
    head, *lines = top().stdout.splitlines()
    assert head.split() == ["JOB", "STATUS", "HOST", "CPU", "MEMORY", "LAST", "OUTPUT"]
    assert [line.split()[:3] for line in lines] == [
        [two, "Training", "algo-1"], [two, "Training", "algo-2"], [one, "Training", "algo-1"],
    ]  # fmt: skip
    assert all(re.search(r" +\d+%  [0-9.]+ MB +\d.* ago$", line) for line in lines)
    (said,) = json.loads(top(one, "--json").stdout)
    assert (said["job"], said["status"], list(said["hosts"])) == (one, "Training", ["algo-1"])
    assert said["hosts"]["algo-1"]["memory_bytes"] > 5e6


def test_names_are_validated_and_no_running_job_is_said(jobs, top, tmp_path):
    done = top()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "no running training jobs on this machine\n")
    unknown = top("nowhere")
    assert unknown.returncode == 1
    assert "no training job named 'nowhere'" in unknown.stderr
    both = top("one", "--last")
    assert (both.returncode, "remove one of them" in both.stderr) == (2, True)
    name = jobs.run("print(1)")["TrainingJobName"]
    assert top(name).stdout.splitlines()[1].split() == [name, "Completed", "-", "-", "-", "-"]


def test_in_a_terminal_the_table_is_refreshed_until_the_jobs_have_ended(started, jobs, tmp_path):
    with terminal(jobs, *started) as watched:
        (first,) = until_shown(watched, rf"^{started[0]} +Training +algo-1 ")
        until(lambda: until_shown(watched, rf"^{started[0]} ") != [first])
        assert watched.screen.cursor.hidden
        assert sum(line.startswith("JOB ") for line in watched.all_lines()) == 1
        (tmp_path / "end").touch()
        assert watched.wait() == 0
        assert not watched.screen.cursor.hidden
        assert sum(line.startswith("JOB ") for line in watched.all_lines()) == 1


def test_ctrl_c_leaves_the_last_table_and_the_jobs(started, jobs):
    with terminal(jobs) as watched:
        until_shown(watched, rf"^{started[1]} +Training +algo-2 ")
        watched.process.send_signal(signal.SIGINT)
        assert watched.wait() == 0
        lines = [line for line in watched.all_lines() if line]
        assert [line.split()[0] for line in lines] == ["JOB", started[1], started[1], started[0]]
        assert not watched.screen.cursor.hidden
        time.sleep(0.1)
        assert jobs.platform.describe(started[0]).response["TrainingJobStatus"] == "InProgress"
