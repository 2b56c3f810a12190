"""Artifacts of a job on this machine: downloaded beside their directory, unpacked safely, then renamed."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import FETCHED, default_data_dir, make_private, mark_used
from scriptmode._core.platforms.registry import Platform
from scriptmode._core.spec.job_description import JobDescription
from scriptmode._core.spec.job_request import JobRequest
from scriptmode.errors import DataError, DataNotFoundError, PlatformError
from scriptmode_runtime._files.archive import MODEL_LIMITS, unpack
from scriptmode_runtime._values.errors import UserCodeError

#: Names of the archives that the service packs; an archive of another name is the user's own and is not unpacked.
_ARCHIVES = ("model.tar.gz", "output.tar.gz", "sourcedir.tar.gz")
#: Digits of the digest that separates jobs of one name: of two accounts, or one that was deleted and created again.
_DIGITS = 12


def download(platform: Platform, uri: str, folder: str | os.PathLike[str], *, extract: bool) -> Path:
    """Download the artifact at ``uri`` into ``folder``, empty or new, whole or not at all; return its absolute path.

    An archive is unpacked with ``extract``; a prefix with files is downloaded as it is. Raises `DataError` where there
    is no such artifact, it cannot be unpacked or the directory cannot be written.
    """
    target = Path(folder).expanduser().absolute()
    made: list[Path] = []
    try:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise DataError(f"{str(target)!r} is not an empty directory", advice="name another one for the model")
        made = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        _download(platform, uri, target, extract=extract)
    except (UserCodeError, OSError, PlatformError) as error:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, PlatformError):
            raise
        if isinstance(error, UserCodeError):
            raise DataError(str(error)) from error
        what = f"the model {uri} cannot be stored in {str(target)!r}: {error.strerror or error}"
        raise DataError(what, advice="name another directory") from error
    return target


def download_cached(platform: Platform, description: JobDescription, artifact: str, uri: str) -> Path:
    """Return the directory with an unpacked artifact of an ended job; download it where the cache does not have it.

    The cache is ``fetched/<job>-<digest>/<artifact>`` in the data directory. Raises `DataError`.
    """
    identity = f"{description.arn} {description.created.timestamp() if description.created else 0}"
    digest = hashlib.sha256(identity.encode()).hexdigest()[:_DIGITS]
    cached = default_data_dir() / FETCHED / f"{description.name}-{digest}" / artifact
    if cached.is_dir():
        mark_used(cached.parent)
        return cached
    try:
        # A directory that cannot be created is reported by the download into it.
        with suppress(OSError):
            make_private(default_data_dir() / FETCHED, default_data_dir())
        return download(platform, uri, cached, extract=True)
    except DataError:
        # Another process was faster: a copy gets its name when it is complete.
        if cached.is_dir() and any(cached.iterdir()):
            return cached
        raise


def output_uri(job: JobRequest) -> str:
    """Return the URI of the archive or the directory of a job's output data."""
    base = f"{str(job.output.path).rstrip('/')}/{job.name}/output"
    return f"{base}/output.tar.gz" if job.output.compress else f"{base}/data/"


def _download(platform: Platform, uri: str, target: Path, *, extract: bool) -> None:
    # In the parent directory: a rename within one file system is atomic.
    drafts.remove_orphans(target.parent)
    with drafts.new_directory(target.parent) as temporary:
        downloaded, unpacked = temporary / "downloaded", temporary / "unpacked"
        try:
            files = platform.fetch(uri, downloaded)
        except DataNotFoundError as error:
            raise DataNotFoundError(
                f"nothing is at {uri}",
                advice="a job that left no such files has none; otherwise put them back there, or run the job again",
            ) from error
        # A prefix without files creates no directory.
        downloaded.mkdir(exist_ok=True)
        name = uri.rstrip("/").rpartition("/")[2]
        if name in _ARCHIVES and files != [downloaded / name]:
            raise DataError(f"the model {uri} is a directory, not an archive", f"put the archive {name} itself there")
        if extract and name in _ARCHIVES:
            unpack(str(files[0]), str(unpacked), title=f"the model {uri}", limits=MODEL_LIMITS)
        else:
            downloaded.rename(unpacked)
        if target.exists():
            target.rmdir()
        unpacked.rename(target)
