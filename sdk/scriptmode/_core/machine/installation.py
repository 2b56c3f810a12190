"""The commands that install scriptmode again or add an extra, and missing packages."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution

from scriptmode.errors import MissingPackageError


def install_command(extra: str = "", *, python: str = "", options: str = "") -> str:
    """Return the pip command that installs scriptmode, with an extra of pyproject.toml.

    An extra is added to a scriptmode that is installed, wherever that came from. ``python`` is the interpreter to
    install for; "" is the one of ``pip`` on PATH.
    """
    pip = f"{shlex.quote(python)} -m pip" if python else "pip"
    name = shlex.quote(f"scriptmode[{extra}]") if extra else "scriptmode"
    return " ".join(filter(None, (pip, "install", options, name)))


def install_again(*, python: str = "") -> str:
    """Return the pip command that installs scriptmode again, from where it came (PEP 610)."""
    came = {}
    with suppress(PackageNotFoundError):
        came = json.loads(distribution("scriptmode").read_text("direct_url.json") or "{}")
    vcs = f"{came['vcs_info']['vcs']}+" if "vcs_info" in came else ""
    source = vcs + came.get("url", "scriptmode")
    return f"{install_command(python=python, options='--force-reinstall --no-deps').rpartition(' ')[0]} {source}"


def missing_package(user: str, package: str, *, command: str = "", otherwise: str = "") -> MissingPackageError:
    """Return the error of a call that needs a package; the advice is the ``command`` that installs it, or another step.

    By default the command installs the package alone, for this interpreter.
    """
    advice = command or f"{shlex.quote(sys.executable)} -m pip install {package.lower()}"
    what = f"{user} needs {package}, which is not installed"
    return MissingPackageError(what, f"{advice}, or {otherwise}" if otherwise else advice)
