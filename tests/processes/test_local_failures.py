"""Local jobs that fail or lose something: what is told, and that everything of them ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from fakes.command_line import PROGRAM
from fakes.local_jobs import KEEPS_WRITING, SLEEPS, channel
from fakes.processes import until
from processes.small_disk import run_on_small_disk

from scriptmode import Failure, JobNotFoundError, TrainingJob, TrainingJobFailed
from scriptmode.errors import JobExistsError
from scriptmode_local._hosts import local_agent
from scriptmode_local._outputs import packed_artifacts
from scriptmode_local._store.job_store import JobFolder
from scriptmode_runtime._processes import proc


def failure_of(jobs, script, **fields):
    description = jobs.run(script, **fields)
    with pytest.raises(TrainingJobFailed) as caught:
        TrainingJob(description["TrainingJobName"], jobs.platform).wait()
    return caught.value.failure


@pytest.mark.parametrize("phase", ["Training", "Uploading"])
def test_a_killed_agent_leaves_no_file_that_is_not_complete(jobs, phase):
    name = jobs.start(SLEEPS)
    jobs.until_up(name)
    folder = JobFolder(jobs.data_dir / "jobs" / name)
    delivered = jobs.data_dir / "jobs" / name / "output"
    delivered.mkdir(exist_ok=True)
    agent = folder.read_processes()["agent"].pid
    os.kill(agent, signal.SIGSTOP)
    drafts = [folder.path / ".scriptmode-new-abcdefgh"]
    if phase == "Uploading":
        drafts += [folder.output / ".model.tar.gz", packed_artifacts.draft_of(delivered / "model.tar.gz")]
    for draft in drafts:
        draft.write_text("half")
    os.kill(agent, signal.SIGKILL)
    until(lambda: jobs.platform.describe(name).response["TrainingJobStatus"] == "Failed")
    assert [draft for draft in drafts if draft.exists()] == []


#: What a script leaves running: it waits until another job can take the port of its own.
WAITS_FOR_THE_PORT = """
import fcntl, pathlib, sys
port, told = map(pathlib.Path, sys.argv[1:])
print("up", flush=True)
fcntl.flock(port.open(), fcntl.LOCK_EX)
told.touch()
"""


def test_the_ports_of_a_job_are_free_once_its_last_process_is_killed(jobs):
    told, ports = jobs.folder / "taken", jobs.data_dir / "ports"
    words = f"['-c', {WAITS_FOR_THE_PORT!r}, next(pathlib.Path({str(ports)!r}).iterdir()), {str(told)!r}]"
    script = f"import pathlib, subprocess, sys; subprocess.call([sys.executable, *{words}], start_new_session=True)"
    name = jobs.start(script)
    jobs.until_up(name)
    jobs.kill(name, "agent of algo-1")
    assert "was killed by SIGKILL" in jobs.wait(name)["FailureReason"]
    until(lambda: not jobs.processes())
    assert not told.exists()


@pytest.mark.parametrize("inodes", [5, 12], ids=["source", "record"])
def test_a_disk_without_inodes_is_told_as_such(tmp_path, monkeypatch, inodes):
    (tmp_path / "train.py").write_text("pass")
    (tmp_path / "disk").mkdir()
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "disk" / "data"))
    monkeypatch.chdir(tmp_path)
    done = run_on_small_disk(tmp_path / "disk", f"size=50m,nr_inodes={inodes}", PROGRAM, "run", "train.py")
    assert done.returncode == 1
    assert re.search(r"the disk of '.*' is full \(5\d.\d MB free, \d+ inodes\)", done.stderr)
    assert "; delete some files, or set SCRIPTMODE_DATA_DIR to a directory on another disk" in done.stderr


def forge(**fields):
    """Return a script that writes a record of a failure and kills its launcher, which can then not write its own."""
    texts = dict.fromkeys(("cause", "process", "signal", "exception", "hint", "traceback"), "forged")
    return f"""
        import json, os
        folder = os.environ["SM_OUTPUT_DIR"]
        with open(os.path.join(folder, "failure.json"), "w") as file:
            json.dump({ ({**texts, **fields})!r}, file)
        with open(os.path.join(folder, "failure"), "w") as file:
            file.write("my own words")
        os.kill(os.getppid(), 9)
    """


def test_a_record_that_names_another_host_is_not_believed(jobs):
    assert failure_of(jobs, forge(host="algo-9", exit_code=9)) == Failure("my own words", exit_code=137)


@pytest.mark.parametrize("exit_code", [1, None])
def test_the_observed_exit_code_takes_precedence_over_the_recorded_one(jobs, exit_code):
    failure = failure_of(jobs, forge(host="algo-1", exit_code=exit_code))
    assert (failure.cause, failure.host, failure.exit_code, failure.signal) == ("forged", "algo-1", 137, "")


def test_an_output_place_that_is_lost_under_way_fails_the_job_and_keeps_the_artifacts(jobs):
    out = jobs.folder / "out"
    program = f"import pathlib; out = pathlib.Path({str(out)!r}); out.rmdir(); out.touch()"
    description = jobs.run(program, output=f"file://{out}")
    assert description["TrainingJobStatus"] == "Failed"
    assert description["FailureReason"].startswith("ClientError: Artifact upload failed: file://")
    kept = jobs.data_dir / "jobs/job-1/output"
    assert str(kept) in description["FailureReason"]
    assert (kept / "model.tar.gz").exists()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        pytest.param("pass", 0, id="nothing, and names no place"),
        pytest.param("import os; os.environ['SM_MODEL_DIR']", 1, id="nothing, and names the variable"),
        pytest.param("open('weights.keras', 'w').close()", 1, id="in its working directory"),
        pytest.param("raise SystemExit(1)", 0, id="nothing after a failure"),
    ],
)
def test_a_completed_job_that_left_no_model_is_told_where_to_save_it(jobs, program, told):
    name = jobs.run(program, hosts=2)["TrainingJobName"]
    lines = [line for line in jobs.lines(name) if "the script saved no files in SM_MODEL_DIR" in line]
    assert len(lines) == told
    assert all("the directory that it names" in line and line.startswith("algo-1: scriptmode: ") for line in lines)


def test_a_model_in_another_place_is_named_where_none_is_delivered(jobs, tmp_path):
    place = tmp_path / "models"
    name = jobs.run(
        """
        import os, sys
        os.mkdir("run")
        open("run/weights.h5", "w").close()
        folder = sys.argv[sys.argv.index("--model_dir") + 1].removeprefix("file://")
        os.makedirs(folder)
        open(folder + "/checkpoint", "w").close()
        """,
        hyperparameters={"model_dir": place.as_uri()},
    )["TrainingJobName"]
    (line,) = [line for line in jobs.lines(name) if "the script saved no files in SM_MODEL_DIR" in line]
    assert line.endswith(
        f"; its working directory, which is not kept, has 'run/weights.h5'; model_dir, {place.as_uri()}, has files"
    )


#: Seconds. The grace of these jobs is 20 s: ending later than this would mean that it was waited for.
BELOW_THE_GRACE = 15.0


def test_a_job_whose_folder_is_removed_while_it_stops_does_not_wait_for_the_grace(jobs):
    name = jobs.start(KEEPS_WRITING)
    jobs.until_line(name, "up")
    jobs.platform.stop(name)
    until(lambda: jobs.job_folder(name).read_state().secondary == "Stopping")
    agent = jobs.agent(name)
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not proc.is_running(agent), BELOW_THE_GRACE)
    assert not jobs.processes()


def test_a_job_whose_folder_is_removed_while_it_downloads_ends(jobs):
    name = jobs.start_a_long_download()
    agent = jobs.agent(name)
    shutil.rmtree(jobs.job_folder(name).path, ignore_errors=True)
    until(lambda: not proc.is_running(agent))
    assert not jobs.job_folder(name).path.exists()


def test_a_follower_of_a_removed_job_is_told_and_a_new_job_takes_its_name(jobs):
    request = jobs.request(SLEEPS)
    name = request["TrainingJobName"]
    jobs.platform.create(request)
    events = jobs.platform.log_events(name, follow=True)
    next(event for event in events if event.message == "up")
    agent = jobs.agent(name)
    jobs.delete(name)
    with pytest.raises(JobNotFoundError, match=name):
        list(events)
    jobs.platform.create(request)
    until(lambda: not proc.is_running(agent))
    jobs.until_line(name, "up")
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "InProgress"


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
    pid = int(jobs.until_line(name, "hidden")[0].split()[-1])
    jobs.completed(name)
    assert proc.identify(pid) is None


#: Records a job as its creator does, which is killed then.
KILLED = """
import json, os, pathlib, sys, time
from scriptmode_local._store.state import starting_state
from scriptmode_local._store.job_record import Job
from scriptmode_local._store.job_store import JobStore
from scriptmode._core.request.parse import parse_request
job = Job(parse_request(json.loads(sys.argv[2])), "arn", "us-east-1", sys.executable, 120.0)
with JobStore(pathlib.Path(sys.argv[1])).create(job, starting_state(job.request.name, "arn", time.time())):
    os.kill(os.getpid(), 9)
