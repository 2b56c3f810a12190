"""An agent that is there and does not work: it is noticed, and its job can be ended."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from fakes.command_line import invoke
from fakes.installed import require_mounts
from fakes.local_jobs import SAVES, SLEEPS, channel
from fakes.processes import recorded, until

from scriptmode_local._agent import lost_agent
from scriptmode_local._store import heartbeat
from scriptmode_runtime._processes import proc, process_tree

pytestmark = pytest.mark.usefixtures("jobs_of_the_command")

WAITS = """
import os, pathlib, signal, subprocess
from scriptmode_local._store import heartbeat
from scriptmode_runtime._processes import proc
heartbeat.INTERVAL_SECONDS, heartbeat.LONGEST_WORK_SECONDS = 0.05, {longest}
path = pathlib.Path({lock!r})
lock = os.open(path, os.O_RDWR | os.O_CREAT)
with heartbeat.Heartbeat(lock).beating():
    path.write_text(proc.boot_id() + " 0.0")
    os.utime(path, (0, 0))
    subprocess.run(["sleep", "1"], check=True)
print(heartbeat.silent_since(path) is not None)
print(signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0))
"""


def a_stopped_agent(jobs, **fields):
    """Start a job and stop its agent; give the job's name and the agent."""
    name = jobs.start(SAVES, **fields)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    os.kill(agent.pid, signal.SIGSTOP)
    until(lambda: proc.state(agent.pid) == "T")
    return name, agent


def let_time_pass(jobs, name, seconds):
    """Make the agent's last sign of life, and all that the job did before it, older."""
    folder = jobs.job_folder(name)
    boot, beat = folder.lock_file.read_text().split()
    before = time.time() - seconds
    with folder.lock_file.open("r+") as file:
        file.write(f"{boot} {float(beat) - seconds:.3f}")
    os.utime(folder.lock_file, (before, before))


def make_older(jobs, name, seconds):
    """Make all that the job did before older."""
    file = jobs.job_folder(name).path / "state.json"
    state = json.loads(file.read_text())
    for transition in state["transitions"]:
        transition["started"] -= seconds
    file.write_text(json.dumps(state))


def test_an_agent_records_that_it_works_while_inputs_are_copied(jobs):
    name = jobs.start_a_long_download()
    lock = jobs.job_folder(name).lock_file
    first = lock.read_text()
    until(lambda: lock.read_text() != first, 3 * heartbeat.INTERVAL_SECONDS)
    assert jobs.job_folder(name).read_state().secondary == "Downloading"
    assert jobs.job_folder(name).silent_since() is None


@pytest.mark.parametrize(("longest", "is_silent"), [(60.0, False), (0.0, True)], ids=["works", "works for too long"])
def test_an_agent_that_waits_for_other_programs_works(tmp_path, longest, is_silent):
    """It has no turn to record that: another process is asked to, as pytest needs this one's timer."""
    lock = tmp_path / "agent.lock"
    program = WAITS.format(lock=str(lock), longest=longest)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == f"{is_silent}\nTrue\n"


def test_every_look_says_that_the_agent_does_not_answer_until_it_goes_on(jobs):
    name, agent = a_stopped_agent(jobs)
    said = f"the job's agent (process {agent.pid}) has not answered since "
    # At once, as it is stopped.
    message = jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert said in message
    assert f"it is stopped, and goes on by: kill -CONT {agent.pid}" in message
    let_time_pass(jobs, name, 100)
    described = invoke("describe", name)
    assert said in described.stdout
    assert f"end the job: scriptmode stop {name}" in described.stdout
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "InProgress"
    listed = invoke("list")
    assert name in listed.stdout
    assert said in listed.stderr
    (summary,) = json.loads(invoke("list", "--json").stdout)
    assert said in summary["StatusMessage"]
    process_tree.send_signal(agent, signal.SIGCONT)
    until(lambda: said not in str(jobs.platform.describe(name).response))


def test_a_stop_continues_an_agent_that_was_stopped(jobs):
    name, _ = a_stopped_agent(jobs)
    let_time_pass(jobs, name, 100)
    done = invoke("stop", name, "--wait")
    assert done.stdout == f"training job {name} has ended: Stopped\n"
    assert jobs.model(jobs.platform.describe(name).response) == {"algo-1": b"in time"}


@pytest.fixture
def hangs(monkeypatch):
    """Agents are stopped again whenever they are continued, as one that hangs is: nothing wakes them."""
    monkeypatch.setattr(lost_agent, "WAKING_SECONDS", 0.2)
    monkeypatch.setattr(
        process_tree, "send_signal", lambda who, number: number == signal.SIGKILL and os.kill(who.pid, number)
    )


def was_killed(jobs, name, agent, why):
    """Check that nothing of a job is left whose agent was killed for a reason."""
    description = jobs.platform.describe(name).response
    assert description["TrainingJobStatus"] == "Failed"
    assert f"agent (process {agent.pid}) has not answered since " in description["FailureReason"]
    assert f"and was killed, as {why}" in description["FailureReason"]
    assert not proc.is_running(agent)
    assert not jobs.processes()


def test_a_stop_ends_an_agent_that_hangs(jobs, hangs):
    name, agent = a_stopped_agent(jobs)
    let_time_pass(jobs, name, 100)
    done = invoke("stop", name)
    assert (done.exit_code, done.stdout) == (0, f"training job {name} has ended: Failed\n")
    was_killed(jobs, name, agent, "the job was asked to stop")


