"""A virtual environment that can also import everything that its interpreter can, whose packages it does not change."""

from __future__ import annotations

import contextlib
import os
import re
import site
import subprocess
import sys
import sysconfig
import venv
from importlib import metadata
from typing import TYPE_CHECKING

from scriptmode_runtime.requirements import OWN_PATH, PIP

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The longest first line of a script that every kernel reads as a whole. (execve(2))
_LONGEST_FIRST_LINE = 127
#: How a script names its interpreter: in its first line or, where that is too long, in the second one, as pip does it.
_INTERPRETER = (
    rb"#!(?:/bin/sh\n'''exec' )?\"?%b/bin/(?P<name>[\w.-]+)\"?(?P<options>[^\"\n]*?)(?: \"\$0\" \"\$@\"\n' ''')?\n"
)

#: `system.die_with_parent`, for an interpreter that need not have this package.
_DIE_WITH_PARENT = """\
import contextlib
with contextlib.suppress(Exception):
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
"""


def install(folder: str, code: str, arguments: Sequence[str]) -> int:
    """Create the overlay ``folder`` and run ``pip install`` in ``code``; return pip's exit code."""
    options = ("--disable-pip-version-check", "--no-input")
    with_pip = not _has_pip()
    code_of_pip = OWN_PATH + _DIE_WITH_PARENT + PIP
    python = _create(folder, _site_folders(), with_pip=with_pip)
    pip = [python, "-c", code_of_pip] if with_pip else [sys.executable, "-c", code_of_pip, "--python", python]
    return subprocess.run([*pip, "install", *options, *arguments], check=False, cwd=code).returncode


def _has_pip() -> bool:
    """Return whether this interpreter has a pip that can install for another one: 22.3 or later."""
    try:
        major, minor = re.findall(r"\d+", f"{metadata.version('pip')}.0")[:2]
        return (int(major), int(minor)) >= (22, 3)
    except (metadata.PackageNotFoundError, ValueError):
        return False


def create_above(folder: str, installed: str) -> None:
    """Create the overlay ``folder`` with everything of the overlay ``installed``, which it does not change."""
    _create(folder, [_packages(installed)], with_pip=False)
    scripts, own = (os.path.join(each, "bin") for each in (installed, folder))
    for name in os.listdir(scripts):
        if not os.path.lexists(os.path.join(own, name)):
            _copy_script(os.path.join(scripts, name), os.path.join(own, name), installed, folder)
    # Data of packages: share, etc, shared libraries.
    for below in ("", "lib", "include"):
        with os.scandir(os.path.join(installed, below)) as entries:
            for entry in (each for each in entries if below or each.is_dir()):
                with contextlib.suppress(FileExistsError):
                    os.symlink(entry.path, os.path.join(folder, below, entry.name))


def _create(folder: str, packages: Sequence[str], *, with_pip: bool) -> str:
    """Create a virtual environment that also imports from the directories ``packages``; return its interpreter."""
    venv.EnvBuilder(with_pip=with_pip, symlinks=True).create(folder)
    # addsitedir reads .pth files too: editable installs stay visible.
    lines = [f"import site; site.addsitedir({path!r})" for path in packages]
    with open(os.path.join(_packages(folder), "_scriptmode_overlay.pth"), "w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return os.path.join(folder, "bin", "python")


def _packages(folder: str) -> str:
    return sysconfig.get_path("purelib", "posix_prefix", {"base": folder, "platbase": folder})


def _site_folders() -> list[str]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [path for path in dict.fromkeys(folders) if os.path.isdir(path)]


def _copy_script(script: str, copy: str, installed: str, folder: str) -> None:
    """Copy a script so that the interpreter of ``folder`` runs it; link what that of ``installed`` does not run."""
    if not os.path.isfile(script):
        os.symlink(script, copy)
        return
    with open(script, "rb") as file:
        found = re.match(_INTERPRETER % re.escape(os.fsencode(installed)), file.read(4096))
        if not found:
            os.symlink(script, copy)
            return
        file.seek(found.end())
        rest = file.read()
    python, options = os.path.join(os.fsencode(folder), b"bin", found["name"]), found["options"]
    line = b"#!%b%b" % (python, options)
    if len(line) > _LONGEST_FIRST_LINE or b" " in python:
        line = b"#!/bin/sh\n'''exec' \"%b\"%b \"$0\" \"$@\"\n' '''" % (python, options)
    with open(copy, "wb") as file:
        file.write(line + b"\n" + rest)
    os.chmod(copy, os.stat(script).st_mode | 0o200)
