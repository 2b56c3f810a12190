"""How jobs of the local platform are stopped, and what is left of them when something is killed."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from fakes.local_jobs import LocalJobs, channel
from fakes.processes import recorded, until
from fakes.promptness import soon

from scriptmode.errors import JobExistsError
from scriptmode_runtime.processes import process_tree

SLEEP = "import time; print('up', flush=True); time.sleep(60)"
DAEMON = """
    import os, sys, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print("daemon", os.getpid(), flush=True)
            time.sleep(600)
        os._exit(0)
    os.wait()
    {then}
"""


def pid_in(lines):
    return int(lines[0].split()[-1])


def gone(pid):
    return process_tree.identify(pid) is None


def started_by_another_process(jobs, script, *, hosts=1):
    """Start a job from a client of its own; give that client, still running."""
    code = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from fakes.local_jobs import LocalJobs
jobs = LocalJobs({str(jobs.folder)!r}, stop_grace=20.0)
print(jobs.start({textwrap.dedent(script)!r}, hosts={hosts}), flush=True)
for event in jobs.platform.log_events("job-1", follow=True):
    print(event.message, flush=True)
"""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def test_a_stopped_script_has_its_grace_and_its_model_is_kept(jobs):
    name = jobs.start("""
        import os, signal, sys, time
        def save(*_):
            with open(os.path.join(os.environ["SM_MODEL_DIR"], "saved"), "w") as file:
                file.write("in time")
            sys.exit(0)
        signal.signal(signal.SIGTERM, save)
        print("up", flush=True)
        time.sleep(60)
    """)
    jobs.until_line(name, "up")
    jobs.platform.stop(name)
    assert jobs.platform.describe(name)["TrainingJobStatus"] in ("Stopping", "Stopped")
    description = jobs.wait(name)
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Stopped"
    passed = [transition["Status"] for transition in description["SecondaryStatusTransitions"]]
    assert passed == ["Starting", "Downloading", "Training", "Stopping", "Stopped"]
    assert jobs.model(description) == {"saved": b"in time"}


@pytest.mark.prompt
def test_a_script_that_ignores_sigterm_is_killed_after_the_grace(tmp_path):
    jobs = LocalJobs(tmp_path, stop_grace=2.0)
    name = jobs.start(
        """
        import signal, time
        signal.signal(signal.SIGTERM, lambda *_: print("told", time.monotonic(), flush=True))
        print("up", flush=True)
        while True:
            print("lives", time.monotonic(), flush=True)
            time.sleep(0.05)
        """,
        hosts=2,
    )
    for host in ("algo-1", "algo-2"):
        jobs.until_line(name, f"{host}: up")
    begun = time.monotonic()
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"
    soon(time.monotonic() - begun, 4.0)
    for host in ("algo-1", "algo-2"):
        # A handler may print within another print: lines can be empty, or have both words.
        text = "\n".join(line for line in jobs.lines(name) if line.startswith(f"{host}: "))
        last = {kind: float(moment) for kind, moment in re.findall(r"\b(told|lives) (\d+\.\d+)", text)}
        assert last["lives"] - last["told"] > 1.8
    assert not jobs.processes()
    jobs.close()


def test_a_job_stops_while_it_is_starting(jobs):
    name = jobs.start(SLEEP)
    jobs.platform.stop(name)
    assert jobs.wait(name, 5)["TrainingJobStatus"] == "Stopped"


def test_stopping_a_job_that_ended_changes_nothing(jobs):
    description = jobs.run("pass")
    jobs.platform.stop("job-1")
    assert jobs.platform.describe("job-1") == description


def test_stopping_twice_is_stopping_once(jobs):
    name = jobs.start(SLEEP)
    jobs.until_line(name, "up")
    jobs.platform.stop(name)
    jobs.platform.stop(name)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"


def test_a_job_that_runs_too_long_is_stopped_and_says_so(jobs):
    description = jobs.run(SLEEP, max_run=1)
    assert description["TrainingJobStatus"] == "Stopped"
    assert description["SecondaryStatus"] == "MaxRuntimeExceeded"
    assert "MaxRuntimeInSeconds" in description["SecondaryStatusTransitions"][-1]["StatusMessage"]
    assert jobs.model(description) == {}
    assert description["TrainingTimeInSeconds"] >= 1


