"""The Python interpreter of hosts that are processes, and the warning of versions that a job does not name."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.spec.versions import is_release_of, version_numbers
from scriptmode._core.text.messages import warn_caller
from scriptmode.errors import PlatformError

if TYPE_CHECKING:
    from scriptmode._core.machine.programs import ProgramResult
    from scriptmode._core.spec.training_job import Algorithm
    from scriptmode_local._hosts import HostSettings

#: The oldest interpreter that the runtime works with.
_OLDEST_PYTHON = (3, 9)
#: Time limit for an interpreter to import one module on a loaded machine.
_START_SECONDS = 60.0
_TENSORFLOW = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
#: Prints the version of Python, and those of the distributions that are its arguments, if they are installed.
_PRINT_VERSIONS = """
import sys
print("scriptmode: python %d %d" % sys.version_info[:2])
from importlib import metadata
for name in sys.argv[1:]:
    try:
        print("scriptmode: tensorflow " + metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
"""
_COMPATIBILITY = (
    ". A script for TensorFlow 1 finds its API in tensorflow.compat.v1: import tensorflow.compat.v1 as tf, and call "
    "tf.disable_v2_behavior()"
)


def find_interpreter(program: str | None) -> str:
    """Return the path of the hosts' interpreter, by default this one; raise `PlatformError` if it cannot run them."""
    if program is None:
        return sys.executable
    path = shutil.which(Path(program).expanduser())
    if path is None:
        raise PlatformError(f"python is {program!r}, which is not a program that can be run", "correct python=...")
    # Not resolved, because the interpreter of a virtual environment is a link to the one that created it.
    python = str(Path(path).absolute())
    if python == sys.executable:
        return python
    result = _run_python(python, "import scriptmode_runtime")
    if not result.code:
        return python
    version, _ = _find_versions(python)
    if (0, 0) < version < _OLDEST_PYTHON:
        what = "{} cannot run training hosts: it is Python {}.{}".format(python, *version)
        raise PlatformError(what, advice="give Python {}.{} or later as python=...".format(*_OLDEST_PYTHON))
    from scriptmode._core.machine.installation import install_command

    reason = result.errors.strip().rpartition("\n")[2] or f"exit code {result.code}"
    raise PlatformError(f"{python} cannot run training hosts: {reason}", advice=install_command(python=python))


def compare_versions(algorithm: Algorithm, settings: HostSettings) -> None:
    """Warn if a job names another TensorFlow or Python than the hosts' interpreter has, which runs it all the same."""
    if algorithm.framework_version is None and algorithm.py_version is None:
        return
    python = find_interpreter(settings.python)
    version, tensorflow = _find_versions(python)
    advice = "platform=LocalPlatform(python=...) selects another interpreter"
    warn_of_others(algorithm, f"the hosts run with {python}", tensorflow, version, advice)


def warn_of_others(
    algorithm: Algorithm, hosts: str, tensorflow: Sequence[str], python: tuple[int, int], advice: str
) -> None:
    """Warn once of the hosts' versions of TensorFlow and Python, if the job names others.

    ``hosts`` is a sentence such as ``the hosts run with /usr/bin/python3``.
    """
    others = tuple(_others(algorithm, tensorflow, python))
    if not others:
        return
    named = " and ".join(name for name, _ in others)
    has = " and ".join(actual for _, actual in others)
    is_older = version_numbers(algorithm.framework_version or "2") < (2,)
    is_present = any(version_numbers(version) >= (2,) for version in tensorflow)
    note = _COMPATIBILITY if is_older and is_present else ""
    warn_caller(f"{named}, but {hosts}, which has {has}{note}. {advice}")


def _others(algorithm: Algorithm, tensorflow: Sequence[str], python: tuple[int, int]) -> Iterator[tuple[str, str]]:
    """Yield for each version that the hosts do not have its argument with the value, and what they have instead."""
    wanted, wanted_python = algorithm.framework_version, algorithm.py_version
    if wanted is not None and not any(is_release_of(version, wanted) for version in tensorflow):
        actual = f"TensorFlow {' and '.join(tensorflow)}" if tensorflow else "no TensorFlow"
        yield f"framework_version is {wanted!r}", actual
    major, minor = python
    if wanted_python is not None and wanted_python not in (f"py{major}", f"py{major}{minor}"):
        yield f"py_version is {wanted_python!r}", f"Python {major}.{minor}"


def _find_versions(python: str) -> tuple[tuple[int, int], list[str]]:
    """Return the versions of an interpreter, zeros if it cannot be run, and of every TensorFlow that it has."""
    if python == sys.executable:
        from importlib import metadata

        versions = []
        for name in _TENSORFLOW:
            with suppress(metadata.PackageNotFoundError):
                versions.append(metadata.version(name))
        return sys.version_info[:2], versions
    output = _run_python(python, _PRINT_VERSIONS, *_TENSORFLOW).output
    # A wrapper of the interpreter may print more.
    version = re.search(r"^scriptmode: python (\d+) (\d+)$", output, re.MULTILINE)
    tensorflow = re.findall(r"^scriptmode: tensorflow (\S+)$", output, re.MULTILINE)
    return (int(version[1]), int(version[2])) if version else (0, 0), tensorflow


def _run_python(python: str, program: str, *arguments: str) -> ProgramResult:
    """Run a program to its end; the result of an interpreter that cannot be run has the reason as its error output."""
    from scriptmode._core.machine.programs import ProgramResult, run_program

    try:
        return run_program((python, "-c", program, *arguments), _START_SECONDS)
    except OSError as error:  # TimeoutError is one
        return ProgramResult(1, "", str(error))
