"""How jobs on containers end, and that nothing of them is left in Docker then."""

import os
import shutil
import signal
import subprocess
import time

import pytest
from containers.conftest import docker
from fakes.command_line import PROGRAM, program
from fakes.container_jobs import ContainerJobs
from fakes.local_jobs import LocalJobs
from fakes.processes import recorded, until
from fakes.promptness import soon

from scriptmode.platforms.base import HostActivity
from scriptmode_runtime.processes import process_tree

pytestmark = [pytest.mark.docker, pytest.mark.slow]

SLEEP = "import time; print('up', flush=True); time.sleep(600)"
SAVES = """
    import os, signal, sys, time
    def save(*_):
        with open("/opt/ml/model/saved", "w") as file:
            file.write("in time")
        sys.exit(0)
    signal.signal(signal.SIGTERM, save)
    print("up", flush=True)
    time.sleep(60)
"""
DEAF = """
    import os, signal, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with open("/opt/ml/model/kept", "w") as file:
        file.write("before")
    print("up", flush=True)
    time.sleep(60)
"""
#: Longer than containers take to start on a busy machine.
SOON = 30.0


@pytest.fixture
def jobs(tmp_path, built):
    jobs = ContainerJobs(tmp_path, built("2.15.1"), stop_grace=2.0)
    yield jobs
    jobs.close()


def until_up(jobs, name, *hosts):
    wanted = {f"{host}: up" for host in ("algo-1", *hosts)}
    return until(lambda: wanted <= set(jobs.lines(name)), SOON)


def test_the_scripts_exit_code_is_the_jobs(jobs):
    script = """
        import os, sys, time
        if os.environ["SM_CURRENT_HOST"] == "algo-1":
            time.sleep(60)
        raise SystemExit(7)
    """
    description = jobs.run(script, hosts=2)
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("AlgorithmError: algo-2, script: exit code 7")
    assert description["FailureReason"].endswith(", exit code: 7")
    assert jobs.left() == []
    # What a failed job's hosts left is kept.
    assert "exit code 7" in (jobs.job_folder("job-1").host("algo-2") / "output" / "failure").read_text()


def test_a_container_is_known_by_its_resources_and_the_line_that_it_writes(jobs):
    script = """
        import sys, time
        content = bytearray(100_000_000)
        print("\\r 10%\\r 20%", end="", flush=True)
        deadline = time.monotonic() + 600
        while time.monotonic() < deadline:
            pass
    """
    name = jobs.start(script)
    until(lambda: jobs.platform.activity(name).get("algo-1", HostActivity()).line == "\r 10%\r 20%", SOON)

    # Of a sample since then.
    def is_busy():
        found = jobs.platform.activity(name)["algo-1"]
        return found if found.cpu_percent and (found.memory_bytes or 0) > 100e6 else None

    busy = until(is_busy)
    assert 10 < busy.cpu_percent < 200
    assert busy.memory_bytes < 1e9
    assert busy.silent_seconds is not None


@pytest.mark.prompt
def test_a_stopped_script_saves_its_model_and_a_deaf_one_is_killed_after_the_grace(jobs):
    saving, deaf = jobs.start(SAVES), jobs.start(DEAF, hosts=2)
    until_up(jobs, saving)
    until_up(jobs, deaf)
    jobs.until_line(deaf, "algo-2: up")
    begun = time.monotonic()
    jobs.platform.stop(deaf)
    jobs.platform.stop(saving)
    assert jobs.wait(saving)["TrainingJobStatus"] == "Stopped"
    soon(time.monotonic() - begun, 2.0)
    assert jobs.model(jobs.wait(saving)) == {"saved": b"in time"}
    killed = jobs.wait(deaf)
    took = time.monotonic() - begun
    assert took >= 2.0
    soon(took, 6.0)
    assert killed["TrainingJobStatus"] == killed["SecondaryStatus"] == "Stopped"
    assert jobs.model(killed) == {"kept": b"before"}
    assert jobs.left() == []


def test_a_job_that_runs_too_long_is_stopped_and_keeps_its_model(jobs):
    description = jobs.run(SAVES, max_run=2)
    assert description["SecondaryStatus"] == "MaxRuntimeExceeded"
    assert jobs.model(description) == {"saved": b"in time"}
    assert jobs.left() == []


def test_a_job_stops_before_its_containers_are_there(jobs):
    name = jobs.start(SLEEP)
    jobs.platform.stop(name)
    assert jobs.wait(name, SOON)["TrainingJobStatus"] == "Stopped"
    assert jobs.left() == []


