"""The Python interpreter that hosts run which are processes."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.core.machine.installation import install_command
from scriptmode.errors import PlatformError
from scriptmode.platforms.local.hosts.requested_versions import Installed, warn_of_others

if TYPE_CHECKING:
    from scriptmode.core.spec.training_job import Algorithm
    from scriptmode.platforms.local.hosts import HostSettings

#: The oldest interpreter that the runtime works with.
_OLDEST_PYTHON = (3, 9)


def find_interpreter(program: str | None) -> str:
    """Return the path of the hosts' interpreter, by default this one; raise `PlatformError` if it cannot run them."""
    if program is None:
        return sys.executable
    found = shutil.which(Path(program).expanduser())
    if found is None:
        raise PlatformError(
            f"python is {program!r}, which is not a program that can be run", advice="correct python=..."
        )
    # Not resolved, because the interpreter of a virtual environment is a link to the one that created it.
    python = str(Path(found).absolute())
    if python == sys.executable:
        return python
    from scriptmode.platforms.local.hosts.process_host import check_import, python_version

    try:
        check_import(python, "scriptmode_runtime")
    except ImportError as error:
        version = python_version(python)
        if (0, 0) < version < _OLDEST_PYTHON:
            raise PlatformError(
                "{} cannot run training hosts: it is Python {}.{}".format(python, *version),
                advice="give Python {}.{} or later as python=...".format(*_OLDEST_PYTHON),
            ) from error
        advice = f"install scriptmode for it: {install_command(python=python)}"
        raise PlatformError(f"{python} cannot run training hosts: {error}", advice=advice) from error
    return python


def compare_versions(algorithm: Algorithm, settings: HostSettings) -> None:
    """Warn if a job names another TensorFlow or Python than the hosts' interpreter has, which runs it all the same."""
    if algorithm.framework_version is None and algorithm.py_version is None:
        return
    python = find_interpreter(settings.python)
    found = Installed(f"the hosts run with {python}", _tensorflow_versions(python), _python_version(python))
    warn_of_others(algorithm, found, "platform=LocalPlatform(python=...) selects another interpreter")


def _python_version(python: str) -> tuple[int, int]:
    from scriptmode.platforms.local.hosts.process_host import python_version

    return sys.version_info[:2] if python == sys.executable else python_version(python)


def _tensorflow_versions(python: str) -> list[str]:
    from importlib import metadata

    names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
    if python != sys.executable:
        from scriptmode.platforms.local.hosts.process_host import versions

        return versions(python, names)
    found = []
    for name in names:
        with suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name))
    return found
