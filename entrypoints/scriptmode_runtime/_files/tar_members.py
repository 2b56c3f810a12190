"""The members of a tar archive with any compression, read with a limit on memory for headers."""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
import tarfile
from collections.abc import Iterator
from typing import IO

from scriptmode_runtime._values.errors import UserCodeError

#: Most bytes before one member, which tarfile holds in memory. Names and attributes take some kilobytes at most.
_LONGEST_HEADER = 4 * 1024 * 1024
_CHUNK = 64 * 1024
_SHOWN = 100
#: The modules of the standard library for compressions, by the first bytes.
_COMPRESSIONS = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma"}


class Content:
    """An archive's bytes for tarfile, with a limit on headers, which tarfile holds in memory."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        #: Bytes that a header may still have; None while the content of a member is read.
        self.left: int | None = _LONGEST_HEADER
        #: The bytes of the last read.
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        """Read; raises `tarfile.ReadError` for broken compression and for headers without end."""
        if self.left is not None:
            self.left -= size
            if size < 0 or self.left < 0:
                raise tarfile.ReadError(f"a header of more than {_LONGEST_HEADER:,} bytes")
        self.last = self._file.read(size)
        return self.last

    def finish(self) -> None:
        """Read the bytes after the last member: compression has its checksum there."""
        left = _LONGEST_HEADER
        try:
            while left > 0 and (chunk := self._file.read(_CHUNK)):
                left -= len(chunk)
        except OSError as error:
            if "Not a gzipped file" not in str(error):  # other data after the archive, which tar ignores
                raise

    def seek(self, offset: int, whence: int = 0) -> int:
        """Set the offset, and return it."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the offset."""
        return self._file.tell()


def members(archive: tarfile.TarFile, content: Content) -> Iterator[tarfile.TarInfo]:
    """Yield each member; raises `tarfile.ReadError` where tarfile would loop, or stop in the middle."""
    offset = 0
    while True:
        content.left = _LONGEST_HEADER
        member = archive.next()
        content.left = None
        # tarfile keeps all members, to look up hard links only; the unpacking does that itself.
        archive.members.clear()  # type: ignore[attr-defined]
        if member is None:
            if content.last.strip(b"\0"):  # tarfile reads an invalid header as the end
                raise tarfile.ReadError(f"the header at {archive.offset:,} is broken")
            content.finish()
            return
        if member.size < 0 or archive.offset <= offset:
            raise tarfile.ReadError(f"{shown(member.name)} has an invalid size")
        offset = archive.offset
        yield member


@contextlib.contextmanager
def opened(source: str, title: str) -> Iterator[Content]:
    """Open an archive with any compression, detected by its first bytes, because its name can be anything.

    Only a regular file is read: opening a FIFO would wait without a deadline.
    """
    with open(source, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UserCodeError(f"{title} is not a regular file; put the archive itself there")
        start = file.read(8)
        file.seek(0)
        name = next((name for magic, name in _COMPRESSIONS.items() if start.startswith(magic)), "")
        if not name:
            yield Content(file)
            return
        # Imported on use: not every Python has all of them.
        module = importlib.import_module(name)
        try:
            with module.open(file) as unpacked:
                yield Content(unpacked)
        except getattr(module, "LZMAError", ()) as error:
            raise tarfile.ReadError(str(error)) from error


def shown(name: str) -> str:
    """Return a member's name in the form of messages."""
    return shortened(repr(name))


def shortened(text: str) -> str:
    """Return a text, or its beginning and its end if it is too long for a message."""
    return text if len(text) <= 2 * _SHOWN else f"{text[:_SHOWN]}[...]{text[-_SHOWN:]}"