def test_no_container_outlives_a_killed_agent_whether_anybody_asks_or_not(jobs):
    name = jobs.start(SLEEP, hosts=2)
    until_up(jobs, name)
    assert len(jobs.left()) == 3
    agent = jobs.agent(name)
    os.kill(agent.pid, signal.SIGKILL)
    until(lambda: not jobs.left())
    description = jobs.platform.describe(name)
    assert description["TrainingJobStatus"] == description["SecondaryStatus"] == "Failed"
    assert f"agent (process {agent.pid}) was killed or crashed in Training" in description["FailureReason"]


def test_a_killed_host_agent_takes_its_containers_with_it_and_names_itself(jobs):
    name = jobs.start(SLEEP, hosts=2)
    until_up(jobs, name, "algo-2")
    agent = recorded(jobs.job_folder(name))["agent of algo-1"]
    os.kill(agent.pid, signal.SIGKILL)
    reason = jobs.wait(name)["FailureReason"]
    assert f"the agent of algo-1, algo-2 (process {agent.pid}) was killed by SIGKILL, and so were its hosts" in reason
    assert jobs.left() == []


def test_a_killed_container_fails_the_job_and_leaves_nothing(jobs):
    name = jobs.start(SLEEP, hosts=2)
    until_up(jobs, name, "algo-2")
    assert docker("kill", jobs.container(name, "algo-2")).returncode == 0
    description = jobs.wait(name, 5.0)
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("AlgorithmError: algo-2: the host's launcher was killed by SIGKILL")
    assert description["FailureReason"].endswith(", exit code: 137")
    assert jobs.left() == []


def test_a_job_whose_folder_is_removed_takes_its_containers_with_it(jobs):
    name = jobs.start(SLEEP)
    until_up(jobs, name)
    agent = jobs.agent(name)
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not jobs.left(), 10.0)
    until(lambda: not process_tree.is_running(agent))
    assert not jobs.job_folder(name).path.exists()


def test_two_jobs_of_one_name_run_side_by_side(jobs, tmp_path):
    (tmp_path / "other").mkdir()
    other = ContainerJobs(tmp_path / "other", jobs.image)
    assert jobs.start(SAVES) == other.start(SAVES) == "job-1"
    until_up(jobs, "job-1")
    until_up(other, "job-1")
    jobs.platform.stop("job-1")
    assert jobs.wait("job-1")["TrainingJobStatus"] == "Stopped"
    assert len(other.left()) == 2
    other.platform.stop("job-1")
    assert other.model(other.wait("job-1")) == {"saved": b"in time"}
    other.close()


def test_a_job_of_processes_needs_no_docker(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    jobs = LocalJobs(tmp_path)
    assert jobs.run("pass")["TrainingJobStatus"] == "Completed"
    jobs.close()


def test_a_command_runs_in_the_containers_of_a_running_job(jobs, monkeypatch):
    name = jobs.start(SLEEP, hosts=2)
    until_up(jobs, name, "algo-2")
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    code = "import os, socket; print(os.environ['SM_CURRENT_HOST'], socket.gethostname(), os.environ['SM_MODEL_DIR'])"
    done = program("exec", name, "--host", "algo-2", "--", "python", "-c", code)
    assert (done.returncode, done.stdout) == (0, "algo-2 algo-2 /opt/ml/model\n"), done.stderr
    assert program("exec", name, "--", "sh", "-c", "echo wrong >&2; exit 7").returncode == 7
    assert program("exec", name, "--", "sh", "-c", "echo wrong >&2; exit 7").stderr == "wrong\n"
    assert program("exec", name, "--", "nothing-like-this").returncode == 127
    assert program("exec", name, "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_a_command_in_a_container_ends_with_the_client_that_started_it(jobs, monkeypatch):
    name = jobs.start(SLEEP)
    until_up(jobs, name)
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    script = "trap 'echo interrupted; exit 9' INT; echo up; while :; do sleep 0.1; done"
    words = (PROGRAM, "exec", name, "--", "sh", "-c", script)
    shown = ("exec", name, "--", "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    for number, output in ((signal.SIGINT, "interrupted\n"), (signal.SIGKILL, "")):
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout.readline() == "up\n"
            client.send_signal(number)
            rest, _ = client.communicate(timeout=SOON)
        assert (rest, client.returncode) == (output, 9 if output else -signal.SIGKILL)
        until(lambda: "echo interrupted" not in program(*shown).stdout, SOON)
