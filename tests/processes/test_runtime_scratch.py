"""What a job leaves in TMPDIR when one of its processes is killed: nothing, once its launcher or the next one ends."""

import os
import shutil
import signal
from pathlib import Path

import pytest
from fakes.host_folders import write_host, write_job
from processes.launchers import child, holding, until

from scriptmode_runtime._files import directory_tree, scratch
from scriptmode_runtime._processes import proc, process_tree

MPI = {"sagemaker_program": "train.py", "sagemaker_mpi_enabled": True, "sagemaker_mpi_num_of_processes_per_host": 2}


@pytest.fixture
def tmpdir_of_job():
    """A directory with a name that is short enough for sockets."""
    folder = Path(f"/tmp/t{os.urandom(4).hex()}")
    folder.mkdir()
    yield folder
    directory_tree.remove_tree(folder)


def left(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def scratch_of(folder):
    return until(lambda: [path for path in folder.iterdir() if (path / ".lock").exists()])[0]


def train(tmp_path, launch, folder, **variables):
    base = write_host(tmp_path / "algo-1", code={"train.py": child("sleeps.py")}, **MPI)
    launcher = launch(base, TMPDIR=str(folder), **variables)
    launcher.says("asleep")
    return launcher


@pytest.mark.mpi
def test_the_directory_of_a_killed_launcher_is_removed_by_the_next_one(tmp_path, launch, tmpdir_of_job):
    first = train(tmp_path / "1", launch, tmpdir_of_job)
    orphan = scratch_of(tmpdir_of_job)
    first.process.kill()
    first.wait()
    assert orphan.exists()
    second = train(tmp_path / "2", launch, tmpdir_of_job)
    assert not orphan.exists()
    second.send(signal.SIGTERM)
    second.wait()
    assert left(tmpdir_of_job) == []


@pytest.mark.mpi
def test_the_directory_of_a_launcher_that_runs_or_of_another_program_stays(tmp_path, launch, tmpdir_of_job):
    first = train(tmp_path / "1", launch, tmpdir_of_job)
    others = [tmpdir_of_job / "scriptmode-0123456789abcdef", tmpdir_of_job / "scriptmode-mine"]
    for other in others:
        other.mkdir()
    scratch.remove_orphans([str(tmpdir_of_job)])
    assert scratch_of(tmpdir_of_job).exists()
    assert all(other.exists() for other in others)
    first.process.kill()
    first.wait()
    scratch.remove_orphans([str(tmpdir_of_job)])
    assert sorted(tmpdir_of_job.iterdir()) == others


@pytest.mark.mpi
@pytest.mark.parametrize("python", ["/usr/bin/python3", None], ids=["Open MPI 4", "Open MPI 5"])
@pytest.mark.parametrize("victim", ["mpirun", "launcher", "rank"])
def test_no_session_directory_remains_whichever_process_is_killed(tmp_path, launch, tmpdir_of_job, victim, python):
    script = "import os, time; print('up:', os.environ['OMPI_COMM_WORLD_RANK'], flush=True); time.sleep(600)"
    job = write_job(tmp_path / "job", 2, {"train.py": script}, **MPI)
    options = {"python": python} if python else {}
    launchers = [launch(base, TMPDIR=str(tmpdir_of_job), **options) for base in job.values()]
    launchers[0].says("up: 3")
    assert any("pid" in path or "prte" in path or "ompi" in path for path in left(tmpdir_of_job))
    found = {pid: proc.command_line(pid) for pid in process_tree.descendants(launchers[0].pid)}
    below = {pid: words for pid, words in found.items() if words}  # others have just ended
    pids = {
        "launcher": [launchers[0].pid],
        "mpirun": [pid for pid, words in below.items() if Path(words[0]).name.startswith(("mpirun", "prterun"))],
        "rank": [pid for pid, words in below.items() if "train.py" in words],
    }
    os.kill(pids[victim][-1], signal.SIGKILL)
    assert all(launcher.wait() for launcher in launchers)
    until(lambda: not holding(str(tmp_path)))
    scratch.remove_orphans([str(tmpdir_of_job)])
    assert left(tmpdir_of_job) == []


def orphan(folder, number):
    path = folder / f"scriptmode-{number:016x}"
    path.mkdir()
    (path / ".lock").touch()
    return path


def test_an_orphan_that_another_launcher_removes_meanwhile_keeps_none_of_the_others(tmpdir_of_job, monkeypatch):
    for number in range(3):
        orphan(tmpdir_of_job, number)
    with os.scandir(tmpdir_of_job) as entries:
        second = [entry.path for entry in entries][1]
    locked = scratch._lock

    def lock_as_the_second_goes(path, *arguments):
        shutil.rmtree(second, ignore_errors=True)
        return locked(path, *arguments)

    monkeypatch.setattr(scratch, "_lock", lock_as_the_second_goes)
    scratch.remove_orphans([str(tmpdir_of_job)])
    assert left(tmpdir_of_job) == []


def test_a_removal_that_was_interrupted_is_finished_by_a_later_one(tmpdir_of_job, monkeypatch):
    (orphan(tmpdir_of_job, 1) / "login_key").touch()
    with monkeypatch.context() as patched:
        # The lock goes first, and the process with it.
        patched.setattr(directory_tree, "remove_tree", lambda path, **_: Path(path, ".lock").unlink())
        scratch.remove_orphans([str(tmpdir_of_job)])
    (rest,) = tmpdir_of_job.iterdir()
    os.utime(rest, (0, 0))
    scratch.remove_orphans([str(tmpdir_of_job)])
    assert left(tmpdir_of_job) == []
