"""``scriptmode rm --older-than`` removes what ended and is not needed, beside running jobs and other processes."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest
from fakes.command_line import PROGRAM, documents, invoke, program
from fakes.local_jobs import SLEEPS
from fakes.processes import until

from scriptmode import JobNotFoundError
from scriptmode_local import LocalPlatform
from scriptmode_local._agent import removal
from scriptmode_local._system.directory_lock import locked_directory
from scriptmode_runtime._processes import proc

pytestmark = pytest.mark.usefixtures("jobs_of_the_command")

LONG_AGO = time.time() - 30 * 86400


def end_long_ago(jobs, name):
    """Let a job have ended a month ago; its agent has ended too."""
    jobs.wait(name)
    agent = jobs.agent(name)
    until(lambda: not proc.is_running(agent))
    state = jobs.job_folder(name).path / "state.json"
    content = json.loads(state.read_text())
    for holder in (content, *content["transitions"]):
        for key in {"created", "modified", "started", "ended", "training_started", "training_ended"} & holder.keys():
            holder[key] = LONG_AGO
    state.write_text(json.dumps(content))


def status(jobs, name):
    return jobs.platform.describe(name).response["TrainingJobStatus"]


def prune(*words):
    return json.loads(program("rm", "--json", *words).stdout)


def names(found, key="jobs"):
    return {each["name"] for each in found[key]}


def test_jobs_that_ended_long_ago_are_deleted_and_no_others(jobs):
    old, young, running = jobs.start("pass"), jobs.start("pass"), jobs.start(SLEEPS)
    end_long_ago(jobs, old)
    jobs.wait(young)
    jobs.until_line(running, "up")
    would = prune("--older-than", "7d", "--dry-run")
    assert (names(would), would["dry_run"]) == ({old}, True)
    assert would["bytes"] > 4096
    assert status(jobs, old) == "Completed"
    said = program("rm", "--older-than", "1w").stdout.splitlines()
    assert said[0].startswith(f"deleted job {old} (")
    assert (said[-1][:6], said[-1].endswith(": 1 job")) == ("freed ", True)
    with pytest.raises(JobNotFoundError):
        jobs.platform.describe(old)
    assert program("rm", "--older-than", "1w").stdout == "nothing to delete\n"
    # However old a running job is, it stays.
    assert names(prune("--older-than", "0s")) <= {young}
    assert status(jobs, running) == "InProgress"
    assert not [path for path in (jobs.data_dir / "jobs").iterdir() if path.name[0] == "."]


def estimator_job(name, tmp_path, text):
    """Run a script by the command, which stores its source in the data directory."""
    (tmp_path / "train.py").write_text(text)
    done = program("run", "train.py", "--job-name", name, "--no-wait")
    assert done.returncode == 0, done.stderr


def test_a_source_is_deleted_with_the_last_job_that_needs_it(jobs, tmp_path):
    for name, text in (("first", "pass"), ("second", "pass"), ("other", "print(1)")):
        estimator_job(name, tmp_path, text)
        jobs.wait(name)
    sources = jobs.data_dir / "sources"
    request = json.loads((jobs.data_dir / "jobs/first/job.json").read_text())["request"]
    mine = request["HyperParameters"]["sagemaker_submit_directory"].split("/")[-2]
    (sources / "of the user").mkdir()
    for path in sources.iterdir():
        os.utime(path, (LONG_AGO, LONG_AGO))
    end_long_ago(jobs, "first")
    found = prune("--older-than", "7d")
    assert (names(found), names(found, "sources")) == ({"first"}, set())
    assert program("rerun", "second", "--job-name", "again").returncode == 0
    for name in ("second", "again"):
        end_long_ago(jobs, name)
    os.utime(sources / mine, (LONG_AGO, LONG_AGO))
    assert names(prune("--older-than", "7d"), "sources") == {mine}
    assert len(list(sources.iterdir())) == 2
    shutil.rmtree(sources)
    refused = program("rerun", "other", "--job-name", "third").stderr
    assert "does not exist, or not any more; correct it, or start a new job" in refused
    assert not (jobs.data_dir / "jobs/third").exists()


def test_a_source_that_was_just_stored_is_kept_for_the_job_that_starts_with_it(jobs, tmp_path):
    estimator_job("first", tmp_path, "pass")
    jobs.wait("first")
    (source,) = (jobs.data_dir / "sources").iterdir()
    os.utime(source, (LONG_AGO, LONG_AGO))
    # As fit does before it creates the job.
    uri = f"file://{source}/sourcedir.tar.gz"
    LocalPlatform().put_source(b"not written", uri)
    end_long_ago(jobs, "first")
    assert names(prune("--older-than", "0s"), "sources") == set()
    assert (source / "sourcedir.tar.gz").exists()


def test_a_source_that_is_pruned_while_it_is_stored_is_stored_afterwards(jobs):
    # An interrupted client left the directory.
    source = jobs.data_dir / "sources" / "abc"
    source.mkdir(parents=True)
    archive = source / "sourcedir.tar.gz"
    storing = threading.Thread(target=LocalPlatform().put_source, args=(b"archive", f"file://{archive}"))
    with locked_directory(source.parent):
        storing.start()
        until(lambda: f"-> FLOCK  ADVISORY  READ {os.getpid()} " in Path("/proc/locks").read_text())
        source.rmdir()
    storing.join()
    assert archive.read_bytes() == b"archive"


def test_cached_downloads_are_deleted_by_their_last_use(jobs):
    old, young = "old-0123456789ab", "young-0123456789ab"
    dump = jobs.data_dir / "fetched" / "dump-202511301200"
    for name, seconds in ((old, LONG_AGO), (young, time.time()), ("202511301200", LONG_AGO)):
        folder = jobs.data_dir / "fetched" / name / "model"
        folder.mkdir(parents=True)
        (folder / "weights").write_bytes(b"x" * 100_000)
        (folder.parent / ".left by an interrupted download").touch()
        os.utime(folder.parent, (seconds, seconds))
    dump.touch()
    os.utime(dump, (LONG_AGO, LONG_AGO))
    would, found = prune("--older-than", "7d", "--dry-run"), prune("--older-than", "7d")
    assert found == {**would, "dry_run": False}
    assert names(found, "cached_downloads") == {old}
    assert found["bytes"] > 100_000
    assert {path.name for path in (jobs.data_dir / "fetched").iterdir()} == {young, "202511301200", dump.name}


def test_what_interrupted_removals_left_is_deleted(jobs):
    names = (".scriptmode-removed-1", ".scriptmode-removed-2")
    left = [jobs.data_dir / folder / name for folder in ("sources", "fetched") for name in names]
    for path in left:
        (path / "entry").mkdir(parents=True)
        if path.name == ".scriptmode-removed-1":
            os.utime(path, (LONG_AGO, LONG_AGO))
    assert prune("--older-than", "7d", "--dry-run") == {**prune("--older-than", "7d"), "dry_run": True}
    # The removal of the others may still run.
    assert [path.name for path in left if path.exists()] == [".scriptmode-removed-2", ".scriptmode-removed-2"]


def test_processes_that_prune_and_delete_the_same_jobs_leave_each_other_alone(jobs):
    ended = [jobs.start("pass") for _ in range(3)]
    for name in ended:
        end_long_ago(jobs, name)
    running = jobs.start(SLEEPS)
    jobs.until_line(running, "up")
    commands = [["rm", "--older-than", "7d"]] * 2 + [["rm", *ended]]
    started = [
        subprocess.Popen([PROGRAM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for words in commands
    ]
    outputs = [process.communicate(timeout=600) for process in started]
    assert [process.returncode for process in started[:2]] == [0, 0], outputs
    for line in outputs[2][1].splitlines():
        assert "no training job" in line
    deleted = [line.split()[2] for out, _ in outputs for line in out.splitlines() if "deleted" in line]
    assert sorted(deleted) == sorted(ended)
    assert [path.name for path in (jobs.data_dir / "jobs").iterdir()] == [running]
    assert status(jobs, running) == "InProgress"


def test_a_job_that_ended_is_kept_while_its_agent_lives(jobs):
    name = jobs.start(SLEEPS)
    jobs.until_line(name, "up")
    agent = jobs.agent(name)
    os.kill(agent.pid, signal.SIGSTOP)
    folder = jobs.job_folder(name)
    state = folder.read_state()
    folder.write_state(state.with_status("Stopped", LONG_AGO))
    try:
        done = program("rm", "--older-than", "7d")
        assert done.returncode == 1
        assert done.stderr == f"scriptmode: training job {name} is kept: its agent has not ended yet; try again later\n"
        assert folder.path.exists()
        assert not removal.delete_ended_job(folder)
    finally:
        os.kill(agent.pid, signal.SIGCONT)


def test_a_job_is_deleted_though_another_process_looks_whether_it_has_an_agent(jobs, monkeypatch):
    # However late the lock is released on a busy machine.
    monkeypatch.setattr(removal, "_LOOKING_SECONDS", 60.0)
    name = jobs.start("pass")
    end_long_ago(jobs, name)
    # As `JobFolder.has_agent`, which holds the lock for a moment.
    with jobs.job_folder(name).lock_file.open() as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        release = threading.Timer(0.1, fcntl.flock, (lock, fcntl.LOCK_UN))
        release.start()
        assert removal.delete_ended_job(jobs.job_folder(name))
        release.join()


def test_a_damaged_job_is_deleted_once_it_is_old_and_has_no_agent(jobs):
    name, running = jobs.start("pass"), jobs.start(SLEEPS)
    end_long_ago(jobs, name)
    jobs.until_line(running, "up")
    for each in (name, running):
        (jobs.job_folder(each).path / "state.json").write_text("{")
    (jobs.data_dir / "jobs/mine/state.json").mkdir(parents=True)
    done = program("rm", "--older-than", "1h")
    assert (done.returncode, done.stdout) == (1, "nothing to delete\n")
    assert f"delete it: scriptmode rm {name}" in done.stderr
    assert f"the job still runs, stop it: scriptmode stop {running}" in done.stderr
    assert [error["exit_code"] for error in documents(program("rm", "--older-than", "1h", "--json").stderr)] == [1, 1]
    done = program("rm", "--older-than", "0s")
    assert (done.returncode, done.stdout.partition("(")[0]) == (1, f"deleted job {name} ")
    shutil.rmtree(jobs.data_dir / "jobs/mine")
    assert jobs.platform._store.names() == {running}
    jobs.platform.delete(running)


@pytest.mark.parametrize("age", ["", "7", "-1d", "7x", "1e3d", "nan"])
def test_another_form_of_an_age_is_a_usage_error(age):
    done = invoke("rm", "--older-than", age)
    assert done.exit_code == 2
    assert "is not an age; write a number and s, min, h, d or w, such as 12h or 7d" in done.stderr
