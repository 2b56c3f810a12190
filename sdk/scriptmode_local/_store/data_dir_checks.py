"""Tests of a data directory: whether it can hold jobs."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode._core.machine import drafts
from scriptmode_local._data.durable import replace_file
from scriptmode_local._system.directory_lock import try_lock

_FIFO_MODE = 0o600


def probe_writable(data_dir: Path) -> None:
    """Write, rename, lock and create a FIFO in an existing data directory, as the store does; raise ``OSError``."""
    with drafts.new_directory(data_dir) as draft:
        replace_file(draft / "state.json", b"{}")
        folder = draft / "job"
        folder.mkdir()
        folder.rename(draft / "renamed")
        _lock(draft / "agent.lock")
        os.mkfifo(draft / "pipe", _FIFO_MODE)


def existing_folder(data_dir: Path) -> Path:
    """Return the data directory, or the nearest existing directory above it; raise ``NotADirectoryError``."""
    nearest = next(folder for folder in (data_dir, *data_dir.parents) if folder.exists())
    if not nearest.is_dir():
        message = "it is not a directory" if nearest == data_dir else f"{nearest} is not a directory"
        raise NotADirectoryError(message)
    return nearest


def _lock(path: Path) -> None:
    """Lock a file twice and raise ``OSError`` if both succeed, as on network file systems without working locks."""
    first, second = (os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for _ in range(2))
    try:
        if try_lock(first) and try_lock(second):
            message = "two locks on one file at once: flock does not work there"
            raise OSError(message)
    finally:
        os.close(first)
        os.close(second)
