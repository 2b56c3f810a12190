"""An agent in the foreground, as the batch step of a cluster's job: it takes the lock, and its exit code is the job's."""

import fcntl
import signal
import subprocess
import sys

import pytest
from fakes.local_jobs import LocalJobs
from fakes.processes import until

from scriptmode.errors import PlatformError
from scriptmode.platforms.local.hosts.process_engine import ProcessEngine

SAVES = """
    import signal, sys, time
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print("up", flush=True)
    time.sleep(600)
"""


def foreground(folder):
    return (sys.executable, "-m", "scriptmode.platforms.local.agent", "--foreground", str(folder.path))


@pytest.fixture
def jobs(tmp_path, monkeypatch):
    """Jobs whose engine starts no agent: what ``sbatch`` leaves of a job that is pending."""
    monkeypatch.setattr(ProcessEngine, "launch", lambda *_: None)
    return LocalJobs(tmp_path)


@pytest.mark.parametrize(
    ("script", "code", "status"), [("print('trained')", 0, "Completed"), ("raise OSError", 1, "Failed")]
)
def test_the_exit_code_is_that_of_the_job(jobs, script, code, status):
    folder = jobs.job_folder(jobs.start(script))
    agent = subprocess.run(foreground(folder), timeout=60, check=False, capture_output=True, text=True)
    assert (agent.returncode, folder.read_state().status) == (code, status), agent.stderr
    assert subprocess.run(foreground(folder), timeout=60, check=False).returncode == code  # the job ended already


def test_a_stopped_job_does_not_end_with_0(jobs):
    name = jobs.start(SAVES)
    with subprocess.Popen(foreground(jobs.job_folder(name))) as agent:
        log = jobs.job_folder(name).log("algo-1")
        until(lambda: agent.poll() is not None or (log.exists() and "up" in log.read_text()))
        assert jobs.platform.describe(name)["SecondaryStatus"] == "Training"
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(60) == 1
    assert jobs.platform.describe(name)["TrainingJobStatus"] == "Stopped"


def test_the_agent_waits_for_a_client_that_reads_the_state(jobs):
    folder = jobs.job_folder(jobs.start("print('trained')"))
    with folder.lock_file.open("r+") as client:
        fcntl.flock(client, fcntl.LOCK_EX)
        with subprocess.Popen(foreground(folder)) as agent:
            with pytest.raises(subprocess.TimeoutExpired):
                agent.wait(0.5)
            assert folder.read_state().secondary == "Starting"
            fcntl.flock(client, fcntl.LOCK_UN)
            assert agent.wait(60) == 0


def test_a_deleted_job_is_not_run(jobs):
    folder = jobs.job_folder(jobs.start("print('trained')"))
    folder.path.rename(jobs.folder / "away")
    agent = subprocess.run(foreground(folder), timeout=60, check=False, capture_output=True, text=True)
    assert agent.returncode == 1
    assert f"scriptmode: the agent of training job {folder.name} cannot start: " in agent.stderr
    assert "Traceback" not in agent.stderr


def test_a_job_that_cannot_be_launched_leaves_no_folder(jobs, monkeypatch):
    def refuse(*_):
        raise PlatformError("the scheduler has no partition 'gpu'")

    monkeypatch.setattr(ProcessEngine, "launch", refuse)
    with pytest.raises(PlatformError, match="no partition 'gpu'"):
        jobs.start("print('trained')")
    assert not list((jobs.data_dir / "jobs").iterdir())
