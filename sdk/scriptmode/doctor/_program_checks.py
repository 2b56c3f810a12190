"""Checks of Python, the runtime, the programs that it starts, and TensorFlow and Horovod."""

from __future__ import annotations

import json
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import scriptmode
from scriptmode._core.machine.programs import run_program
from scriptmode.errors import PlatformError

#: Seconds for a program, of which a busy machine needs several.
_SECONDS = 10.0
#: Seconds for an import: TensorFlow's takes 3 s on an idle machine, and a minute on a busy one or from a cold disk.
_IMPORT_SECONDS = 120.0
#: Imports a package and prints its version; what the package writes goes to the standard error. It ends itself if the
#: import hangs and its parent was killed. Threads of the package could keep the interpreter from exiting.
_IMPORT = """\
import importlib, json, os, signal, sys
signal.alarm(180)
output = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
package = importlib.import_module(sys.argv[1])
facts = {"version": str(package.__version__), "file": str(package.__file__)}
if sys.argv[1] == "horovod":
    facts["mpi"] = bool(importlib.import_module("horovod.tensorflow").mpi_built())
else:
    # tf.keras is one of two packages; the module of one of its classes says which.
    facts["keras"] = str(importlib.import_module(package.keras.Model.__module__.partition(".")[0]).__version__)
print(json.dumps(facts), file=output, flush=True)
os._exit(0)
"""


def _run(*argv: str, seconds: float = _SECONDS) -> str:
    """Return what a program wrote to its output; raise `PlatformError` for one that fails."""
    try:
        done = run_program(argv, seconds, env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})
        failure = done.failure
    except OSError as error:  # TimeoutError is an OSError
        failure = error.strerror or str(error)
    if failure:
        shown = " ".join(word for word in argv[:4] if "\n" not in word)
        raise PlatformError(f"{shown} does not work: {failure}")
    return done.output.strip()


def _probe() -> dict[str, Any]:
    """Query the runtime for the programs that it would start."""
    facts: dict[str, Any] = json.loads(_run(sys.executable, "-m", "scriptmode_runtime._host.probe"))
    return facts


def python() -> str:
    """Check the interpreter and its operating system."""
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    which = f"{platform.python_version()} at {sys.executable}, {system}"
    if not sys.platform.startswith("linux"):
        raise PlatformError(f"{which}: jobs on this machine need Linux")
    return which


def runtime() -> str:
    """Check whether the interpreter has the runtime, and whether it can read pipes."""
    facts = _probe()
    what = f"{scriptmode.__version__} at {Path(scriptmode.__file__).parent}, its runtime at {facts['folder']}"
    if not facts["reader"] and not facts["compiler"]:
        what += "; PipeModeDataset needs a C++ compiler: apt install g++, or name one in CXX"
    return what


def mpi() -> str:
    """Start a process with ``mpirun``: only that shows wrong libraries, plug-ins or temporary directories."""
    if not (program := _probe()["mpirun"]):
        raise PlatformError(f"no mpirun beside {sys.executable} or on PATH; distribution=MPI(...) needs it")
    path = program["path"]
    release = _run(path, "--version")
    _run(path, "--allow-run-as-root", "--oversubscribe", "-n", "1", sys.executable, "-c", "")
    return f"{release.partition(chr(10))[0]} at {path}"


def tensorflow() -> str:
    """Import TensorFlow with its Keras, in another process."""
    facts = _import("tensorflow")
    which = f"{facts['version']} at {Path(facts['file']).parent}, with Keras {facts['keras']}"
    if facts["keras"].startswith("2."):
        return which
    try:
        return f"{which}; tf-keras {version('tf-keras')} on several workers and with parameter servers"
    except PackageNotFoundError:
        what = f"{which}, whose fit() does not train with parameter servers or on several workers"
        advice = f"pip install tf-keras=={'.'.join(facts['version'].split('.')[:2])}.*"
        raise PlatformError(what, advice) from None


def horovod() -> str:
    """Import Horovod with its part for TensorFlow, in another process."""
    facts = _import("horovod")
    which = f"{facts['version']} at {Path(facts['file']).parent}, built "
    if not facts["mpi"]:
        raise PlatformError(f"{which}without MPI")
    return f"{which}with MPI"


def _import(package: str) -> dict[str, Any]:
    if not find_spec(package):
        raise PlatformError(f"{package} is not installed")
    facts: dict[str, Any] = json.loads(_run(sys.executable, "-c", _IMPORT, package, seconds=_IMPORT_SECONDS))
    return facts
