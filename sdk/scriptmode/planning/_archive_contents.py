"""The files of a source archive."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import tempfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from scriptmode._core.platforms.base import Platform
from scriptmode._core.source.source_archive import Source
from scriptmode.errors import DataError

#: Number of bytes of a file that the runtime needs to find out how it is started.
_LONGEST_TEXT = 64 * 1024


class ArchiveContents(NamedTuple):
    """An archive's files: ``sizes`` and ``digests`` of all, ``texts`` of those that decide how the source is started.

    ``size`` and ``digest`` are the archive's own; ``None`` and "" if it is not packed.
    """

    sizes: Mapping[str, int]
    digests: Mapping[str, str]
    texts: Mapping[str, str]
    size: int | None = None
    digest: str = ""


def read_archive(archive: bytes, program: str = "") -> ArchiveContents:
    """Read an archive, gzip-compressed or not; texts are those of ``program`` and of top-level files.

    Raises `DataError` if it is not an archive.
    """
    sizes, digests, texts = {}, {}, {}
    try:
        for name, content in _regular_files(archive):
            sizes[name], digests[name] = len(content), hashlib.sha256(content).hexdigest()
            if name == program or "/" not in name:
                texts[name] = content[:_LONGEST_TEXT].decode("utf-8", "replace")
    except _archive_errors() as error:
        raise DataError(f"it is not a source archive: {error}", advice="pack it with tar and gzip") from error
    return ArchiveContents(sizes, digests, texts, len(archive), hashlib.sha256(archive).hexdigest())


def _regular_files(archive: bytes) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in filter(tarfile.TarInfo.isreg, tar):
            if file := tar.extractfile(member):
                yield member.name.removeprefix("./"), file.read()


def read_unpacked(source: Source, program: str, *, is_compared: bool) -> ArchiveContents:
    """Read what a plan needs of files that are not packed: all of them only to compare them."""
    texts = {name: source.read(name, _LONGEST_TEXT) for name in source.sizes if name == program or "/" not in name}
    digests = {name: hashlib.sha256(source.read(name)).hexdigest() for name in source.sizes} if is_compared else {}
    return ArchiveContents(
        source.sizes, digests, {name: content.decode("utf-8", "replace") for name, content in texts.items()}
    )


def _archive_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that reading a broken archive raises."""
    # Only imported once such an archive was read: some interpreters are built without lzma.
    lzma = sys.modules.get("lzma")
    own = () if lzma is None else (lzma.LZMAError,)
    return (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError, *own)


def fetch_archive(platform: Platform, uri: str, program: str = "") -> ArchiveContents:
    """Download a stored archive and read it; raises `PlatformError`."""
    with tempfile.TemporaryDirectory(prefix="scriptmode-") as folder:
        files = platform.fetch(uri, Path(folder))
        if len(files) != 1:
            raise DataError(f"{uri} has {len(files)} files, expected one source archive", "give the URI of the archive")
        return read_archive(files[0].read_bytes(), program)
