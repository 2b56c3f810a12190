"""The content of a source: what a plan shows of it, and the texts that decide how it is started."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from scriptmode._core.platforms.registry import Platform
from scriptmode.errors import DataError
from scriptmode.planning._plan_parts import SourcePlan

#: Number of bytes of a file that the runtime needs to find out how it is started.
_LONGEST_TEXT = 64 * 1024


def read_archive(uri: str, archive: bytes, program: str) -> tuple[SourcePlan, dict[str, str]]:
    """Return an archive, gzip-compressed or not, and the texts of ``program`` and of top-level files by their names.

    Raises `DataError` if it is not an archive.
    """
    sizes, texts = {}, {}
    try:
        for name, content in _regular_files(archive):
            sizes[name] = len(content)
            # What decides how the program is started is beside the directories, or the program itself.
            if name == program or "/" not in name:
                texts[name] = content[:_LONGEST_TEXT].decode("utf-8", "replace")
    except _archive_errors() as error:
        raise DataError(f"it is not a source archive: {error}", advice="pack it with tar and gzip") from error
    return SourcePlan(uri, sizes, len(archive), hashlib.sha256(archive).hexdigest()), texts


def _regular_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in filter(tarfile.TarInfo.isreg, tar):
            if file := tar.extractfile(member):
                yield member.name.removeprefix("./"), file.read()


def _archive_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a broken archive raises."""
    # Only imported once such an archive was read: some interpreters are built without lzma.
    lzma = sys.modules.get("lzma")
    own = () if lzma is None else (lzma.LZMAError,)
    return (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError, *own)


def fetch_archive(platform: Platform, uri: str, program: str) -> tuple[SourcePlan, dict[str, str]]:
    """Download a stored archive and read it, as `read_archive` does; raises `PlatformError`."""
    with tempfile.TemporaryDirectory(prefix="scriptmode-") as folder:
        files = platform.fetch(uri, Path(folder))
        if len(files) != 1:
            raise DataError(f"{uri} has {len(files)} files, expected one source archive", "give the URI of the archive")
        return read_archive(uri, files[0].read_bytes(), program)
