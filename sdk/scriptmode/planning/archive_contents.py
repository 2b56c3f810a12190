"""What is in a source archive."""

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scriptmode.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scriptmode.platforms.base import Platform

#: Of longer files the runtime does not ask for more, to know how they are started.
_LONGEST_TEXT = 64 * 1024


@dataclass(frozen=True)
class ArchiveContents:
    """An archive's files: ``sizes`` and ``digests`` of all, and ``texts`` of those that say how the source is started.

    ``size`` and ``digest`` are the archive's own.
    """

    sizes: Mapping[str, int]
    digests: Mapping[str, str]
    texts: Mapping[str, str]
    size: int
    digest: str


def read_archive(archive: bytes, program: str = "") -> ArchiveContents:
    """Read an archive, gzip-compressed or not; texts are those of ``program`` and of files that no folder holds.

    Raises `DataError` for what is no archive.
    """
    sizes, digests, texts = {}, {}, {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for member in tar:
                file = tar.extractfile(member) if member.isreg() else None
                if file is None:
                    continue
                name, content = member.name.removeprefix("./"), file.read()
                sizes[name], digests[name] = len(content), hashlib.sha256(content).hexdigest()
                if name == program or "/" not in name:
                    texts[name] = content[:_LONGEST_TEXT].decode("utf-8", "replace")
    except _archive_errors() as error:
        raise DataError(f"it is no source archive: {error}") from error
    return ArchiveContents(sizes, digests, texts, len(archive), hashlib.sha256(archive).hexdigest())


def _archive_errors() -> tuple[type[Exception], ...]:
    """Give what reading a broken archive raises."""
    # There once such an archive was read: interpreters are built without it too.
    lzma = sys.modules.get("lzma")
    own = () if lzma is None else (lzma.LZMAError,)
    return (tarfile.TarError, zlib.error, EOFError, OSError, OverflowError, ValueError, *own)


def fetch_archive(platform: Platform, uri: str, program: str = "") -> ArchiveContents:
    """Fetch a stored archive and read it; raises `PlatformError`."""
    with tempfile.TemporaryDirectory(prefix="scriptmode-") as folder:
        files = platform.fetch(uri, Path(folder))
        if len(files) != 1:
            raise DataError(f"{uri} is {len(files)} files, and no source archive; look at what is there")
        return read_archive(files[0].read_bytes(), program)