@pytest.mark.parametrize(
    ("then", "status"),
    [("pass", "Completed"), ("raise SystemExit(1)", "Failed")],
    ids=["completed", "failed"],
)
def test_daemons_of_a_script_end_with_the_job(jobs, then, status):
    name = jobs.start(DAEMON.format(then=then))
    assert jobs.wait(name)["TrainingJobStatus"] == status
    assert gone(pid_in(jobs.until_line(name, "daemon")))


def test_a_daemon_that_hides_its_environment_ends_with_the_job_too(jobs):
    name = jobs.start("""
        import os, sys
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                code = "import os, time; print('hidden', os.getpid(), flush=True); time.sleep(60)"
                os.execve(sys.executable, [sys.executable, "-c", code], {})
            os._exit(0)
        os.wait()
        import time
        time.sleep(0.5)
    """)
    pid = pid_in(jobs.until_line(name, "hidden"))
    assert jobs.wait(name)["TrainingJobStatus"] == "Completed"
    assert gone(pid)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGHUP], ids=["KILL", "INT", "HUP"])
def test_the_job_outlives_its_client(jobs, number):
    client = started_by_another_process(jobs, "import time; print('up', flush=True); time.sleep(1); print('over')")
    with client:
        assert client.stdout.readline() == "job-1\n"
        jobs.until_line("job-1", "up")
        # As a terminal does it: to the client's whole process group.
        os.killpg(client.pid, number)
    description = jobs.wait("job-1")
    assert description["TrainingJobStatus"] == "Completed"
    assert "algo-1: over" in jobs.lines("job-1")


