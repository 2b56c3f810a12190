"""The commands that install scriptmode, again or with an extra, and missing packages."""

from __future__ import annotations

import shlex
import sys

from scriptmode.errors import MissingPackageError

#: Options that install it again.
AGAIN = "--force-reinstall --no-deps"


def install_command(extra: str = "", *, python: str = "", options: str = "") -> str:
    """Return the pip command that installs scriptmode, with an extra of pyproject.toml.

    An extra is added to a scriptmode that is installed, wherever that came from. ``python`` is the interpreter to
    install for; "" is the one of ``pip`` on PATH.
    """
    pip = f"{shlex.quote(python)} -m pip" if python else "pip"
    name = shlex.quote(f"scriptmode[{extra}]") if extra else "scriptmode"
    return " ".join(filter(None, (pip, "install", options, name)))


def missing_package(user: str, package: str, *, command: str = "", otherwise: str = "") -> MissingPackageError:
    """Return the error of a call that needs a package; the advice is the ``command`` that installs it, or another step.

    By default the command installs the package alone, for this interpreter.
    """
    advice = command or f"{shlex.quote(sys.executable)} -m pip install {package.lower()}"
    what = f"{user} needs {package}, which is not installed"
    return MissingPackageError(what, f"{advice}, or {otherwise}" if otherwise else advice)
