"""The projects we are compared with, each installed into an environment of its own, kept between runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from uv import find_uv_bin

if TYPE_CHECKING:
    from collections.abc import Iterator

SAGEMAKER_V2 = "sagemaker<3"
SAGEMAKER_V3 = "sagemaker>=3"
#: The part of v3 with its sessions, tables of images and classes of requests.
SAGEMAKER_V3_CORE = "sagemaker-core>=2,<3"
#: Wheels only: what is compared is what a user installs, and nothing is compiled; but these publish no wheel.
SOURCE_ONLY = ("inotify_simple", "sagemaker-training", "sagemaker-tensorflow-training")


def environment(*requirements: str, alone: tuple[str, ...] = ()) -> Path:
    """Give the ``bin`` folder of a virtual environment with these requirements; made once.

    ``alone`` are installed without what they ask for, which may be older than what they run with.
    Another process that asks for it meanwhile waits. An interrupted installation is started again.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scriptmode" / "references"
    content = f"{sys.version}{requirements}{alone or ''}"
    folder = cache / hashlib.sha256(content.encode()).hexdigest()[:16]
    whole = folder / "whole"
    if not whole.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _lock(folder.with_suffix(".lock")) as lock:
            if not whole.exists():
                _say(f"an environment of its own for {' '.join((*requirements, *alone))}")
                # Its processes hold the lock too: when this one is killed, the next waits until they have ended.
                _uv(lock, "venv", "--seed", "--clear", "--python", sys.executable, str(folder))
                _install(folder, requirements, lock)
                if alone:
                    _install(folder, ("--no-deps", *alone), lock)
                whole.touch()
    return folder / "bin"


def _install(folder: Path, requirements: tuple[str, ...], lock: int) -> None:
    wheels = ("--only-binary", ":all:", *(word for name in SOURCE_ONLY for word in ("--no-binary", name)))
    _uv(lock, "pip", "install", "--python", str(folder / "bin" / "python"), *wheels, *requirements)


def _uv(lock: int, *arguments: str) -> None:
    """Run uv, which installs in seconds what takes pip minutes."""
    subprocess.run([find_uv_bin(), *arguments, "--quiet"], check=True, stdout=sys.stderr, pass_fds=(lock,))


@contextmanager
def _lock(path: Path) -> Iterator[int]:
    """Hold the file's lock, which falls with the process, however that ends; give its descriptor."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another process is making the environment; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)
