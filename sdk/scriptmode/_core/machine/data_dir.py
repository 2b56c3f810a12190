"""The data directory: this user's jobs on this machine, and cached artifacts of jobs elsewhere."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from scriptmode.errors import DataError

DATA_DIR_VARIABLE = "SCRIPTMODE_DATA_DIR"
#: Names directories in place of file systems: ``fs-0123=/mnt/data,fs-9=/x``.
FILE_SYSTEMS_VARIABLE = "SCRIPTMODE_FILE_SYSTEMS"
#: The file that marks a directory as a data directory, which is never part of a program.
MARK = ".scriptmode-data"
#: The directory of cached artifacts in the data directory.
FETCHED = "fetched"
#: The directory of the records of tuning jobs in the data directory.
TUNING = "tuning"
#: The file of the directory's only server, which holds a lock of it: its process, and the command that sets the
#: variables with which its clients reach the objects of its jobs.
SERVER_FILE = "serve/server.lock"


def default_data_dir() -> Path:
    """Return the data directory: the environment variable's, else the one by the operating system's convention.

    Raises `DataError` where it is in a home directory that cannot be found.
    """
    try:
        if named := os.environ.get(DATA_DIR_VARIABLE):
            return Path(named).expanduser().absolute()
        import platformdirs

        return Path(platformdirs.user_data_dir("scriptmode", appauthor=False))
    except RuntimeError as error:
        what = f"there is no data directory: {str(error).rstrip('.')}"
        raise DataError(what, f"set HOME or {DATA_DIR_VARIABLE} to an absolute path") from error


def mark_used(folder: Path) -> None:
    """Set the modification time of a directory to now, where this user may: `LocalPlatform.prune` keeps it then."""
    with suppress(OSError):
        os.utime(folder)


def make_private(folder: Path, data_dir: Path) -> None:
    """Create a directory in a data directory, and its parents, for this user only: jobs may hold secrets.

    Raises ``OSError``.
    """
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    for path in path_within(folder, data_dir):
        path.mkdir(mode=0o700, exist_ok=True)
    (data_dir / MARK).touch()


def path_within(folder: Path, data_dir: Path) -> list[Path]:
    """Return the directories from a data directory to one in it, both included; none for a directory elsewhere."""
    return [path for path in (*reversed(folder.parents), folder) if data_dir in (path, *path.parents)]


def unwritable_error(data_dir: Path, error: OSError | ValueError) -> DataError:
    """Return the error for a data directory that cannot be written."""
    reason = getattr(error, "strerror", None) or error
    what = f"the data directory {data_dir} cannot be written: {reason}"
    return DataError(what, f"make it writable or name another one in the environment variable {DATA_DIR_VARIABLE}")
