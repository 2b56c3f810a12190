"""Programs, disks, ports and packages that are missing or broken, for real, under the doctor's eyes."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from fakes.doctor_stubs import MISSING, write_stubs
from processes.small_disk import _namespace

from scriptmode.doctor import _machine_checks as machine_checks, _program_checks as program_checks
from scriptmode.errors import PlatformError

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
from importlib import import_module
module, _, subject = sys.argv[1].rpartition(".")
from scriptmode import PlatformError
try:
    print("ok", getattr(import_module(module), subject)(), "", sep="|")
except PlatformError as error:
    print("failed", error.message, error.advice or "", sep="|")
"""


def failure(look):
    """Return the error with which a check fails."""
    with pytest.raises(PlatformError) as raised:
        look()
    return raised.value


def inside(script, subject, *words):
    """Look at a subject where a shell script has changed the machine, which only that shell and what it starts see."""
    done = subprocess.run(
        [*_namespace(), "sh", "-euc", f'{script}\nshift 3; exec "$@"', "sh", *words, *[""] * (3 - len(words)),
         sys.executable, "-c", LOOK, f"scriptmode.doctor._{subject}"],
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
MPIRUNS = {
    "none": (None, "no mpirun beside .*/bin/python or on PATH"),
    "no slots": (f"{VERSION}\necho no slots >&2; exit 3", "/mpirun --allow.* does not work: it ended with exit code 3: no slots$"),
    "one that hangs": (f"{VERSION}\nexec /bin/sleep 100", "does not work: it did not end within 1.5 s"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MPIRUNS.values(), ids=MPIRUNS)
def test_an_mpirun_that_is_missing_hangs_or_starts_nothing_is_reported(bare, monkeypatch, text, message):
    if text is not None:
        program(bare, "mpirun", text)
    run = program_checks.run_program
    monkeypatch.setattr(
        program_checks, "run_program", lambda argv, _, **rest: run(argv, 1.5 if "mpirun" in argv[0] else 60, **rest)
    )
    assert re.search(message, failure(program_checks.mpi).message)


def test_without_a_compiler_or_a_binary_the_pipe_dataset_is_reported_not_to_work(bare, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "; PipeModeDataset needs a C++ compiler: apt install g++" in program_checks.runtime()


def test_an_interpreter_without_the_runtime_is_reported(bare, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(bare))
    assert "scriptmode_runtime" in failure(program_checks.runtime).message


def test_an_invalid_address_of_docker_is_quoted_with_its_variable(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "http://[")
    error = failure(machine_checks.docker)
    assert "the Docker daemon at http://[ cannot be used: Invalid IPv6 URL" in error.message
    assert error.advice.endswith("or correct DOCKER_HOST")


KEPT = "jobs cannot be kept in the data directory"
#: What changes the machine, with the data directory as its word, the check that then fails, its message and next step.
MACHINES = {
    "a read-only disk": ('mount -t tmpfs -o ro none "$1"', "disk", f"{KEPT} [^:]*: Read-only file system$", "make it writable, or name another directory"),
    "a full disk": ('mount -t tmpfs -o size=4k,nr_inodes=3 none "$1"', "disk", f"{KEPT} [^:]*: No space left on device$", ""),
    "a small disk": ('mount -t tmpfs -o size=100k none "$1"', "disk", "no job can begin, its own files take 131.1 kB$", ""),
    "no FUSE": ("mount --bind /dev/null /dev/fuse", "fuse", "mounting.*input_mode='FastFile'", "start the container with: docker run --device /dev/fuse --cap-add SYS_ADMIN$"),
    "a shared memory as small as Docker's": ("mount -t tmpfs -o size=64m none /dev/shm", "memory", "/dev/shm has 67.1 MB free", ".*docker run --shm-size 1g"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "check", "message", "step"), MACHINES.values(), ids=MACHINES)
def test_a_machine_that_lacks_something_is_reported_with_the_next_step(tmp_path, change, check, message, step):
    outcome, found, advice = inside(change, f"machine_checks.{check}", str(tmp_path))
    assert (outcome, bool(re.search(message, found)), bool(re.match(step, advice))) == ("failed", True, True), found


def test_a_data_directory_is_examined_before_it_is_made_and_not_made(tmp_path, monkeypatch):
    monkeypatch.setenv("SCRIPTMODE_DATA_DIR", str(tmp_path / "not" / "yet"))
    before = tmp_path.stat().st_mtime_ns
    machine_checks.disk()
    # Not for a moment either.
    assert tmp_path.stat().st_mtime_ns == before


CRASH = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"


@pytest.fixture
def stubs(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)

    def write(**other):
        write_stubs(tmp_path, **other)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        monkeypatch.syspath_prepend(str(tmp_path))

    return write


def test_installed_packages_are_reported_with_their_version_and_folder(stubs, tmp_path):
    stubs()
    assert program_checks.tensorflow() == f"2.15.1 at {tmp_path}/tensorflow, with Keras 2.15.0"
    assert program_checks.horovod() == f"0.28.1 at {tmp_path}/horovod, built with MPI"
    assert failure(lambda: program_checks._import("not_there")).message == "not_there is not installed"


LOST_LIBRARY = "libcudart.so.12: cannot open shared object file"
#: Stubs, the check that they break, and what it finds.
BROKEN = {
    "no TensorFlow": ({"tensorflow": MISSING.format("tensorflow")}, "tensorflow", "No module named 'tensorflow'"),
    "a lost library": ({"tensorflow": f"raise ImportError({LOST_LIBRARY!r})\n"}, "tensorflow", f"ImportError: {LOST_LIBRARY}"),
    "a crash": ({"tensorflow": CRASH}, "tensorflow", "it ended with signal SIGSEGV"),
    "Horovod without MPI": ({"horovod_tensorflow": "def mpi_built(): return False\n"}, "horovod", "built without MPI"),
    "an import that hangs": ({"horovod": "import time\ntime.sleep(100)\n"}, "horovod", "it did not end within 2 s"),
}  # fmt: skip


@pytest.mark.parametrize(("other", "name", "message"), BROKEN.values(), ids=BROKEN)
def test_a_missing_or_broken_package_is_reported(stubs, monkeypatch, other, name, message):
    monkeypatch.setattr(program_checks, "_IMPORT_SECONDS", 2.0 if "sleep" in str(other) else 60)
    stubs(**other)
    assert message in failure(getattr(program_checks, name)).message


def test_keras_3_is_reported_with_the_package_that_trains_on_several_workers(stubs):
    stubs(keras="__version__ = '3.10.0'\nclass Model: pass\nModel.__module__ = 'keras.src.models'\n")
    error = failure(program_checks.tensorflow)
    assert "with Keras 3.10.0, whose fit() does not train with parameter servers" in error.message
    assert error.advice == "pip install tf-keras==2.15.*"
