"""A job is deleted whole, whatever it does meanwhile and whatever its folder holds."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest
from fakes.command_line import invoke, program
from fakes.local_jobs import channel
from fakes.processes import recorded, until
from fakes.promptness import GENEROUS

from scriptmode import JobNotFoundError
from scriptmode_runtime._processes import proc

pytestmark = pytest.mark.usefixtures("jobs_of_the_command")

WRITES = """
    import itertools, os, signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    folder = os.environ["SM_OUTPUT_DATA_DIR"]
    print("up", flush=True)
    for number in itertools.count():
        os.makedirs(f"{folder}/{number % 50}/deeper", exist_ok=True)
        open(f"{folder}/{number % 50}/deeper/{number % 500}", "w").write("x" * 100)
"""
#: Times that a job is deleted while it writes, and those of a thorough run.
FEW, MANY = 2, 12


def test_a_job_that_writes_is_deleted_whole_every_time(jobs, pytestconfig):
    request = jobs.request(WRITES, hosts=2)
    name = request["TrainingJobName"]
    for _ in range(MANY if pytestconfig.option.tier == "thorough" else FEW):
        jobs.platform.create(request)
        jobs.until_line(name, "algo-2: up")
        everything = list(recorded(jobs.job_folder(name)).values())
        jobs.platform.delete(name)
        assert not any(proc.is_running(each) for each in everything)
        assert list((jobs.data_dir / "jobs").iterdir()) == []
        assert not jobs.processes()


def test_a_job_that_others_write_to_is_deleted_whole(jobs, monkeypatch):
    name = jobs.start("pass")
    jobs.wait(name)
    folder = jobs.job_folder(name).path / "output"
    until(lambda: not proc.is_running(jobs.agent(name)))
    # A descriptor, as of a program whose working directory this is: it is good after a rename.
    place = os.open(folder, os.O_PATH)
    rmdir, unwritten = os.rmdir, ["third", "second", "first"]

    def write_and_remove(path, **options):
        """Remove a directory; three times write a file into the output's when it has just been emptied."""
        if path == folder.name and unwritten:
            os.close(os.open(unwritten.pop(), os.O_CREAT | os.O_WRONLY, dir_fd=place))
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", write_and_remove)
    jobs.platform.delete(name)
    os.close(place)
    assert not unwritten
    assert list((jobs.data_dir / "jobs").iterdir()) == []


FOLDERS_IN_FOLDERS = """
    import os
    for name in ("SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR", "SM_OUTPUT_INTERMEDIATE_DIR", "SM_CHANNEL_TRAIN"):
        os.chdir(os.environ[name])
        with open("own", "w") as file:
            file.write("kept")
        for _ in range(3000):
            os.mkdir("below")
            os.chdir("below")
"""


@pytest.mark.slow
def test_thousands_of_folders_in_each_other_change_no_end_and_are_removed(jobs_in_memory):
    jobs = jobs_in_memory
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "file").write_text("data")
    description = jobs.run(FOLDERS_IN_FOLDERS, channels=[channel("train", f"file://{jobs.folder}/in")])
    name = description["TrainingJobName"]
    until(lambda: not proc.is_running(jobs.agent(name)))
    folder = jobs.job_folder(name)
    assert description["TrainingJobStatus"] == "Completed", jobs.why(name)
    assert jobs.platform.describe(name).response == description
    assert "Traceback" not in folder.agent_log.read_text()
    assert not folder.hosts.exists()
    model = jobs.model(description)
    assert model["own"] == b"kept"
    assert max(path.count("/") for path in model) == 200
    (said,) = [line for line in jobs.lines(name) if "model: " in line]
    assert "is left out: its files more than 200 directories deep" in said


