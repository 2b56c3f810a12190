"""A client that is killed, or stopped, at any point of the creation of a source, a job and a tuning job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scriptmode.errors import DataError
from scriptmode_local import LocalPlatform

#: Creates them once for each point, a call of the operating system, at which it gets a signal; prints how many there are.
CREATOR = """
import os, signal, sys
from pathlib import Path
from fakes.local_jobs import request_for
from scriptmode_local import LocalPlatform
from scriptmode_local._tuning.tuning_store import TuningRecord, TuningStore, starting_state

data, sent = Path(sys.argv[1]), signal.Signals[sys.argv[2]]
platform = LocalPlatform(data_dir=data)

def store_source(number):
    source = f"file://{data}/sources/{number}/sourcedir.tar.gz"
    platform.put_source(b"archive", source)
    return request_for(f"job-{number}", source=source, output=f"file://{data}/out", max_run=60)

def create(number):
    platform.create(store_source(number), failure="it is not run")
    record = TuningRecord({"HyperParameterTuningJobName": f"tuning-{number}"}, {}, "arn")
    with TuningStore(data).create(record, starting_state(0.0)):
        pass

def create_and_get_signal(number):
    calls = 0
    def on_call(event, _):
        nonlocal calls
        calls += event.partition(".")[0] in ("open", "os", "fcntl", "tempfile")
        if calls == number:
            calls += 1
            os.kill(os.getpid(), sent)
    sys.addaudithook(on_call)
    create(number)
    os._exit(0)

create(0)
number, status = 0, None
while status != 0:
    number += 1
    child = os.fork() or create_and_get_signal(number)
    status = os.waitpid(child, os.WUNTRACED)[1]
    if sent == signal.SIGKILL:
        platform.require_runnable(store_source(f"{number}-again"))
    platform.list()
    if os.WIFSTOPPED(status):
        os.kill(child, signal.SIGCONT)
        assert os.waitpid(child, 0)[1] == 0, number
        assert platform.describe(f"job-{number}").status == "Failed"
        assert f"tuning-{number}" in TuningStore(data).names()
    left = [path for path in data.rglob("*") if path.name.startswith((".scriptmode-new-", ".scriptmode-removed-"))]
    assert not left, (number, left)
print(number)
"""


@pytest.mark.slow
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_the_next_command_removes_what_a_killed_client_left_and_nothing_of_a_living_one(tmp_path, sent):
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        (sys.executable, "-c", CREATOR, str(tmp_path / "data"), sent),
        capture_output=True, text=True, timeout=600, check=False, env=env,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30


def test_what_is_a_users_stays_in_the_output_directory_and_in_the_data_directory(jobs):
    folders = (".new-a", ".removed-a", "jobs/.removed-a", "jobs/notes", "queue", "queue/a")
    kept = [jobs.folder / "out" / ".new-notes" / "notes", *(jobs.data_dir / folder / "notes" for folder in folders)]
    for path in kept:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    platform = LocalPlatform(data_dir=jobs.data_dir, queue=1)
    platform.create(request := jobs.request("pass", output=f"file://{jobs.folder}/out"))
    assert jobs.wait(request["TrainingJobName"])["TrainingJobStatus"] == "Completed"
    platform.list()
    platform.delete(request["TrainingJobName"])
    (linked := jobs.data_dir / "jobs" / "linked").symlink_to(jobs.folder / "out")
    for name in ("notes", "linked"):
        with pytest.raises(DataError, match=f"jobs/{name} is a link, or has no file of a job, so it is kept; move it"):
            platform.delete(name)
    linked.unlink()
    assert [path.read_text() for path in kept] == ["mine"] * len(kept)
    (jobs.data_dir / "jobs" / "notes").rename(jobs.folder / "notes")
