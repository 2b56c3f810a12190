"""Reading of host logs as lines, while they are written."""

from __future__ import annotations

import codecs
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from scriptmode_local._data.regular_files import open_regular
from scriptmode_runtime._terminal_line import last_frame, overwritten

#: Bytes of one piece of a line, and of one read, since the logs of many hosts are read at once. They bound the memory.
CHUNK, _READ = 1024 * 1024, 64 * 1024
#: Bytes read of an unfinished line: some frames of a progress bar.
UNFINISHED = 8 * 1024


class LogReader:
    """Reader of one host's log. A line ends with a line feed; carriage returns of a progress bar are part of it.

    Of a line of more than `CHUNK` bytes the frames that the line itself overwrites are skipped; one without such frames
    is returned in pieces. So memory does not grow with it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        #: The part of the incomplete line that was not yielded yet; less than a chunk.
        self._begun = b""
        #: The bytes up to the end of what was yielded last.
        self.position = 0
        #: The bytes of one character may be divided between two pieces.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._is_divided = False

    def lines(self, *, final: bool) -> Iterator[tuple[str, bool]]:
        """Yield the lines completed since the last call, each with whether the next one continues it.

        With ``final`` also the text after the last line feed. Raises ``OSError`` for a log that is not a regular file
        or cannot be read.
        """
        if self._file is None:
            with suppress(FileNotFoundError):
                self._file = open_regular(self._path)
        while self._file is not None and (chunk := self._file.read(min(CHUNK, _READ))):
            whole, feed, begun = chunk.rpartition(b"\n")
            if feed:
                whole, self._begun = self._begun + whole, b""
                more = feed
                if self._is_divided:
                    first, more, whole = whole.partition(b"\n")
                    self.position += len(first) + 1
                    yield self._ended(first)
                for line in whole.split(b"\n") if more else ():
                    self.position += len(line) + 1
                    yield line.decode("utf-8", "replace"), False
            self._begun += begun
            if len(self._begun) > CHUNK:
                skipped = overwritten(self._begun)
                self._begun = self._begun[skipped:]
                self.position += skipped
            if len(self._begun) > CHUNK:
                self.position += len(self._begun)
                yield self._decoder.decode(self._begun), True
                self._begun, self._is_divided = b"", True
        if final and (self._begun or self._is_divided):
            rest, self._begun = self._begun, b""
            self.position += len(rest)
            yield self._ended(rest)

    def _ended(self, rest: bytes) -> tuple[str, bool]:
        if not self._is_divided:
            return rest.decode("utf-8", "replace"), False
        text = self._decoder.decode(rest, final=True)
        self._decoder.reset()
        self._is_divided = False
        return text, False

    @property
    def modified(self) -> int:
        """When the log was last written, in milliseconds since the epoch; 0 for one that is not open."""
        return os.fstat(self._file.fileno()).st_mtime_ns // 1_000_000 if self._file else 0

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def unfinished_line(path: Path) -> str:
    """Return the end of a log after its last line feed: what a progress bar drew last; "" without a log.

    Of a long line the last `UNFINISHED` bytes are returned, from a carriage return on where they have one.
    """
    with suppress(OSError), open_regular(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - UNFINISHED))
        end = file.read(UNFINISHED)
        line = end.rpartition(b"\n")[2]
        if len(line) == UNFINISHED:
            line = line[max(0, line.find(b"\r")) :]
        return line.decode("utf-8", "replace")
    return ""


def last_lines(path: Path, lines: int, limit: int) -> str:
    """Return the end of a text file: at most ``lines`` whole lines and ``limit`` characters; "" when there is no file.

    Of a line with frames the last one is returned. Only a last line that is longer than ``limit`` is cut, at its start.
    """
    with suppress(OSError), open_regular(path) as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4 * limit))
        text = "\n".join(map(last_frame, file.read().decode("utf-8", "replace").strip().split("\n")[-lines:]))
        if len(text) > limit:
            end = text[-limit:]
            _, newline, whole = end.partition("\n")
            text = end if text[-limit - 1] == "\n" or not newline else whole
        return text
    return ""