def test_a_running_job_is_deleted_only_by_force(jobs):
    name = jobs.start(WRITES)
    jobs.until_line(name, "up")
    refused = program("rm", name)
    assert refused.returncode == 1
    assert refused.stderr == (
        f"scriptmode: training job {name} is InProgress; stop it first with scriptmode stop {name} --wait, or kill it "
        f"without saving anything: scriptmode rm --force {name}\n"
    )
    done = program("rm", "--force", name, "nowhere")
    assert done.returncode == 1
    assert done.stdout == f"training job {name} is deleted\n"
    assert done.stderr.startswith("scriptmode: no training job named 'nowhere'")
    assert not jobs.processes()
    with pytest.raises(JobNotFoundError):
        jobs.platform.describe(name)


def test_the_second_of_two_deletions_is_not_advised_to_start_the_job_again(jobs):
    name = jobs.start(WRITES)
    jobs.until_line(name, "up")
    command = [sys.executable, "-m", "scriptmode", "rm", "--force", name]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    variables = {**os.environ, "SCRIPTMODE_DATA_DIR": str(jobs.data_dir)}
    both = [subprocess.Popen(command, env=variables, **pipes) for _ in range(2)]
    answers = [one.communicate(timeout=GENEROUS) for one in both]
    assert sorted(one.returncode for one in both) == [0, 1]
    (second,) = [stderr for _, stderr in answers if stderr]
    assert "no training job" in second
    assert "start it again" not in second


@pytest.mark.parametrize("file", ["job.json", "state.json"])
def test_a_running_job_that_cannot_be_read_is_deleted_only_by_force(jobs, file):
    name = jobs.start(WRITES)
    jobs.until_line(name, "up")
    (jobs.job_folder(name).path / file).write_text('{"x')
    refused = invoke("rm", name)
    assert refused.exit_code == 1
    assert f"{file}: " in refused.stderr
    assert refused.stderr.endswith(f"; the job still runs, stop it: scriptmode stop {name}\n")
    assert invoke("rm", "--force", name).stdout == f"training job {name} is deleted\n"
    assert not jobs.processes()


@pytest.mark.parametrize("file", ["job.json", "state.json", "hosts.json"])
def test_a_running_job_that_cannot_be_read_is_stopped(jobs, file):
    words = () if file == "job.json" else ("--wait",)
    name = jobs.start(WRITES.replace("SIG_IGN", "SIG_DFL"))
    jobs.until_line(name, "up")
    (jobs.job_folder(name).path / file).write_text('{"x')
    stopped = invoke("stop", name, *words)
    if words:
        assert (stopped.exit_code, stopped.stdout) == (0, f"training job {name} has ended: Stopped\n")
        assert not jobs.processes()
        return
    assert (stopped.exit_code, stopped.stdout) == (
        0, f"training job {name} is stopping, SIGKILL 120 s after SIGTERM by default; follow it: scriptmode logs -f {name}\n"
    )  # fmt: skip
    until(lambda: not jobs.processes())


@pytest.mark.parametrize(("is_known", "seconds"), [(True, 0), (False, GENEROUS)], ids=["stopped", "not known"])
def test_a_deleted_jobs_agent_that_was_stopped_or_is_not_known_is_ended(jobs, is_known, seconds):
    name = jobs.start(WRITES)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    if is_known:
        os.kill(agent.pid, signal.SIGSTOP)
    else:
        (jobs.job_folder(name).path / "processes.json").write_bytes(b"")
    jobs.platform.delete(name)
    until(lambda: not proc.is_running(agent), seconds)
    assert not jobs.processes()
    assert list((jobs.data_dir / "jobs").iterdir()) == []


def test_what_another_process_is_removing_is_left_to_it(jobs):
    folder = jobs.data_dir / "jobs"
    made, moved = folder / ".scriptmode-removed-made", folder / ".scriptmode-removed-moved"
    for path in (made, moved / "job-0"):
        path.mkdir(parents=True)
    # Its agent has not ended yet.
    with (moved / "job-0" / "agent.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = jobs.start("pass")
        jobs.wait(name)
        jobs.platform.delete(name)
        assert sorted(folder.iterdir()) == [made, moved]
        assert list(moved.iterdir()) == [moved / "job-0"]
    os.utime(made, (0, 0))
    name = jobs.start("pass")
    jobs.wait(name)
    jobs.platform.delete(name)
    assert list(folder.iterdir()) == []
