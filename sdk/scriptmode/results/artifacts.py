"""A model on its way to this machine: fetched beside its folder, unpacked safely, then given its name."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.errors import DataError, DataNotFoundError, PlatformError
from scriptmode_runtime.errors import UserCodeError
from scriptmode_runtime.files.archive import MODEL_LIMITS, place

if TYPE_CHECKING:
    import os

    from scriptmode.platforms.base import Platform

#: What the service packs of a job; other archives are what somebody else put there.
_ARCHIVES = ("model.tar.gz", "output.tar.gz")


def fetch(platform: Platform, uri: str, folder: str | os.PathLike[str], *, extract: bool) -> Path:
    """Copy the model at ``uri`` into ``folder`` and return it; raise `DataError` and leave nothing when it fails."""
    target = Path(folder).expanduser().absolute()
    made: list[Path] = []
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DataError(f"{str(target)!r} is not an empty folder; name another one for the model")
        made = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(platform, uri, target, extract=extract)
    except (UserCodeError, OSError, PlatformError) as error:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, PlatformError):
            raise
        if isinstance(error, UserCodeError):
            raise DataError(str(error)) from error
        raise DataError(f"the model {uri} cannot be stored in {str(target)!r}: {error}; name another folder") from error
    return target


def _fetch(platform: Platform, uri: str, target: Path, *, extract: bool) -> None:
    # Beside the folder: a rename within one file system is whole or not at all.
    with tempfile.TemporaryDirectory(prefix=".model-", dir=target.parent) as beside:
        fetched, unpacked = Path(beside, "fetched"), Path(beside, "unpacked")
        try:
            files = platform.fetch(uri, fetched)
        except DataNotFoundError as error:
            raise DataNotFoundError(
                f"the model of the job is gone from its place: nothing is at {uri} any more; put it back there, or run "
                "the job again: scriptmode rerun"
            ) from error
        # A folder without files is not copied.
        fetched.mkdir(exist_ok=True)
        name = uri.rstrip("/").rpartition("/")[2]
        if name in _ARCHIVES and files != [fetched / name]:
            raise DataError(f"the model {uri} is a directory, not an archive; put the archive {name} itself there")
        if extract and name in _ARCHIVES:
            place(str(files[0]), str(unpacked), title=f"the model {uri}", limits=MODEL_LIMITS)
        else:
            fetched.rename(unpacked)
        if target.exists():
            target.rmdir()
        unpacked.rename(target)
