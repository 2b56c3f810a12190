"""Install packages without changing an interpreter's own ones: ``overlay.py <folder> <code> <arguments of pip>``.

The overlay is a virtual environment that can also import everything that its interpreter can.
"""

from __future__ import annotations

import os
import site
import subprocess
import sys
import sysconfig
import venv

from scriptmode_runtime.user_code import PIP


def create_overlay(folder: str, *, with_pip: bool) -> str:
    """Create the overlay of this interpreter in ``folder``; return the overlay's interpreter."""
    venv.EnvBuilder(with_pip=with_pip, symlinks=True).create(folder)
    packages = sysconfig.get_path("purelib", "posix_prefix", {"base": folder, "platbase": folder})
    # addsitedir reads .pth files too: editable installs stay visible.
    lines = [f"import site; site.addsitedir({path!r})" for path in _site_folders()]
    with open(os.path.join(packages, "_scriptmode_overlay.pth"), "w", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))
    return os.path.join(folder, "bin", "python")


def _site_folders() -> list[str]:
    folders = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return [path for path in dict.fromkeys(folders) if os.path.isdir(path)]


def main(folder: str, code: str, *arguments: str) -> int:
    """Create the overlay and install into it, in the folder ``code``; return pip's exit code."""
    options = ("--disable-pip-version-check", "--no-input")
    ours = subprocess.run(
        [sys.executable, "-m", "pip", "--python", sys.executable, "--version"], check=False, capture_output=True
    )
    # pip can install for another interpreter since 22.3.
    with_pip = ours.returncode != 0
    python = create_overlay(folder, with_pip=with_pip)
    pip = [python, "-c", PIP] if with_pip else [sys.executable, "-c", PIP, "--python", python]
    return subprocess.run([*pip, "install", *options, *arguments], check=False, cwd=code).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
