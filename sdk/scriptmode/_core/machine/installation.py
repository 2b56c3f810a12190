"""How this scriptmode was installed, the command that installs it again or adds an extra, and missing packages."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import scriptmode
from scriptmode.errors import MissingPackageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAME = "scriptmode"


def install_command(extra: str = "", *, python: str = "", options: str = "") -> str:
    """Return the pip command that installs scriptmode, with an extra of pyproject.toml, from where this one came from.

    ``python`` is the interpreter to install for; "" is the one of ``pip`` on PATH.
    """
    pip = f"{shlex.quote(python)} -m pip" if python else "pip"
    return " ".join(filter(None, (pip, "install", options, *_requirement(f"[{extra}]" if extra else ""))))


def install_again(*, python: str = "") -> str:
    """Return the pip command that installs scriptmode again."""
    return install_command(python=python, options="--force-reinstall --no-deps")


def missing_package(user: str, package: str, *, command: str = "", otherwise: str = "") -> MissingPackageError:
    """Return the error of a call that needs a package; the advice is the ``command`` that installs it, or another step.

    By default the command installs the package alone.
    """
    advice = command or f"pip install {package.lower()}"
    what = f"{user} needs {package}, which is not installed"
    return MissingPackageError(what, f"{advice}, or {otherwise}" if otherwise else advice)


def _requirement(extra: str) -> Iterator[str]:
    """Yield the words that name scriptmode: a directory, a wheel or a repository (PEP 610), or its name in an index."""
    recorded = _recorded()
    url = str(recorded.get("url", ""))
    directory = recorded.get("dir_info")
    if isinstance(directory, dict) and url.startswith("file:"):
        yield from ["-e"] if directory.get("editable") else []
        yield shlex.quote(unquote(urlsplit(url).path) + extra)
        return
    version_control = recorded.get("vcs_info")
    if isinstance(version_control, dict):
        url = f"{version_control.get('vcs', 'git')}+{url}@{version_control.get('commit_id', '')}"
    yield shlex.quote(f"{_NAME}{extra} @ {url}" if url else f"{_NAME}{extra}")


def _recorded() -> dict[str, object]:
    """Return direct_url.json of the installation (PEP 610), {} if it came from an index."""
    from importlib import metadata

    try:
        recorded = json.loads(metadata.distribution(_NAME).read_text("direct_url.json") or "{}")
    except metadata.PackageNotFoundError:
        # Imported by a path, as from a clone that is not installed.
        clone = Path(scriptmode.__file__).absolute().parents[2]
        recorded = {"url": clone.as_uri(), "dir_info": {}} if (clone / "pyproject.toml").is_file() else {}
    except ValueError:
        recorded = {}
    return recorded if isinstance(recorded, dict) else {}
