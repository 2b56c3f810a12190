"""Waiting for conditions, and for processes of this machine."""

import os
import time
from contextlib import suppress
from pathlib import Path

from .promptness import GENEROUS, TooLateError, stretched


def until(condition, seconds=GENEROUS, describe=lambda: "not reached"):
    """Poll until ``condition()`` gives something true; return that. A limit in ``seconds`` is for ``prompt`` tests."""
    deadline = time.monotonic() + stretched(seconds)
    while not (found := condition()):
        if time.monotonic() >= deadline:
            raise TooLateError(f"{describe()} within {seconds} s")
        time.sleep(0.01)
    return found


def recorded(folder):
    """The recorded processes of a job's folder, once those of the hosts are among them: just after these started."""
    return until(lambda: "algo-1" in (found := folder.read_processes()) and found)


def processes_naming(text):
    """Every other process that has ``text`` in its command line or its environment; a zombie has neither."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        # Ended meanwhile, or another user's.
        with suppress(OSError):
            if os.fsencode(text) in (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes():
                found.append(int(entry.name))
    return [pid for pid in found if pid != os.getpid()]


def open_files(pid):
    """What the descriptors of a process stand for, without those that are closed meanwhile; none for one that ended."""
    files = set()
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                files.add(str(link.readlink()))
    return files
