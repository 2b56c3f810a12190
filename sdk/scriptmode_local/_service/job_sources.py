"""The sources of jobs, below the data directory, in another directory or in S3, and copies of what a job left there."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode._core.machine import drafts
from scriptmode._core.machine.data_dir import mark_used, path_within, unwritable_error
from scriptmode.errors import DataError
from scriptmode_local._data import file_uris
from scriptmode_local._data.durable import ChangedDirectories, replace_file
from scriptmode_local._system.directory_lock import locked_directory

if TYPE_CHECKING:
    from scriptmode_local._store.job_store import JobStore


def store_source(store: JobStore, archive: bytes, uri: str, kms_key: str | None) -> None:
    """Store a source archive at ``uri``, unless it is stored already; raise `DataError` where that fails."""
    if not file_uris.is_file(uri):
        from scriptmode._core.aws.s3 import S3

        bucket = S3()
        if not bucket.exists(uri):
            bucket.upload_bytes(archive, uri, kms_key=kms_key)
        return
    try:
        path, entries = file_uris.file_path(uri), ChangedDirectories()
        # The next call finds what was left of any source; of the user's directories only the source's own is searched.
        location = store.sources if path.parent.parent == store.sources else path.parent
        drafts.remove_orphans(location)
        if not _reserve(store, path, entries):
            replace_file(path, archive, directory=True, drafts_in=location)
            entries.sync()
    except (OSError, ValueError) as error:
        from scriptmode_local._system import full_disk

        if full_disk.is_full(error):
            raise full_disk.full_disk_error(error, path) from error
        if uri.startswith(f"{file_uris.SCHEME}{store.sources}"):
            raise unwritable_error(store.data_dir, error) from error
        what = f"the source archive cannot be stored at {uri}: {error}"
        raise DataError(what, advice="give another code_location") from error


def fetch(uri: str, folder: Path) -> list[Path]:
    """Copy a file or a directory, or what is in S3, into ``folder``; raise `DataError` where that fails."""
    if not file_uris.is_file(uri):
        from scriptmode._core.aws.s3 import S3

        return S3().fetch(uri, folder)
    from scriptmode_local._data import file_copy

    return file_copy.copy_path(file_uris.file_path(uri), folder)


def _reserve(store: JobStore, source: Path, entries: ChangedDirectories) -> bool:
    """Create the directory of a source archive; return whether the archive exists.

    One of the data directory is marked as used under the lock of `pruning`, which then keeps it.
    """
    sources = store.sources
    with ExitStack() as lock:
        for folder in path_within(source.parent, store.data_dir) or [source.parent]:
            entries.make_directory(folder, mode=0o700)
            if folder == sources:
                lock.enter_context(locked_directory(sources, shared=True))
        if sources in source.parents:
            mark_used(sources / source.relative_to(sources).parts[0])
        return source.exists()
