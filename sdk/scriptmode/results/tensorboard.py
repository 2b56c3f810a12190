"""TensorBoard on a job's event files: a process of its own, which ends with the caller's at the latest."""

from __future__ import annotations

import html
import importlib.util
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
import weakref
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Callable

from scriptmode.core.platforms.base import Platform
from scriptmode.errors import MissingPackageError, PlatformError, invalid
from scriptmode.results.event_files import EventFiles
from scriptmode_runtime.processes import process_tree

#: The program ends when its standard input is closed, which also happens when the process that started it is killed. It
#: reads only files of this machine, which needs no TensorFlow; TensorBoard does not import it where a module ``notf``
#: exists, which leaves the memory to a training on this machine. The last argument is the directory to remove when no
#: other process can.
_PROGRAM = """
import os, shutil, sys, threading, types

def end(directory):
    os.read(0, 1)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(0)

sys.modules["tensorboard.compat.notf"] = types.ModuleType("notf")
threading.Thread(target=end, args=(sys.argv.pop(),), daemon=True).start()
from tensorboard.main import run_main
run_main()
"""
#: Seconds for TensorBoard to answer, on a machine that is busy training.
START_SECONDS = 90.0
_END_SECONDS = 5.0
_FIRST_RUN_SECONDS = 5.0
#: Seconds between two looks at what the hosts wrote, and TensorBoard's own between two looks at its directory.
_GATHER_SECONDS = 1.0
_POLL_SECONDS = 0.05
_ADDRESS = re.compile(r"TensorBoard \S+ at (http://\S+)")
_HIGHEST_PORT = 65535


class TensorBoard:
    """A running TensorBoard; in a notebook a cell that ends with it shows it.

    It ends with `close`, with a ``with`` block, and with this Python process. A job that runs on this machine is
    followed to its end.
    """

    def __init__(self, url: str, folder: Path, end: Callable[[], None]) -> None:
        self.url = url
        #: What it shows: the job's event files, in a directory that goes with it.
        self.folder = folder
        # Called once: by close(), when this object is collected, or when the interpreter ends.
        self._end = weakref.finalize(self, end)

    def close(self) -> None:
        """Stop it and remove its directory; a second call does nothing."""
        self._end()

    def __enter__(self) -> TensorBoard:  # noqa: PYI034 - Self is not in Python 3.9's typing
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"TensorBoard({self.url!r})"

    def _repr_html_(self) -> str:
        address = html.escape(self.url, quote=True)
        return f'<iframe src="{address}" width="100%" height="800" frameborder="0"></iframe>'


def start_tensorboard(platform: Platform, name: str, port: int | None) -> TensorBoard:
    """Start TensorBoard on a job's event files, and return it once it answers.

    Raises `MissingPackageError` where it is not installed, `DataError` for a job without event files, and
    `PlatformError` where it does not come up.
    """
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 < port <= _HIGHEST_PORT):
        raise invalid(
            "port", f"is {port!r}", f"give a number from 1 to {_HIGHEST_PORT}, or leave it out for a free one"
        )
    if importlib.util.find_spec("tensorboard") is None:
        raise MissingPackageError("tensorboard() needs TensorBoard, which is not installed: pip install tensorboard")
    work = Path(tempfile.mkdtemp(prefix="scriptmode-tensorboard-"))
    try:
        files = EventFiles(platform, name, work / "logs")
        files.folder.mkdir()
        has_all = files.gather()
        files.check_found()
        process, url = _start(work, files.folder, port)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
    stop = threading.Event()
    copier = threading.Thread(target=_copy_until_ended, args=(files, stop), name=f"event files of {name}", daemon=True)
    if not has_all:
        copier.start()
    return TensorBoard(url, files.folder, partial(_finish, process, stop, copier, work))


def _start(work: Path, logs: Path, port: int | None) -> tuple[subprocess.Popen[bytes], str]:
    words = ("--logdir", str(logs), "--host", "127.0.0.1", "--port", str(port or 0), "--reload_interval", "1")
    log = work / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            (sys.executable, "-c", _PROGRAM, *words, str(work)),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,  # an interrupt in a notebook is for the cell
        )
    try:
        return process, _address(process, log)
    except BaseException:
        _stop(process)
        raise


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Wait until TensorBoard has read its directory once, and give its address."""
    deadline = time.monotonic() + START_SECONDS
    answered = math.inf
    while (now := time.monotonic()) < deadline:
        said = log.read_text("utf-8", "replace")
        if process.poll() is not None:
            last = _last(said)
            # TensorBoard imports pkg_resources, which setuptools 82 has no more.
            command = "pip install 'setuptools<81'" if "pkg_resources" in last else "python -m tensorboard.main"
            raise PlatformError(
                f"TensorBoard ended with exit code {process.returncode}: {last}", advice=f"try: {command}"
            )
        found = _ADDRESS.search(said)
        runs = _runs(found.group(1)) if found else None
        answered = answered if runs is None else min(answered, now)
        # TensorBoard does not list a file that was just created.
        if found and (runs or now - answered > _FIRST_RUN_SECONDS):
            return found.group(1)
        time.sleep(_POLL_SECONDS)
    raise PlatformError(
        f"TensorBoard did not answer within {START_SECONDS:.0f} s: {_last(log.read_text())}", advice="try again"
    )


def _runs(url: str) -> list[str] | None:
    """Return the runs that TensorBoard has read; ``None`` while it does not answer."""
    # Of this machine alone: no proxy is to be asked for it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError, urllib.error.URLError), opener.open(f"{url.rstrip('/')}/data/runs", timeout=5) as answer:
        return [str(run) for run in json.load(answer)]
    return None


def _last(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing"


def _copy_until_ended(files: EventFiles, stop: threading.Event) -> None:
    """Copy what the hosts write until the job has ended; retry where the platform fails."""
    while not stop.wait(_GATHER_SECONDS):
        with suppress(PlatformError, OSError):
            if files.gather():
                return


def _finish(process: subprocess.Popen[bytes], stop: threading.Event, copier: threading.Thread, work: Path) -> None:
    stop.set()
    _stop(process)
    # The collector of garbage may call from any thread, this one too.
    if copier.is_alive() and copier is not threading.current_thread():
        copier.join(_END_SECONDS)
    shutil.rmtree(work, ignore_errors=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin:
        process.stdin.close()
    process_tree.stop_group(process, _END_SECONDS)