def test_a_job_past_its_time_is_ended_by_the_next_look(jobs, hangs):
    name, agent = a_stopped_agent(jobs, max_run=50)
    let_time_pass(jobs, name, 100)
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "InProgress"
    make_older(jobs, name, 200)
    was_killed(jobs, name, agent, "MaxRuntimeInSeconds, 50 s, had passed")


def test_a_job_past_its_time_whose_agent_is_continued_was_not_stopped(jobs):
    name, _ = a_stopped_agent(jobs, max_run=1)
    time.sleep(1)
    let_time_pass(jobs, name, 100)
    make_older(jobs, name, 200)
    jobs.platform.describe(name)
    assert jobs.wait(name)["SecondaryStatus"] == "MaxRuntimeExceeded"


def test_a_stopped_process_of_a_host_is_noticed_at_once_until_it_goes_on(jobs):
    name = jobs.start(SAVES)
    jobs.until_line(name, "up")

    def message():
        return jobs.platform.describe(name).response["SecondaryStatusTransitions"][-1]["StatusMessage"]

    for label, what in (("agent of algo-1", "the agent of algo-1"), ("algo-1", "the launcher of algo-1")):
        pid = recorded(jobs.job_folder(name))[label].pid
        os.kill(pid, signal.SIGSTOP)
        told = f"Training in progress; {what} (process {pid}) is stopped, and goes on by: kill -CONT {pid}"
        until(lambda told=told: message() == told, describe=message)
        os.kill(pid, signal.SIGCONT)
        until(lambda: message() == "Training in progress", describe=message)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"


def test_the_time_limit_holds_while_the_agent_is_stopped(jobs):
    name = jobs.start(SLEEPS, max_run=4)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    process_tree.send_signal(agent, signal.SIGSTOP)
    try:
        until(lambda: not any("train.py" in proc.command_line(pid) for pid in jobs.processes()), 60)
        assert jobs.job_folder(name).read_state().secondary == "Training"
    finally:
        process_tree.send_signal(agent, signal.SIGCONT)
    ended = jobs.wait(name)
    assert (ended["TrainingJobStatus"], ended["SecondaryStatus"]) == ("Stopped", "MaxRuntimeExceeded")


def test_a_failure_before_the_time_limit_stays_one_while_the_agent_is_stopped(jobs):
    script = """
        import sys, time
        print("up", flush=True)
        time.sleep(1.5)
        sys.exit("no data in the channel")
    """
    name = jobs.start(script, max_run=4)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    process_tree.send_signal(agent, signal.SIGSTOP)
    time.sleep(10)
    process_tree.send_signal(agent, signal.SIGCONT)
    ended = jobs.wait(name)
    assert ended["TrainingJobStatus"] == "Failed"
    assert "no data in the channel" in ended["FailureReason"]


@pytest.fixture
def soon(tmp_path, monkeypatch):
    """Agents whose tasks hang after seconds."""
    changes = "import scriptmode_local._system.forked_tasks as tasks\ntasks.SILENT_SECONDS = 3.0\n"
    (tmp_path / "sitecustomize.py").write_text(
        f"try:\n    {changes.replace(chr(10), chr(10) + '    ')}\nexcept ImportError:\n    pass\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def stop_tasks(jobs, name, label, count):
    """Stop the tasks of an agent, once there are as many."""
    processes = recorded(jobs.job_folder(name))
    hosts = {process.pid for process in processes.values()}
    tasks = until(lambda: len(found := {*process_tree.children(processes[label].pid)} - hosts) == count and found)
    for pid in tasks:
        os.kill(pid, signal.SIGSTOP)


READS = """
    import os, time
    print("up", flush=True)
    while True:
        open(os.environ["SM_INPUT_DIR"] + "/data/train{}", "rb").read()
        time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("mode", "file", "reason"),
    [
        ("FastFile", "/a", "the FastFile server of channel 'train' on algo-1 (process "),
        ("Pipe", "_0", "the writer of channel 'train' on algo-1 (process "),
    ],
)
def test_a_server_of_inputs_that_hangs_fails_the_job_by_its_name(jobs, soon, tmp_path, mode, file, reason):
    if mode == "FastFile":
        require_mounts()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a").write_text("A")
    script = READS.replace("{}", file) if mode == "FastFile" else SLEEPS
    name = jobs.start(script, channels=[channel("train", f"file://{tmp_path}/in", InputMode=mode)])
    jobs.until_line(name, "up")
    # The server, and the sampler of CPU and memory.
    stop_tasks(jobs, name, "agent of algo-1", 2)
    ended = jobs.wait(name, 30)
    assert reason in ended["FailureReason"]
    assert "was stopped for 3 s, and was killed" in ended["FailureReason"]
    assert not jobs.processes()


@pytest.mark.parametrize(
    ("label", "task"), [("agent", "the upload of checkpoints"), ("agent of algo-1", "the sampler of CPU and memory")]
)
def test_a_job_goes_on_without_a_task_that_hangs_and_its_log_tells_it(jobs, soon, tmp_path, label, task):
    (tmp_path / "checkpoints").mkdir()
    uri = {"CheckpointConfig": {"S3Uri": f"file://{tmp_path}/checkpoints", "LocalPath": "/opt/ml/checkpoints"}}
    name = jobs.start(SAVES, more=uri)
    jobs.until_line(name, "up")
    stop_tasks(jobs, name, label, 1)
    until(lambda: jobs.until_line(name, f"scriptmode: {task} has ended: {task} (process "), 30)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"


def test_the_list_says_for_how_long_a_job_has_printed_nothing(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_line(name, "up")
    log = jobs.job_folder(name).log("algo-1")
    os.utime(log, (time.time() - 40,) * 2)
    until(lambda: f"{name}: no output for 4" in invoke("list").stderr)