def killed_before_the_agent_started(jobs, request):
    """Record a job as its creator does, which is killed then."""
    code = """
import json, os, pathlib, sys, time
from scriptmode.platforms.local.store.state import starting_state
from scriptmode.platforms.local.store.job_record import Job
from scriptmode.platforms.local.store.job_store import JobStore
from scriptmode.request.parse import parse_request
job = Job(parse_request(json.loads(sys.argv[2])), "arn", "us-east-1", sys.executable, 120.0)
with JobStore(pathlib.Path(sys.argv[1])).create(job, starting_state("job-1", "arn", time.time())):
    os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code, jobs.data_dir, json.dumps(request)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_client_that_is_killed_before_it_started_the_agent_leaves_a_job_that_says_so(jobs):
    request = {"TrainingJobName": "job-1", "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1}}
    killed_before_the_agent_started(jobs, request)
    reason = jobs.platform.describe("job-1")["FailureReason"]
    assert reason.startswith(
        "InternalServerError: the job's agent never started, because the process that created the job"
    )
    assert "start it again: scriptmode rerun job-1" in reason
    assert "killed or crashed" not in reason
    jobs.delete("job-1")


@pytest.mark.parametrize("is_described", [False, True])
def test_a_call_that_is_repeated_after_it_was_killed_runs_the_job(jobs, tmp_path, is_described):
    request = {
        "TrainingJobName": "job-1",
        "RoleArn": "arn:aws:iam::000000000000:role/test",
        "AlgorithmSpecification": {"TrainingInputMode": "File", "ContainerEntrypoint": ["sh", "-c", "echo ran"]},
        "OutputDataConfig": {"S3OutputPath": (tmp_path / "out").as_uri()},
        "ResourceConfig": {"InstanceType": "local_process", "InstanceCount": 1, "VolumeSizeInGB": 1},
        "StoppingCondition": {"MaxRuntimeInSeconds": 60},
        "Environment": {"A": "1"},
        "HyperParameters": {"rate": "0.1"},
        "Tags": [{"Key": "team", "Value": "a"}],
        "InputDataConfig": [
            {
                "ChannelName": "train",
                "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": (tmp_path / "in").as_uri()}},
            }
        ],
    }
    (tmp_path / "in").write_text("1")
    killed_before_the_agent_started(jobs, request)
    if is_described:
        assert jobs.platform.describe("job-1")["TrainingJobStatus"] == "Failed"
    with pytest.raises(JobExistsError):
        jobs.platform.create({**request, "Environment": {"A": "2"}})
    jobs.platform.create(request)
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Completed"
    assert "algo-1: ran" in jobs.lines("job-1")
    with pytest.raises(JobExistsError):
        jobs.platform.create(request)


def test_a_killed_agent_leaves_no_host_and_a_job_that_says_so(jobs):
    name = jobs.start(DAEMON.format(then="time.sleep(600)"), hosts=2)
    daemons = [pid_in(jobs.until_line(name, f"{host}: daemon")) for host in ("algo-1", "algo-2")]
    agent = jobs.agent(name)
    launchers = [identity for name, identity in recorded(jobs.job_folder(name)).items() if name != "agent"]
    os.kill(agent.pid, signal.SIGKILL)
    until(lambda: not any(process_tree.is_running(launcher) for launcher in launchers))
    until(lambda: not process_tree.is_running(agent))
    description = jobs.platform.describe(name)
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Failed"
    assert f"agent (process {agent.pid}) was killed or crashed in Training" in description["FailureReason"]
    assert all(gone(daemon) for daemon in daemons)
    assert not jobs.processes()


def test_every_verb_notices_a_killed_agent(jobs):
    verbs = {
        "list": lambda _: jobs.platform.list(),
        "stop": jobs.platform.stop,
        "logs": lambda name: list(jobs.platform.log_events(name, follow=True)),
    }
    for verb in verbs.values():
        name = jobs.start(SLEEP)
        jobs.until_line(name, "up")
        os.kill(jobs.agent(name).pid, signal.SIGKILL)
        until(lambda name=name: not process_tree.is_running(jobs.agent(name)))
        verb(name)
        assert '"Failed"' in (jobs.job_folder(name).path / "state.json").read_text()
        assert not jobs.processes()


def test_an_agent_killed_while_it_downloads_leaves_a_job_that_says_so(jobs, silent_s3):
    name = jobs.start("pass", channels=[channel("train", "s3://training/train")])
    # The first connection was that of the check before the start.
    silent_s3.accept()[0].close()
    with silent_s3.accept()[0]:
        os.kill(jobs.agent(name).pid, signal.SIGKILL)
        until(lambda: not process_tree.is_running(jobs.agent(name)))
    description = jobs.platform.describe(name)
    assert "in Downloading" in description["FailureReason"]
    assert not jobs.job_folder(name).channels.exists()


def test_a_job_stops_while_it_downloads(jobs):
    name = jobs.start_a_long_download()
    jobs.platform.stop(name)
    assert jobs.wait(name, 5)["TrainingJobStatus"] == "Stopped"


def test_an_agent_that_is_told_to_end_stops_its_job(jobs):
    name = jobs.start(SLEEP)
    jobs.until_line(name, "up")
    os.kill(jobs.agent(name).pid, signal.SIGTERM)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"


def test_a_trouble_of_the_agent_fails_the_job_and_ends_its_hosts(jobs):
    name = jobs.start(SLEEP)
    jobs.until_line(name, "up")
    # Unexpected in a job's folder.
    (jobs.job_folder(name).path / "output").write_text("a file where a folder belongs")
    jobs.platform.stop(name)
    description = jobs.wait(name)
    assert description["TrainingJobStatus"] == "Failed"
    assert "output" in description["FailureReason"]
    assert not jobs.processes()


def test_what_is_known_of_a_job_survives_every_process_that_knew_it(jobs):
    client = started_by_another_process(jobs, "print('done')")
    with client:
        assert client.stdout.readline() == "job-1\n"
        client.stdout.read()
    from scriptmode.platforms.local import LocalPlatform

    fresh = LocalPlatform(data_dir=jobs.data_dir)
    assert fresh.describe("job-1")["TrainingJobStatus"] == "Completed"
    assert [job["TrainingJobName"] for job in fresh.list()] == ["job-1"]
    assert "done" in [event.message for event in fresh.log_events("job-1", follow=False)]