"""


def test_a_job_whose_agent_cannot_be_imported_fails_with_its_log(jobs, monkeypatch):
    monkeypatch.setattr(local_agent, "AGENT_MODULE", "scriptmode.absent")
    reason = jobs.wait(jobs.start("print('ran')"))["FailureReason"]
    assert reason.startswith("InternalServerError: the job's agent never started; nothing of the script has run")
    assert reason.endswith("ModuleNotFoundError: No module named 'scriptmode.absent'")


def test_a_call_that_is_repeated_after_its_client_was_killed_before_the_agent_started_runs_the_job(jobs):
    more = {"Environment": {"A": "1"}, "Tags": [{"Key": "team", "Value": "a"}]}
    (jobs.folder / "in").write_text("1")
    inputs = [channel("train", (jobs.folder / "in").as_uri())]
    request = record_and_be_killed(jobs, hyperparameters={"rate": 0.1}, channels=inputs, more=more)
    name = request["TrainingJobName"]
    reason = jobs.platform.describe(name).response["FailureReason"]
    why = "the job's agent never started, because the process that created the job"
    assert reason.startswith(f"InternalServerError: {why}")
    assert f"start it again: scriptmode rerun {name}" in reason
    with pytest.raises(JobExistsError):
        jobs.platform.create({**request, "Environment": {"A": "2"}})
    jobs.platform.create(request)
    jobs.completed(name)
    assert "algo-1: ran" in jobs.lines(name)
    with pytest.raises(JobExistsError):
        jobs.platform.create(request)


def record_and_be_killed(jobs, **fields):
    """Record a job whose creator is killed before it starts the agent; return the request."""
    request = jobs.request("print('ran')", **fields)
    killed = subprocess.run([sys.executable, "-c", KILLED, jobs.data_dir, json.dumps(request)], check=False)
    assert killed.returncode == -signal.SIGKILL
    return request


def test_a_job_with_retries_whose_agent_never_started_starts_again(jobs):
    name = record_and_be_killed(jobs, more={"RetryStrategy": {"MaximumRetryAttempts": 1}})["TrainingJobName"]
    assert jobs.platform.describe(name).response["SecondaryStatus"] == "Interrupted"
    jobs.completed(name)
    assert [line for line in jobs.lines(name) if "ran" in line] == ["algo-1: ran"]


def test_a_job_with_retries_whose_agent_never_starts_fails(jobs, monkeypatch):
    name = record_and_be_killed(jobs, more={"RetryStrategy": {"MaximumRetryAttempts": 2}})["TrainingJobName"]
    monkeypatch.setattr(local_agent, "AGENT_MODULE", "scriptmode.absent")
    reason = jobs.wait(name)["FailureReason"]
    assert "it had been started again 2 times, which is all of max_retry_attempts" in reason, reason


def test_a_repeated_call_starts_a_job_with_retries_that_never_started_once(jobs):
    request = record_and_be_killed(jobs, more={"RetryStrategy": {"MaximumRetryAttempts": 1}})
    jobs.platform.create(request)
    description = jobs.completed(request["TrainingJobName"])
    assert "Interrupted" not in [each["Status"] for each in description["SecondaryStatusTransitions"]]


def test_an_agent_killed_while_it_downloads_leaves_a_job_that_says_so(jobs, silent_s3):
    name = jobs.start("pass", channels=[channel("train", "s3://training/train")])
    # The first connection was that of the check before the start.
    silent_s3.accept()[0].close()
    with silent_s3.accept()[0]:
        jobs.kill(name)
        until(lambda: not proc.is_running(jobs.agent(name)))
    assert "in Downloading" in jobs.platform.describe(name).response["FailureReason"]
    assert not jobs.job_folder(name).channels.exists()


def test_an_error_of_the_agent_fails_the_job_and_ends_its_hosts(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_line(name, "up")
    # Unexpected in a job's folder.
    (jobs.job_folder(name).path / "output").write_text("a file where a folder belongs")
    jobs.platform.stop(name)
    description = jobs.wait(name)
    assert description["TrainingJobStatus"] == "Failed"
    assert "output" in description["FailureReason"]
    assert not jobs.processes()


def test_what_an_agent_that_was_killed_did_not_remove_is_removed_by_the_next_look(jobs):
    (jobs.folder / "in").mkdir()
    (jobs.folder / "in" / "a").write_text("1")
    name = jobs.start("pass", channels=[channel("train", f"file://{jobs.folder}/in")])
    jobs.completed(name)
    folder = jobs.job_folder(name)
    until(lambda: not folder.has_agent())
    (folder.channels / "0").mkdir(parents=True)
    (folder.host("algo-1") / "input").mkdir(parents=True)
    os.mkfifo(folder.host("algo-1") / "input" / "train_0")
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "Completed"
    assert not folder.channels.exists()
    assert not folder.hosts.exists()
