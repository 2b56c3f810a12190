"""A model on its way to this machine: fetched beside its folder, unpacked safely, then given its name."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.errors import DataError
from scriptmode_runtime.archive import place
from scriptmode_runtime.errors import UserCodeError

if TYPE_CHECKING:
    import os

    from scriptmode.platforms import Platform

_ARCHIVE = "model.tar.gz"


def fetch(platform: Platform, uri: str, folder: str | os.PathLike[str], *, extract: bool) -> Path:
    """Copy the model at ``uri`` into ``folder`` and return it; raise `DataError` and leave nothing when it fails."""
    target = Path(folder).expanduser().absolute()
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DataError(f"{str(target)!r} is not an empty folder; name another one for the model")
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside the folder: a rename within one file system is whole or not at all.
        with tempfile.TemporaryDirectory(prefix=".model-", dir=target.parent) as beside:
            fetched, unpacked = Path(beside, "fetched"), Path(beside, "unpacked")
            files = platform.fetch(uri, fetched)
            is_archive = files == [fetched / _ARCHIVE]
            if is_archive and extract:
                place(str(files[0]), str(unpacked))
            else:
                fetched.rename(unpacked)
            if target.exists():
                target.rmdir()
            shutil.move(str(unpacked), str(target))
    except UserCodeError as error:
        raise DataError(f"the model {uri} is refused: {error}") from error
    except OSError as error:
        raise DataError(f"the model {uri} cannot be stored in {str(target)!r}: {error}") from error
    return target
