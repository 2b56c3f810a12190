"""A data directory that can be read and not written: jobs are described, and none is ended."""

import json
import os
import subprocess
import sys

import pytest
from fakes import plain_user
from fakes.local_jobs import LocalJobs
from fakes.processes import until

from scriptmode.errors import DataError
from scriptmode_runtime._processes import proc

SCRIPT = """
    import time
    print("loss=0.5", flush=True)
    time.sleep(600)
"""
FOLLOWING = ("logs -f --plain", "logs -f --json", "logs -f --tail 1")
VERBS = ("list", "list --json", "describe", "describe --json", "logs", "logs --tail 1", "metrics", "stop")
PROGRAM = f"""
import json, os, sys
from fakes.command_line import invoke
os.environ["SCRIPTMODE_DATA_DIR"] = sys.argv[1]
found = {{}}
for verb in sys.argv[3:] or {VERBS!r}:
    name, *rest = verb.split()
    done = invoke(name, *([] if name == "list" else [sys.argv[2]]), *rest)
    found[verb] = [done.exit_code, done.stdout, done.stderr]
print(json.dumps(found))
"""


@pytest.fixture
def folder():
    with plain_user.folder_of_the_user() as path:
        yield path


@pytest.fixture
def jobs(folder):
    found = LocalJobs(folder)
    yield found
    for name in [each["TrainingJobName"] for each in found.platform.list()]:
        found.platform.delete(name)


def started(jobs, *, is_killed):
    """Start a job, kill its agent where asked, and let no command read it."""
    name = jobs.start(SCRIPT, metrics={"loss": "loss=([0-9.]+)"})
    jobs.until_line(name, "loss")
    if is_killed:
        jobs.kill(name)
        until(lambda: not proc.is_running(jobs.agent(name)))
    return name


def looked_at_by_a_plain_user(jobs, name, *verbs):
    """Ask as a user who owns everything and may write nothing."""
    subprocess.run(["chown", "-R", str(plain_user.UID), jobs.data_dir], check=True)
    subprocess.run(["chmod", "-R", "a-w", jobs.data_dir], check=True)
    try:
        return json.loads(plain_user.run(PROGRAM, str(jobs.data_dir), name, *verbs, home=jobs.folder))
    finally:
        subprocess.run(["chmod", "-R", "u+w", jobs.data_dir], check=True)


def looked_at_through_a_read_only_mount(jobs, name, *verbs):
    """Ask as root, with the data directory bound read-only over itself in a mount namespace."""
    script = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
    program = [sys.executable, "-c", PROGRAM, jobs.data_dir, name, *verbs]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-euc", script, jobs.data_dir, *program],
        env={**os.environ, "PYTHONPATH": str(plain_user.TESTS)}, check=True, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_running_job_is_shown_as_it_is(jobs):
    name = started(jobs, is_killed=False)
    found = looked_at_by_a_plain_user(jobs, name)
    for verb in VERBS[:-1]:
        assert found[verb][0] == 0, found[verb]
    assert name in found["list"][1]
    assert json.loads(found["describe --json"][1])["TrainingJobStatus"] == "InProgress"
    assert "loss=0.5" in found["logs"][1]
    assert "0.5" in found["metrics"][1]
    code, _, error = found["stop"]
    assert "Traceback" not in error
    assert code == 1
    assert f"training job {name} cannot be asked to stop: " in error


def test_a_job_that_cannot_be_asked_to_stop_now_stops_after_its_grace(jobs):
    name = started(jobs, is_killed=False)
    (jobs.job_folder(name).path / "stop").symlink_to("/nowhere/stop")
    with pytest.raises(DataError, match="asked to stop now: .*; it stops after its grace period; free some space"):
        jobs.platform.stop(name, now=True)
    assert jobs.wait(name)["TrainingJobStatus"] == "Stopped"


def test_a_job_that_lost_its_agent_is_said_to_have_and_is_left_as_it_is(jobs):
    name = started(jobs, is_killed=True)
    folder = jobs.job_folder(name).path
    before = (folder / "state.json").read_bytes()
    found = looked_at_by_a_plain_user(jobs, name, *VERBS[:-1], *FOLLOWING)
    for verb in VERBS[:-1]:
        assert found[verb][0] == 0, found[verb]
    lost = "its agent died in Training; this folder cannot be written, so nothing was stopped"
    assert lost in found["describe"][1]
    assert "its agent died in Training" in found["list"][2]
    assert "loss=0.5" in found["logs"][1]
    for verb in FOLLOWING:
        code, shown, said = found[verb]
        assert (code, "loss=0.5" in shown, lost in said, "is still running" in said) == (1, True, True, False), verb
    assert (folder / "state.json").read_bytes() == before
    assert jobs.platform.describe(name).response["TrainingJobStatus"] == "Failed"


@pytest.mark.root
def test_a_job_of_a_read_only_file_system_is_not_deleted_and_the_cause_is_said(jobs):
    name = jobs.start("pass")
    jobs.wait(name)
    (code, _, error) = looked_at_through_a_read_only_mount(jobs, name, "rm")["rm"]
    assert code == 1
    assert "Read-only file system" in error
    assert error.endswith("; delete it where that file system can be written\n")
    assert jobs.exists(name)


def test_a_job_that_may_not_be_read_is_not_deleted_and_the_cause_is_said(jobs):
    jobs.wait(name := jobs.start("pass"))
    until(lambda: not proc.is_running(jobs.agent(name)))
    jobs.job_folder(name).path.chmod(0)
    code, _, error = looked_at_by_a_plain_user(jobs, name, "rm --force")["rm --force"]
    jobs.job_folder(name).path.chmod(0o700)
    assert (code, error.rpartition("; ")[2]) == (1, f"delete it as a user who may write in {jobs.data_dir}/jobs\n")
