"""The sources of foreign suites: fetched when they are run, kept in the cache, and never committed."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from tests.foreign_suites.clients_suite import Client

#: A directory with checkouts by the name of their repository, for machines that reach no git server.
CHECKOUTS = "SCRIPTMODE_FOREIGN_SOURCES"


class NotFetchedError(Exception):
    """GitHub does not provide the sources of a suite, which not every machine reaches. The text is the reason."""


def sdist(name: str, version: str) -> Path:
    """Return the directory of a package's source distribution, from the index that pip uses.

    Raises:
        RuntimeError: The index does not provide it, which every machine with this project reaches.
    """
    found = _cache() / f"{name}-{version}"
    if not found.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            pip = (sys.executable, "-m", "pip", "download", "--quiet", "--dest", folder)
            failure = _failure(*pip, "--no-deps", "--no-binary", ":all:", f"{name}=={version}")
            if failure:
                raise RuntimeError(f"{name} {version} cannot be fetched: {failure}")
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                # The filter exists in the last patch releases of every Python version since 3.8.
                tar.extractall(folder, filter="data")
            (Path(folder) / found.name).rename(found)
    return found


def node_modules(*packages: str) -> Path:
    """Return the directory of packages of npm, ``name@version``, from the registry that npm uses."""
    found = _cache() / f"npm-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:16]}"
    if not shutil.which("npm"):
        raise NotFetchedError("npm is not installed")
    if not found.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            failure = _failure("npm", "install", "--no-audit", "--no-fund", "--prefix", folder, *packages)
            if failure:
                raise NotFetchedError(failure)
            (Path(folder) / "node_modules").rename(found)
    return found


def adapt(texts: dict[str, str], adaptations: Iterable[tuple[str, str]], count: int = 0) -> dict[str, str]:
    """Replace regular expressions in the texts of files, by name; in each file at most ``count`` times, if it is not 0.

    Raises:
        ValueError: An adaptation changes no file.
    """
    for pattern, replacement in adaptations:
        adapted = {name: re.sub(pattern, replacement, text, count=count) for name, text in texts.items()}
        if adapted == texts:
            raise ValueError(f"{', '.join(texts)}: nothing to adapt, because no file has {pattern!r}")
        texts = adapted
    return texts


def version(suite: ModuleType | Client) -> str:
    """Return the version of a suite that is run: of its checkout if one is named, else the one that is fetched."""
    folder = os.environ.get(CHECKOUTS)
    repository = getattr(suite, "REPOSITORY", "")
    if not folder or not repository:
        return suite.VERSION
    checkout = Path(folder) / repository.rpartition("/")[2]
    # Without the option, git would describe a repository around the directory.
    command = ("git", "-C", str(checkout), f"--git-dir={checkout / '.git'}", "describe", "--tags", "--always")
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip() or "unknown revision"


def repository(name: str, revision: str, directories: Iterable[str] = ()) -> Path:
    """Return the directory of a checkout of a repository of GitHub, ``owner/name``, at a tag or a commit.

    With ``directories`` only these are fetched. A named directory with checkouts has this one as ``owner-name-REVISION``,
    or else as ``name``.
    """
    folder = os.environ.get(CHECKOUTS)
    if folder:
        found = Path(folder) / f"{name.replace('/', '-')}-{revision}"
        if not found.is_dir():
            found = Path(folder) / name.rpartition("/")[2]
        if not found.is_dir():
            raise NotFetchedError(f"{CHECKOUTS} is {folder}, which has no directory {found.name}")
        return found
    found = _cache() / f"{name.replace('/', '-')}-{revision}"
    if not found.exists():
        with tempfile.TemporaryDirectory(dir=_cache()) as temporary:
            git = ("git", "-C", f"{temporary}/checkout")
            some = [f"/{each}/" for each in dict.fromkeys(directories) if each != "."]
            for command in (
                ("git", "init", "--quiet", f"{temporary}/checkout"),
                (*git, "remote", "add", "origin", f"https://github.com/{name}"),
                *(((*git, "sparse-checkout", "set", "--no-cone", *some),) if some else ()),
                (*git, "fetch", "--quiet", "--depth", "1", *(("--filter=blob:none",) * bool(some)), "origin", revision),
                (*git, "checkout", "--quiet", "FETCH_HEAD"),
            ):
                failure = _failure(*command, GIT_TERMINAL_PROMPT="0")
                if failure:
                    raise NotFetchedError(failure)
            (Path(temporary) / "checkout").rename(found)
    return found


def _cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "scriptmode" / "foreign"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _failure(*command: str, **variables: str) -> str | None:
    """Run a command; return the last line of its errors if it fails, else None."""
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True, check=False)
    if not done.returncode:
        return None
    return (done.stderr.strip().splitlines() or [f"{command[0]} exited with {done.returncode}"])[-1]
