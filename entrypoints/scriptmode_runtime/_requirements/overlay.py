"""A virtual environment that can also import everything that its interpreter can, whose packages it does not change.

``python -m scriptmode_runtime._requirements.overlay FOLDER CODE ARGUMENTS_OF_PIP...`` creates one and installs into it,
with uv where it is on ``PATH``, whose cache makes that fast. uv does not read pip's settings: where there are any, or
without uv, pip installs.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from scriptmode_runtime._files import directory_tree
from scriptmode_runtime._processes import system
from scriptmode_runtime._requirements import OWN_PATH, PIP

#: The INSTALLER of the records of packages that the interpreter has.
_OWN_RECORD = "scriptmode"
#: `system.die_with_parent`, for an interpreter that need not have this package.
_DIE_WITH_PARENT = """\
import contextlib
with contextlib.suppress(Exception):
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
"""


def install(folder: str, code: str, arguments: Sequence[str]) -> int:
    """Create the overlay ``folder`` and install in ``code``; return the installer's exit code, or minus a signal."""
    if (uv := shutil.which("uv")) and not _has_pip_settings():
        return _install_with_uv(uv, folder, code, arguments)
    options = ("--disable-pip-version-check", "--no-input")
    with_pip = not _has_pip()
    code_of_pip = OWN_PATH + _DIE_WITH_PARENT + PIP
    python = _create(folder, with_pip=with_pip)
    pip = [python, "-c", code_of_pip] if with_pip else [sys.executable, "-c", code_of_pip, "--python", python]
    return subprocess.run([*pip, "install", *options, *arguments], check=False, cwd=code).returncode


def _install_with_uv(uv: str, folder: str, code: str, arguments: Sequence[str]) -> int:
    # What an earlier run of the job left would be beside the records.
    python = _create(folder, with_pip=False, clear=True)
    records = _record_installed(folder)
    # Copies: with links, a job that changes a file would change it in uv's cache, for all jobs.
    words = (uv, "pip", "install", "--python", python, "--link-mode", "copy", "--no-progress", *arguments)
    start = f"{OWN_PATH}{_DIE_WITH_PARENT}import os; os.execv(sys.argv[1], sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", start, *words], check=False, cwd=code)
    for record in records:
        # uv has removed a record where it installed another version.
        with contextlib.suppress(FileNotFoundError):
            if (record / "INSTALLER").read_text(encoding="utf-8") == _OWN_RECORD:
                directory_tree.remove_tree(record)
    return done.returncode


def _record_installed(folder: str) -> list[Path]:
    """Record the interpreter's packages in an overlay, without their files; return the directories.

    uv looks for installed packages in the environment alone, and would install them again in any version.
    """
    records = {}
    for distribution in metadata.distributions(path=_site_folders()):
        name = re.sub(r"[-_.]+", "_", distribution.metadata["Name"] or "").lower()
        record = Path(_packages(folder), f"{name}-{distribution.version}.dist-info")
        text = distribution.read_text("METADATA") or distribution.read_text("PKG-INFO")
        # Of two versions of a package, Python imports the first.
        if not name or not text or name in records:
            continue
        files = {"METADATA": text, "INSTALLER": _OWN_RECORD}
        files["RECORD"] = "".join(f"{record.name}/{file},,\n" for file in (*files, "RECORD"))
        record.mkdir()
        for file, content in files.items():
            (record / file).write_text(content, encoding="utf-8")
        records[name] = record
    return list(records.values())


def _has_pip_settings() -> bool:
    """Return whether pip has settings, in variables or in one of its files."""
    variables = {name for name in os.environ if name.startswith("PIP_")}
    if variables:
        # With this file pip reads none.
        return os.environ.get("PIP_CONFIG_FILE") != os.devnull or len(variables) > 1
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    folders = ("/etc", "/etc/xdg/pip", os.path.join(home, ".pip"), os.path.join(config, "pip"), sys.prefix)
    return any(os.path.exists(os.path.join(path, "pip.conf")) for path in folders)


def _has_pip() -> bool:
    """Return whether this interpreter has a pip that can install for another one: 22.3 or later."""
    try:
        major, minor = re.findall(r"\d+", f"{metadata.version('pip')}.0")[:2]
        return (int(major), int(minor)) >= (22, 3)
    except (metadata.PackageNotFoundError, ValueError):
        return False


def _create(folder: str, *, with_pip: bool, clear: bool = False) -> str:
    """Create a virtual environment that also imports what this interpreter can; return its interpreter."""
    venv.EnvBuilder(with_pip=with_pip, clear=clear, symlinks=True).create(folder)
    # addsitedir reads .pth files too: editable installs stay visible.
    lines = [f"import site; site.addsitedir({path!r})" for path in _site_folders()]
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


if __name__ == "__main__":
    status = install(sys.argv[1], sys.argv[2], sys.argv[3:])
    if status < 0:
        system.end_by_signal(-status)
    sys.exit(status)
