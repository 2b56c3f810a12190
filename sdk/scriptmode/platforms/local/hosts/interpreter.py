"""The Python interpreter that hosts run which are processes."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path

from scriptmode.errors import PlatformError, invalid
from scriptmode.installation import install_command

#: The oldest interpreter that the runtime works with.
_OLDEST_PYTHON = (3, 9)


def find_interpreter(program: str | None) -> str:
    """Return the path of the hosts' interpreter, by default this one; raise `PlatformError` if it cannot run them."""
    if program is None:
        return sys.executable
    found = shutil.which(Path(program).expanduser())
    if found is None:
        raise PlatformError(
            f"python is {program!r}, which is not a program that can be run", advice="correct LocalPlatform(python=...)"
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
                advice="give Python {}.{} or later as LocalPlatform(python=...)".format(*_OLDEST_PYTHON),
            ) from error
        advice = f"install scriptmode for it: {install_command(python=python)}"
        raise PlatformError(f"{python} cannot run training hosts: {error}", advice=advice) from error
    return python


def check_python(wanted: str, python: str) -> None:
    """Raise `SpecError` if the hosts' interpreter is not the version that ``py311`` or ``py3`` names."""
    from scriptmode.platforms.local.hosts.process_host import python_version

    major, minor = sys.version_info[:2] if python == sys.executable else python_version(python)
    if wanted not in (f"py{major}", f"py{major}{minor}"):
        raise invalid(
            "py_version",
            f"is {wanted!r}, but hosts that are processes run with {python}, which is Python {major}.{minor}",
            "leave it out, or give LocalPlatform(python=...)",
        )


def check_tensorflow(wanted: str, python: str) -> None:
    """Raise `SpecError` if the hosts' interpreter has another version of TensorFlow."""
    from importlib import metadata

    names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
    found: list[str] = []
    if python != sys.executable:
        from scriptmode.platforms.local.hosts.process_host import versions

        found = versions(python, names)
    for name in names if python == sys.executable else ():
        with suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name))
    if not any(version == wanted or version.startswith(f"{wanted}.") for version in found):
        raise invalid(
            "framework_version",
            f"is {wanted!r}, but hosts that are processes run with {python}, which has "
            f"{'TensorFlow ' + ' and '.join(found) if found else 'no TensorFlow'}",
            "leave it out, or give LocalPlatform(python=...)",
        )
