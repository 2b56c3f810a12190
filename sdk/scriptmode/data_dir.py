"""Where this user's jobs, and copies of what jobs left elsewhere, are kept on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from scriptmode.errors import DataError

DATA_DIR_VARIABLE = "SCRIPTMODE_DATA_DIR"


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
