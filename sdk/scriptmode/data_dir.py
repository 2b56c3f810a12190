"""Where this user's jobs, and copies of what jobs left elsewhere, are kept on this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from scriptmode.errors import DataError

DATA_DIR_VARIABLE = "SCRIPTMODE_DATA_DIR"
_PRIVATE = 0o700


def default_data_dir() -> Path:
    """Give the data directory: the environment variable's, else the platform's convention.

    Raises `DataError` where either is in a home directory that nobody knows.
    """
    try:
        if named := os.environ.get(DATA_DIR_VARIABLE):
            return Path(named).expanduser().absolute()
        import platformdirs

        return Path(platformdirs.user_data_dir("scriptmode", appauthor=False))
    except RuntimeError as error:
        raise DataError(
            f"there is no data directory: {str(error).rstrip('.')}; set HOME, or {DATA_DIR_VARIABLE} to a whole path"
        ) from error


def make_private(folder: Path, data_dir: Path) -> None:
    """Make a folder of a data directory, with those above it, for the user alone: sources and jobs may hold secrets.

    Raises ``OSError``.
    """
    data_dir.parent.mkdir(parents=True, exist_ok=True)
    for each in path_within(folder, data_dir):
        each.mkdir(mode=_PRIVATE, exist_ok=True)
    close_to_others(folder)


def path_within(folder: Path, data_dir: Path) -> list[Path]:
    """Return the folders from a data directory to one in it, both included; none for a folder elsewhere."""
    return [each for each in (*reversed(folder.parents), folder) if data_dir in (each, *each.parents)]


def close_to_others(folder: Path) -> None:
    """Take away the rights of others to a folder that an earlier version left open, where this user may."""
    with suppress(OSError):
        if folder.stat().st_mode & ~_PRIVATE & 0o777:
            folder.chmod(_PRIVATE)
