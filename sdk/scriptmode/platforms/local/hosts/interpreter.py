"""The Python interpreter that hosts run which are processes."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path

from scriptmode.errors import PlatformError, SpecError
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


def check_versions(framework_version: str | None, py_version: str | None, python: str) -> None:
    """Raise `SpecError` if the hosts' interpreter has another TensorFlow or is another Python; both in one error."""
    other = {}
    if framework_version is not None and (found := _other_tensorflow(framework_version, python)):
        other["framework_version"] = (framework_version, found)
    if py_version is not None and (found := _other_python(py_version, python)):
        other["py_version"] = (py_version, found)
    if not other:
        return
    given = " and ".join(f"{name} is {wanted!r}" for name, (wanted, _) in other.items())
    has = " and ".join(found for _, found in other.values())
    raise SpecError(
        f"{given}, but hosts that are processes run with {python}, which {has}",
        argument=next(iter(other)),
        advice=f"leave {'it' if len(other) == 1 else 'both'} out, or give python=...",
    )


def _other_python(wanted: str, python: str) -> str:
    """Return which Python the interpreter is, unless ``py311`` or ``py3`` names it."""
    from scriptmode.platforms.local.hosts.process_host import python_version

    major, minor = sys.version_info[:2] if python == sys.executable else python_version(python)
    return "" if wanted in (f"py{major}", f"py{major}{minor}") else f"is Python {major}.{minor}"


def _other_tensorflow(wanted: str, python: str) -> str:
    """Return which TensorFlow the interpreter has, unless it is the wanted version."""
    from importlib import metadata

    names = ("tensorflow", "tensorflow-cpu", "tensorflow-intel", "tf-nightly")
    found: list[str] = []
    if python != sys.executable:
        from scriptmode.platforms.local.hosts.process_host import versions

        found = versions(python, names)
    for name in names if python == sys.executable else ():
        with suppress(metadata.PackageNotFoundError):
            found.append(metadata.version(name))
    if any(version == wanted or version.startswith(f"{wanted}.") for version in found):
        return ""
    return f"has {'TensorFlow ' + ' and '.join(found) if found else 'no TensorFlow'}"
