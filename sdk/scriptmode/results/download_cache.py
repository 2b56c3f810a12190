"""What jobs left, fetched once: a copy below the data directory, ``fetched/<job>-<digest>/<what>``."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from scriptmode.data_dir import default_data_dir, make_private
from scriptmode.errors import DataError
from scriptmode.results import artifacts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from scriptmode.platforms.base import Platform

#: Of the digest that tells jobs of one name apart: two accounts' jobs, or one that was deleted and started anew.
_DIGITS = 12


def copy_of(platform: Platform, description: Mapping[str, Any], what: str, uri: str) -> Path:
    """Give the folder with an unpacked artifact of a job that ended, fetched unless it is there; raise `DataError`."""
    born = f"{description['TrainingJobArn']} {description['CreationTime'].timestamp()}"
    digest = hashlib.sha256(born.encode()).hexdigest()[:_DIGITS]
    folder = default_data_dir() / "fetched" / f"{description['TrainingJobName']}-{digest}" / what
    if folder.is_dir():
        return folder
    try:
        # A folder that cannot be made is told where the model is to be put into it.
        with suppress(OSError):
            make_private(default_data_dir() / "fetched", default_data_dir())
        return artifacts.fetch(platform, uri, folder, extract=True)
    except DataError:
        # Another process was first: a copy gets its name when it is whole.
        if folder.is_dir() and any(folder.iterdir()):
            return folder
        raise
